"""The numbers of results in lists of runs, and how many statements they take."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.model.run import RunStatus, Verdict
from evalmeta.store.database import Database
from evalmeta.store.history import list_runs
from evalmeta.store.run_counts import counts_of_runs
from evalmeta.store.run_lists import RunFilter, recent_runs, run_page
from evalmeta.store.runs import Lease, RunJournal, Runs
from store.test_history import STRICT, cases, run_here, run_there

if TYPE_CHECKING:
    from collections.abc import Callable


def counts(database: Database, run_id: str) -> list[int]:
    return counts_of_runs(database, {run_id: STRICT})[run_id]


def statements(database: Database, act: Callable[[Database], object]) -> int:
    """Return how many statements SQLite executes."""
    connection, seen = sqlite3.connect(database.path, isolation_level=None), list[str]()
    connection.set_trace_callback(seen.append)
    with Database(connection, database.path) as traced:
        act(traced)
    return len(seen)


@pytest.mark.parametrize(
    "act",
    [
        lambda database: recent_runs(database, of_each=9),
        lambda database: run_page(database, RunFilter(), limit=50),
        list_runs,
    ],
)
def test_a_longer_list_of_runs_takes_no_more_statements(database: Database, act: Callable[[Database], object]) -> None:
    def add() -> None:
        run_there(database, "Returns", Verdict.PASS, now=1.0)
        for options in (STRICT, None):
            run_id = run_here(database, "Orders", Verdict.PASS, now=2.0, options=options)
            Runs(database).finish(run_id, "w", RunStatus.COMPLETED, error=None, now=4.0)

    add()
    act(database)
    few = statements(database, act)
    for _ in range(4):
        add()
    act(database)
    assert statements(database, act) == few


def test_full_results_of_a_run_that_is_over_are_counted_once(database: Database) -> None:
    run_id = run_here(database, "Orders", Verdict.PASS, Verdict.ERROR, now=1.0, options=STRICT)
    Runs(database).finish(run_id, "w", RunStatus.COMPLETED, error=None, now=4.0)
    first = counts(database, run_id)

    database.execute("UPDATE case_result SET body = 'null'")
    assert (first, counts(database, run_id)) == ([0, 1, 1, 0], first)


def test_an_extended_run_is_counted_again(database: Database) -> None:
    run_id = run_here(database, "Orders", Verdict.PASS, now=1.0, options=STRICT)
    runs = Runs(database)
    runs.finish(run_id, "w", RunStatus.COMPLETED, error=None, now=4.0)
    assert counts(database, run_id) == [0, 1, 0, 0]

    runs.extend(run_id, STRICT, total=8)
    assert runs.claim(run_id, "w", taken_from=Lease(None, None), until=9.0, now=5.0)
    RunJournal(database, run_id, "w").append([cases(Verdict.ERROR)[0]._replace(iteration=2)])
    runs.finish(run_id, "w", RunStatus.COMPLETED, error=None, now=9.0)
    assert counts(database, run_id) == [0, 1, 1, 0]


def test_a_large_unfinished_run_is_not_read_for_its_counts(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_LIVE_CASES", 1)
    run_id = run_here(database, "Orders", Verdict.PASS, Verdict.ERROR, now=1.0, options=STRICT)
    assert counts(database, run_id) == [1, 0, 1, 0]

    Runs(database).finish(run_id, "w", RunStatus.COMPLETED, error=None, now=4.0)
    assert counts(database, run_id) == [0, 1, 1, 0]
