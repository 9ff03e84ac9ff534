"""Programs written elsewhere, run by the Node that was installed with them (see the Makefile)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clients_elsewhere.orgs import Org

__all__ = ["CLIENTS", "Outcome", "Sf", "find_node", "run_script"]

CLIENTS = Path(sys.prefix) / "node"
_MODULES = CLIENTS / "node_modules"
_SF = _MODULES / "@salesforce" / "cli" / "bin" / "run.js"
_SCRIPTS = Path(__file__).parent / "clients"
_DEADLINE_SECONDS = 120
# Nothing is sent but to the org, no keyring is asked, and agents' tests are polled often.
_SETTINGS = {
    "CI": "true",
    "NO_COLOR": "1",
    "NODE_COMPILE_CACHE": str(CLIENTS / "compiled"),
    "NODE_PATH": str(_MODULES),
    "SF_AGENT_TEST_POLLING_FREQUENCY_MS": "50",
    "SF_AUTOUPDATE_DISABLE": "true",
    "SF_DISABLE_AUTOUPDATE": "true",
    "SF_DISABLE_LOG_FILE": "true",
    "SF_DISABLE_TELEMETRY": "true",
    "SF_HIDE_RELEASE_NOTES": "true",
    "SF_SKIP_NEW_VERSION_CHECK": "true",
    "SF_USE_GENERIC_UNIX_KEYCHAIN": "true",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program did."""

    code: int
    out: str
    err: str

    @property
    def reply(self) -> SimpleNamespace:
        """Return the parsed output of `--json`."""
        found = json.loads(self.out, object_hook=lambda members: SimpleNamespace(**members))
        assert isinstance(found, SimpleNamespace), self.out
        return found


@dataclass(frozen=True, slots=True)
class Sf:
    """The Salesforce CLI with a home of its own; `org` is the org it logged in to under the alias `desk`."""

    home: Path
    org: Org

    def __call__(self, *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> Outcome:
        """Run a command, by default in the home folder."""
        return _run([str(_SF), *arguments], home=self.home, cwd=cwd or self.home, env=env or {})


def run_script(script: str, org: Org, folder: Path, **names: str) -> SimpleNamespace:
    """Run a script of `clients/` against an org with these names, and return its report of each step."""
    env = {"ORG_URL": org.url, "ORG_TOKEN": org.token, **names}
    outcome = _run([str(_SCRIPTS / script)], home=folder, cwd=folder, env=env)
    assert outcome.code == 0, outcome.err
    return outcome.reply


def _run(arguments: list[str], *, home: Path, cwd: Path, env: Mapping[str, str]) -> Outcome:
    done = subprocess.run(
        [find_node(), *arguments],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), **_SETTINGS, **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=_DEADLINE_SECONDS,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr)


def find_node() -> str:
    """Return the path of the Node that runs the programs."""
    # The Node of a distribution may be older than what the sf CLI runs on; elsewhere than on Linux it is not installed.
    installed = next(_MODULES.glob("node-*/bin/node"), None)
    return str(installed or shutil.which("node"))
