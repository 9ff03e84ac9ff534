"""Drafts of agents: scripts of the project that an org compiles, and the sessions that try them."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import SettingsError, SubjectError
from evalmeta.protocol import agent_preview

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from evalmeta.model.json_value import JsonObject

_BUNDLE_FILE: Final = ".bundle-meta.xml"
# As @salesforce/agents reads it: the version that the bundle is for.
_TARGET: Final = re.compile(rb"<target>.*(v\d+)</target>")
_NO_TARGET: Final = "v0"
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class Bundle:
    """A script as it is in its file `label`, and the name of the version that it is for."""

    label: str
    source: str
    version: str


def read_bundle(root: Path, bundle: str) -> Bundle:
    """Read the bundle of an agent; raise SettingsError if the project does not have it."""
    from evalmeta.package.agent_files import project_script
    from evalmeta.package.files import project_label, read_file, read_text

    path = project_script(root, bundle)
    if path is None:
        raise SettingsError(
            f"the project has no Agent Script of {bundle!r}",
            actions=[f"Create aiAuthoringBundles/{bundle}/{bundle}.agent, or correct `authoring_bundle`."],
        )
    source = read_text(path, raises=SettingsError, max_bytes=limits.MAX_SCRIPT_BYTES)
    metadata = path.with_name(bundle + _BUNDLE_FILE)
    target = _TARGET.search(read_file(metadata)) if metadata.is_file() else None
    return Bundle(project_label(path, root), source, target[1].decode() if target else _NO_TARGET)


class Draft:
    """What an org has compiled from a bundle, once for all sessions."""

    def __init__(self, bundle: Bundle, send: Callable[[JsonObject], Awaitable[JsonObject]]) -> None:
        """Take the bundle, and what sends a request to compile and returns the reply."""
        self.bundle = bundle
        self._send = send
        self._lock = asyncio.Lock()
        self._definition: JsonObject = {}
        self._errors: list[str] = []

    async def compile(self) -> JsonObject:
        """Return what the org compiles; raise SubjectError with the errors of the script if it does not.

        The org is asked again only if it did not answer.
        """
        async with self._lock:
            if not self._definition and not self._errors:
                reply = await self._send(agent_preview.script_body(self.bundle.source))
                self._definition, self._errors = agent_preview.read_compiled(reply)
        if self._errors:
            more = f"; and {len(self._errors) - _SHOWN} more" if len(self._errors) > _SHOWN else ""
            raise SubjectError(f"{self.bundle.label}:{'; '.join(self._errors[:_SHOWN])}{more}")
        return self._definition
