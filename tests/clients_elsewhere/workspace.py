"""A Salesforce DX project in which sf commands run."""

from __future__ import annotations

import json
import uuid
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from clients_elsewhere.node import Sf
from evalmeta.model.registry import Manifest, ManifestTypes
from evalmeta.xmlio.definitions import write_manifest
from org.parts import KIND, definition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clients_elsewhere.node import Outcome
    from clients_elsewhere.orgs import Org

__all__ = ["Workspace", "asking", "new_name"]

_FOLDER = Path("force-app", "main", "default", KIND.directory)
_PROJECT = {
    "packageDirectories": [{"path": "force-app", "default": True}],
    "sourceApiVersion": "66.0",
    # Without it sf refuses SF_ORG_INSTANCE_URL on loopback; nothing is sent there.
    "sfdcLoginUrl": "https://login.salesforce.com",
}
# These go on where they began; or the target has another flag.
_WITHOUT_TARGET = ("project deploy resume", "project generate manifest", "project convert source")


def new_name(word: str) -> str:
    """Return an API name that no other test uses."""
    return f"{word}_{uuid.uuid4().hex[:8]}"


def asking(name: str, *utterances: str) -> bytes:
    """Return a definition with these utterances; each expects the topic Orders."""
    content = definition(name, cases=len(utterances)).decode()
    for number, utterance in enumerate(utterances, start=1):
        content = content.replace(f"<utterance>{name} {number}<", f"<utterance>{escape(utterance)}<")
    return content.encode()


class Workspace:
    """A folder with definitions and manifests, in which sf commands run."""

    def __init__(self, folder: Path, sf: Sf) -> None:
        self.folder = folder
        self.org = sf.org
        self._sf = sf
        (folder / _FOLDER).mkdir(parents=True)
        (folder / "sfdx-project.json").write_text(json.dumps(_PROJECT))

    def write(self, word: str, content: bytes | None = None) -> str:
        """Write a definition with a unique name, and return the name."""
        name = new_name(word)
        self.path(name).write_bytes(definition(name) if content is None else content)
        return name

    def path(self, name: str) -> Path:
        """Return the file of a definition."""
        return self.folder / _FOLDER / f"{name}.{KIND.suffix}-meta.xml"

    def manifest(self, *members: str, file: str = "package.xml") -> str:
        """Write a manifest of these members, which may be empty, and return its name."""
        types = (ManifestTypes(KIND.name, members),) if members else ()
        (self.folder / file).write_bytes(write_manifest(Manifest(types, "66.0")))
        return file

    def sf(
        self, command: str, *arguments: str, org: Org | None = None, env: Mapping[str, str] | None = None
    ) -> Outcome:
        """Runs a command, words separated by spaces, with the org that is shared as its target, or another."""
        sf, target, variables = self._sf, "desk", dict(env or {})
        if org is not None:
            # sf keeps jobs by their ids, which orgs have in common.
            sf, target = Sf(self.folder, org), org.token
            variables["SF_ORG_INSTANCE_URL"] = org.url
        words = [*command.split(), *arguments]
        if not command.startswith(_WITHOUT_TARGET):
            words += ["--target-org", target]
        return sf(*words, cwd=self.folder, env=variables)

    def deployed(self, word: str) -> tuple[str, bytes]:
        """Deploy a definition to the shared org that is not in this folder; return its name and bytes."""
        name = new_name(word)
        content = definition(name)
        self.org.have(**{name: content})
        return name, content
