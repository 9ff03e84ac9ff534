"""Deploying to the embedded org, which checks and saves, against the sf CLI sending to an org that looks at nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from clients_elsewhere.node import CLIENTS, Sf
from clients_elsewhere.orgs import Org
from definitions import make_definition
from startup import EVALMETA
from timing import Pair, compare

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = "force-app/main/default/aiEvaluationDefinitions"
PROJECT = (
    '{"packageDirectories": [{"path": "force-app", "default": true}], "sourceApiVersion": "66.0",'
    ' "sfdcLoginUrl": "https://login.salesforce.com"}'
)


def is_possible() -> bool:
    """Tells whether the sf CLI is installed; `make test` does it where npm is."""
    return (CLIENTS / "ready").exists()


def measure_many() -> tuple[str, Pair]:
    return _measure(5_000, rounds=3)


def measure_one() -> tuple[str, Pair]:
    return _measure(1, rounds=5)


def _measure(count: int, *, rounds: int) -> tuple[str, Pair]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        (root / FOLDER).mkdir(parents=True)
        (root / "sfdx-project.json").write_text(PROJECT)
        for number in range(count):
            path = root / FOLDER / f"Order_Desk_{number}.aiEvaluationDefinition-meta.xml"
            path.write_bytes(make_definition(number))
        with _instant_org(Path(folder) / "org") as org:
            sf = Sf(Path(folder), org)
            pair = compare(lambda: _ours(root), lambda: _theirs(sf, root), rounds=rounds)
    what = "1 component" if count == 1 else f"{count:,} components"
    return f"deploy {what}, checked and saved / sf project deploy start --dry-run, looked at by nobody", pair


def _ours(root: Path) -> None:
    shutil.rmtree(root / ".evalmeta", ignore_errors=True)
    subprocess.run([EVALMETA, "deploy"], cwd=root, check=True, capture_output=True)


def _theirs(sf: Sf, root: Path) -> None:
    # As people have it: tests keep what Node compiled from one run to the next.
    env = {"SF_ORG_INSTANCE_URL": sf.org.url, "NODE_DISABLE_COMPILE_CACHE": "1"}
    arguments = ("project", "deploy", "start", "--dry-run", "--source-dir", "force-app", "--target-org", sf.org.token)
    outcome = sf(*arguments, cwd=root, env=env)
    assert outcome.code == 0, outcome.err


@contextmanager
def _instant_org(folder: Path) -> Iterator[Org]:
    folder.mkdir()
    command = [sys.executable, str(Path(__file__).with_name("instant_org.py")), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout
            url, token = server.stdout.readline().split()
            yield Org(url, token, folder)
        finally:
            server.terminate()
