"""Deploying to the embedded org, which checks and saves, against the sf CLI and an org that checks nothing."""

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
from projects import EVALMETA
from rows import Goal, Result, Row, seconds
from timing import compare, of_work

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = "force-app/main/default/aiEvaluationDefinitions"
PROJECT = (
    '{"packageDirectories": [{"path": "force-app", "default": true}], "sourceApiVersion": "66.0",'
    ' "sfdcLoginUrl": "https://login.salesforce.com"}'
)


def is_possible() -> bool:
    """Return whether the sf CLI is installed; `make thorough` does it if npm is there."""
    return (CLIENTS / "ready").exists()


def measure(*, rounds: int, count: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "project"
        (root / FOLDER).mkdir(parents=True)
        (root / "sfdx-project.json").write_text(PROJECT)
        for number in range(count):
            path = root / FOLDER / f"Order_Desk_{number}.aiEvaluationDefinition-meta.xml"
            path.write_bytes(make_definition(number))
        with _instant_org(Path(folder) / "org") as org:
            sf = Sf(Path(folder), org)
            pair = compare(
                lambda: of_work(lambda: _ours(root)), lambda: of_work(lambda: _theirs(sf, root)), rounds=rounds
            )
    return seconds(pair)._replace(note="")


def _ours(root: Path) -> None:
    shutil.rmtree(root / ".evalmeta", ignore_errors=True)
    subprocess.run([EVALMETA, "deploy"], cwd=root, check=True, capture_output=True)


def _theirs(sf: Sf, root: Path) -> None:
    # Without the cache of compiled code that the tests keep, which users do not have.
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


THEIRS = "`sf project deploy start --dry-run` to an org that checks nothing"
ROWS = (
    Row(
        "deploy-one",
        "`evalmeta deploy` of {count} component, checked and saved",
        THEIRS,
        measure,
        {"count": 1, "rounds": 5},
        {"rounds": 1},
        Goal("at most", 1),
        is_possible=is_possible,
    ),
    Row(
        "deploy-many",
        "the same with {count:,} components",
        THEIRS,
        measure,
        {"count": 5_000, "rounds": 3},
        {"count": 2, "rounds": 1},
        Goal("at most", 1),
        is_possible=is_possible,
    ),
)
