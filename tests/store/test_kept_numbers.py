"""The numbers of results and the verdicts in lists of runs, and how many statements they take."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.model.evaluation import Case, Evaluation
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, RunContent, RunStatus, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.model.tally import Tally, summarise
from evalmeta.store.kept_numbers import KeptTally, whole_summary
from evalmeta.store.run_lists import RunFilter, find_listed, list_runs, recent_runs, run_page
from evalmeta.store.runs import Lease, RunJournal, Runs
from evalmeta.store.sqlite import SqliteDatabase
from store.test_run_lists_orgs import OPEN, STRICT, cases, run_here, run_there

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.store.database import Database
    from evalmeta.store.run_lists import ListedRun


def counts(database: Database, run_id: str) -> list[int]:
    listed = find_listed(database, run_id)
    assert listed is not None
    found = listed.summary
    return [found.passed, found.failed, found.errors, found.undecided]


def statements(database: Database, act: Callable[[Database], object]) -> int:
    """Return how many statements SQLite executes."""
    connection, seen = sqlite3.connect(database.path, isolation_level=None), list[str]()
    connection.set_trace_callback(seen.append)
    with SqliteDatabase(connection, Path(database.name)) as traced:
        act(traced)
    return len(seen)


@pytest.mark.sqlite
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


def finished(database: Database, case: CaseResult, *, options: RunOptions, kept: bool) -> ListedRun:
    """Return a run of one case in a list; `kept`: its worker saved the tally."""
    runs, evaluation = Runs(database), Evaluation("Orders", "Desk", (Case(1, ()),))
    run_id = runs.start(EVALUATION_DEFINITION, evaluation, RunContent(b"<x/>"), options, total=1, now=1.0)
    assert runs.claim(run_id, "w", taken_from=Lease(None, None), until=9.0, now=1.0)
    tally = Tally(options)
    RunJournal(database, run_id, "w", tally).append([case])
    saved = KeptTally.of(tally.summary(), RunStatus.COMPLETED, total=1).columns() if kept else (None, None)
    runs.finish(run_id, "w", RunStatus.COMPLETED, error=None, now=2.0, kept=saved)
    listed = find_listed(database, run_id)
    assert listed is not None
    return listed


PARTLY = cases(Verdict.PASS, results=(TestResult("topic", Verdict.PASS), OPEN))[0]


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(
    ("case", "min_decided", "verdict"),
    [
        (PARTLY, None, Verdict.PASS),
        (PARTLY, 0.6, Verdict.UNDECIDED),
        (PARTLY._replace(results=(TestResult("topic", Verdict.PASS), OPEN, OPEN)), None, Verdict.UNDECIDED),
        (cases(Verdict.UNDECIDED, results=(OPEN,))[0], 0.0, Verdict.UNDECIDED),
        (cases(Verdict.FAILURE)[0], None, Verdict.FAILURE),
    ],
)
def test_lists_have_the_verdict_of_the_one_rule(
    database: Database, case: CaseResult, min_decided: float | None, verdict: Verdict, *, kept: bool
) -> None:
    listed = finished(database, case, options=RunOptions(min_decided=min_decided), kept=kept)
    assert listed.verdict is verdict
    passed = [run.id for run in run_page(database, RunFilter(outcome="passed"), limit=5).runs]
    assert (listed.id in passed) == (verdict is Verdict.PASS)


def test_partly_judged_cases_are_counted_apart_in_lists(database: Database) -> None:
    listed = finished(database, PARTLY, options=RunOptions(), kept=True)
    assert (listed.summary.passed, listed.summary.partly_judged, listed.summary.coverage) == (0, 1, (1, 2, 0))


def test_a_run_with_missing_results_has_not_passed(database: Database) -> None:
    run_id = run_here(database, "Orders", Verdict.PASS, now=1.0)
    Runs(database).finish(run_id, "w", RunStatus.COMPLETED, error=None, now=4.0)
    listed = find_listed(database, run_id)
    assert listed is not None
    assert listed.verdict is Verdict.ERROR


def test_the_tally_of_a_run_that_is_over_is_not_computed_by_lists(database: Database) -> None:
    listed = finished(database, PARTLY, options=RunOptions(), kept=True)
    database.execute("DELETE FROM case_result")
    assert list_runs(database) == [listed]


AVERAGED = cases(Verdict.PASS, results=(TestResult("topic", Verdict.PASS, score=0.9, threshold=0.8),))[0]


@pytest.mark.parametrize("case", [*cases(Verdict.PASS, Verdict.FAILURE), PARTLY, AVERAGED])
def test_kept_counts_are_the_summary_of_the_results_or_are_not_used(database: Database, case: CaseResult) -> None:
    options = RunOptions(min_decided=0.4)
    listed = finished(database, case, options=options, kept=True)
    kept, counted = whole_summary(database, listed.id, options), summarise([case], options)
    assert kept == (None if counted.averages else counted)


def test_many_names_of_undecided_results_are_not_kept(database: Database) -> None:
    results = tuple(OPEN._replace(name=f"check {number}") for number in range(50))
    listed = finished(database, PARTLY._replace(results=results), options=RunOptions(), kept=True)
    assert whole_summary(database, listed.id, RunOptions()) is None
    assert listed.summary.coverage == (0, 50, 0)


def test_counts_that_do_not_say_what_they_lack_are_not_used(database: Database) -> None:
    listed = finished(database, cases(Verdict.PASS)[0], options=RunOptions(), kept=True)
    database.execute("UPDATE run SET tally = '[1,0,0,0,0,0,0,1,1,0]'")
    assert whole_summary(database, listed.id, RunOptions()) is None
    database.execute("UPDATE run SET tally = NULL, verdict = NULL")
    assert whole_summary(database, listed.id, RunOptions()) is None
