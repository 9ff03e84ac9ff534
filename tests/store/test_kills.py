from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.model.evaluation import Evaluation
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import RunContent
from evalmeta.model.run_options import RunOptions
from evalmeta.store.runs import Lease, Runs
from evalmeta.store.sqlite import SqliteDatabase
from store.appender import BATCH

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.store.database import Database

APPENDER = Path(__file__).parent / "appender.py"


@pytest.mark.parametrize("kills", [10, pytest.param(500, marks=pytest.mark.slow)])
def test_a_killed_process_loses_nothing_that_was_acknowledged(
    database: Database, folder: Path, kills: int, record_property: Callable[[str, object], None]
) -> None:
    runs = Runs(database)
    run_id = runs.start(
        EVALUATION_DEFINITION, Evaluation("Orders", "Desk", ()), RunContent(b""), RunOptions(), total=4, now=1
    )
    runs.claim(run_id, "w", taken_from=Lease(None, None), until=2)
    command = [sys.executable, str(APPENDER), str(folder), run_id, str(kills)]

    said = subprocess.run(command, check=True, capture_output=True, timeout=300).stdout.split()

    kept = Counter(case.iteration for case in runs.cases(run_id))
    record_property("said", f"killed a process {kills} times that had {len(said)} commits acknowledged")
    assert said
    assert {int(iteration) for iteration in said} <= kept.keys()
    assert set(kept.values()) == {BATCH}
    if isinstance(database, SqliteDatabase):
        assert database.query("PRAGMA integrity_check") == [("ok",)]
