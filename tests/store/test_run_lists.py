"""Lists of runs: filters, rights and pages."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest

from evalmeta.model.evaluation import Evaluation
from evalmeta.model.login import ADMIN, User
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, Run, RunContent, RunStatus, Verdict
from evalmeta.model.run_options import Origin, RunOptions
from evalmeta.store import run_lists
from evalmeta.store.remote_runs import RemoteRun, RemoteRuns
from evalmeta.store.run_lists import (
    RunFilter,
    distinct_values,
    find_listed,
    newest_named,
    newest_runs,
    recent_runs,
    run_page,
)
from evalmeta.store.run_orders import ORDERS, RunOrder, RunPlace
from evalmeta.store.runs import Lease, RunJournal, Runs

if TYPE_CHECKING:
    from evalmeta.store.database import Database

TAGGED = Origin("s1", "fix", tags=("smoke", "slow"))
OTHER = User("005000000000002AAA", "Ann", "ann@evalmeta.local")


def start(
    database: Database, name: str, *verdicts: Verdict, now: float, user: User = ADMIN, origin: Origin | None = None
) -> str:
    runs = Runs(database)
    options = RunOptions(origin=origin or Origin())
    run_id = runs.start(
        EVALUATION_DEFINITION,
        Evaluation(name, "Desk", ()),
        RunContent(b"<x/>"),
        options,
        total=len(verdicts),
        now=now,
        user=user,
    )
    if verdicts:
        assert runs.claim(run_id, "w", taken_from=Lease(None, None), until=9e9, now=now)
        RunJournal(database, run_id, "w").append(
            [CaseResult(n, 1, "?", verdict, 1, 2) for n, verdict in enumerate(verdicts, 1)]
        )
        runs.finish(run_id, "w", RunStatus.COMPLETED, error=None, now=now + 1)
    return run_id


@pytest.fixture
def three(database: Database) -> list[str]:
    """Three runs: one passed, one failed, one that waits."""
    return [
        start(database, "Orders", Verdict.PASS, now=1, origin=Origin("s1", "main")),
        start(
            database,
            "Refunds",
            Verdict.PASS,
            Verdict.FAILURE,
            now=2,
            origin=Origin("s1", "fix", tags=("smoke", "slow")),
        ),
        start(database, "Orders", now=3),
    ]


def ids(database: Database, wanted: RunFilter) -> list[str]:
    return [run.id for run in run_page(database, wanted, limit=10).runs]


def test_the_newest_run_comes_first_with_its_counts(database: Database, three: list[str]) -> None:
    page = run_page(database, RunFilter(), limit=10)

    assert [run.id for run in page.runs] == three[::-1]
    assert (page.runs[1].summary.passed, page.runs[1].summary.failed, page.runs[1].verdict) == (1, 1, Verdict.FAILURE)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (RunFilter(outcome="passed"), [0]),
        (RunFilter(outcome="failed"), [1]),
        (RunFilter(outcome="unfinished"), [2]),
        (RunFilter(outcome="undecided"), []),
        (RunFilter(test="orders"), [2, 0]),
        (RunFilter(text="FUND"), [1]),
        (RunFilter(text="100%"), []),
        (RunFilter(suite="s1"), [1, 0]),
        (RunFilter(branch="fix"), [1]),
        (RunFilter(tag="slow"), [1]),
        (RunFilter(tag="slo"), []),
        (RunFilter(since=2), [2, 1]),
        (RunFilter(until=2, subject="Desk"), [1, 0]),
    ],
)
def test_filters(database: Database, three: list[str], wanted: RunFilter, expected: list[int]) -> None:
    assert ids(database, wanted) == [three[place] for place in expected]


def test_a_user_sees_the_own_runs_and_an_admin_all(database: Database) -> None:
    mine, theirs = start(database, "Orders", now=1, user=OTHER), start(database, "Orders", now=2)

    assert ids(database, RunFilter(user=OTHER)) == [mine]
    assert ids(database, RunFilter(user=ADMIN)) == [theirs, mine]
    assert find_listed(database, theirs, user=OTHER) is None
    assert [each.id for each in recent_runs(database, of_each=5, user=OTHER)["Orders"]] == [mine]


def test_pages_together_are_the_whole_list(database: Database) -> None:
    all_runs = [start(database, "Orders", now=number // 2) for number in range(5)]

    found, after = [], None
    for _ in range(3):
        page = run_page(database, RunFilter(), limit=2, after=after)
        found += [run.id for run in page.runs]
        after = page.after

    assert (found, after) == (all_runs[::-1], None)


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("by", sorted(ORDERS))
@pytest.mark.parametrize("is_descending", [False, True])
def test_pages_of_a_sorted_list_are_the_whole_list(database: Database, by: str, *, is_descending: bool) -> None:
    start(database, "orders", Verdict.FAILURE, Verdict.FAILURE, Verdict.UNDECIDED, now=4)
    start(database, "Refunds", Verdict.ERROR, now=5)
    order = RunOrder(by, is_descending)

    whole = run_page(database, RunFilter(), limit=10, order=order).runs
    found, after = [], None
    for _ in whole:
        page = run_page(database, RunFilter(), limit=1, after=after, order=order)
        found += [run.id for run in page.runs]
        after = RunPlace.read(page.after.text, order) if page.after else None

    assert len({*found}) == 5
    assert found == [run.id for run in whole]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("test", ["Orders", "orders", "Refunds"]),
        ("result", ["orders", "Orders", "Refunds"]),
        ("pass-rate", ["orders", "Orders", "Refunds"]),
        ("failed", ["Orders", "Refunds", "orders"]),
        ("took", ["orders", "Orders", "Refunds"]),
    ],
)
def test_a_sorted_list_has_runs_whose_value_is_not_known_at_its_end(
    database: Database, by: str, expected: list[str]
) -> None:
    start(database, "Orders", Verdict.PASS, now=3)
    start(database, "orders", Verdict.FAILURE, now=2)
    start(database, "Refunds", now=1)

    up, down = (run_page(database, RunFilter(), limit=9, order=RunOrder(by, down)).runs for down in (False, True))

    assert [run.definition for run in up] in (expected, [expected[1], expected[0], expected[2]])
    if by in {"result", "pass-rate", "took"}:
        assert up[-1].definition == down[-1].definition == "Refunds"


@pytest.mark.parametrize("text", ["", "x", "1", "1~", "x~4KB", "1~4KB~x"])
def test_a_text_that_is_not_a_place_is_none(text: str) -> None:
    assert RunPlace.read(text, RunOrder("failed")) is None


def test_runs_of_other_orgs_are_listed_too(database: Database) -> None:
    cases = (CaseResult(1, 1, "?", Verdict.FAILURE, 1, 2),)
    run = Run("4KB000000000001AAA", "Orders", "Desk", RunStatus.COMPLETED, 5, 1, cases=cases)
    RemoteRuns(database).keep(RemoteRun("https://org.test", "dev", replace(run, ended=6), (run.id,)))

    [listed] = run_page(database, RunFilter(outcome="failed"), limit=10).runs

    assert (listed.org_name, listed.subject, listed.summary.failed) == ("dev", "Desk", 1)


@pytest.mark.usefixtures("three")
def test_values_of_a_column_are_listed_once(database: Database) -> None:
    assert distinct_values(database, "definition") == ["Orders", "Refunds"]
    assert distinct_values(database, "branch") == ["fix", "main"]
    assert distinct_values(database, "tag") == ["slow", "smoke"]


UNLIKELY = {"since": 9e9, "until": 0.0, "user": OTHER, "outcome": "undecided"}


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("name", [field.name for field in fields(RunFilter)])
def test_each_field_of_a_filter_leaves_runs_out(database: Database, name: str) -> None:
    assert ids(database, replace(RunFilter(), **{name: UNLIKELY.get(name, "nowhere")})) == []


def test_runs_are_read_in_batches_and_none_is_left_out(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_lists, "_CHUNK", 2)
    started = [start(database, f"Test_{number}", now=number // 2) for number in range(5)]

    assert [run.id for run in newest_runs(database)] == started[::-1]
    assert [run.id for run in newest_runs(database, limit=3)] == started[:1:-1]
    named = [(run.id, run.definition) for run in newest_named(database)]
    assert named == [(run_id, f"Test_{n}") for n, run_id in reversed([*enumerate(started)])]
    assert [*newest_runs(database, RunFilter(test="Test_9"))] == []


def test_every_field_of_a_filter_has_a_condition() -> None:
    assert {*run_lists.CONDITIONS, "outcome"} == {field.name for field in fields(RunFilter)}


@pytest.mark.sqlite
def test_a_page_of_runs_sorts_no_others(database: Database) -> None:
    listed = "SELECT * FROM listed_run WHERE 1 ORDER BY started DESC, id DESC LIMIT 100"
    steps = [step[3] for step in database.query(f"EXPLAIN QUERY PLAN {listed}")]
    assert "SCAN run USING INDEX run_by_start" in steps
    assert not any("TEMP B-TREE" in step for step in steps)
