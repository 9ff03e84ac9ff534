from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.model.evaluation import Case, Evaluation
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.login import ADMIN, User
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, Run, RunContent, RunStatus, TestResult, Verdict
from evalmeta.model.run_options import Origin, RunOptions
from evalmeta.model.tally import Tally
from evalmeta.store.database import open_database
from evalmeta.store.runs import Lease, RunJournal, Runs
from stores import store_in

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.store.database import Database

EVALUATION = Evaluation("Orders", "Desk", (Case(1, ()), Case(2, ())), "v3")
OPTIONS = RunOptions(iterations=2, min_pass_rate=0.5, undecided="fail", concurrency=3, case_timeout=1.5)
RUN_ID = "4KB000000000001GAA"
ANSWER = GeneratedData("It's <here> &amp; now.", None, (Action(" odd 'name' &amp; "),), 1.25)
RESULT = TestResult("topic_assertion", Verdict.PASS, "Orders", "Orders", 1.0)
FREE = Lease(None, None)
DONE = CaseResult(1, 1, "Where?", Verdict.PASS, 10.0, 11.5, (RESULT,), ANSWER)


@pytest.fixture
def runs(database: Database) -> Runs:
    """One run, made at 100."""
    made = Runs(database)
    made.start(EVALUATION_DEFINITION, EVALUATION, RunContent(b"<xml/>"), OPTIONS, total=4, now=100)
    return made


def claim(runs: Runs, worker: str, *, taken_from: Lease = FREE) -> bool:
    return runs.claim(RUN_ID, worker, taken_from=taken_from, until=115)


def test_a_new_run_has_all_its_options(runs: Runs) -> None:
    expected = Run(RUN_ID, "Orders", "Desk", RunStatus.NEW, 100, 4, "v3", options=OPTIONS)
    assert runs.get(RUN_ID) == expected
    assert runs.content(RUN_ID) == RunContent(b"<xml/>")


def test_a_new_run_is_the_latest_also_after_the_clock_was_set_back(database: Database) -> None:
    runs = Runs(database)
    made = []
    for clock in (10_000.0, 6_400.0, 6_401.0):
        now = runs.next_timestamp(clock)
        made.append(runs.start(EVALUATION_DEFINITION, EVALUATION, RunContent(b"<xml/>"), OPTIONS, total=4, now=now))
        assert runs.claim(made[-1], "worker", taken_from=FREE, until=clock + 15, now=clock + 1)
        latest = runs.latest(EVALUATION_DEFINITION, "Orders")
        assert latest
        assert latest.id == made[-1]
    assert [each.started for each in map(runs.get, made) if each] == [10_001.0, 10_001.0, 10_001.0]


def test_a_run_that_does_not_exist_is_none(runs: Runs) -> None:
    assert runs.get("4KB000000000009GAA") is None


def test_a_free_run_can_be_claimed_once(runs: Runs) -> None:
    assert claim(runs, "w1")
    assert not claim(runs, "w2")
    assert (runs.lease(RUN_ID), runs.get(RUN_ID).status) == (Lease("w1", 115), RunStatus.IN_PROGRESS)


def test_a_run_can_be_taken_over_while_its_lease_is_unchanged(runs: Runs) -> None:
    claim(runs, "w1")
    assert not claim(runs, "w2", taken_from=Lease("w0", 115))
    assert claim(runs, "w2", taken_from=Lease("w1", 115))


def test_a_run_cannot_be_taken_over_after_its_lease_was_renewed(runs: Runs) -> None:
    claim(runs, "w1")
    runs.renew(RUN_ID, "w1", until=130)
    assert not claim(runs, "w2", taken_from=Lease("w1", 115))


def test_only_the_owner_renews_its_lease(runs: Runs) -> None:
    claim(runs, "w1")
    assert runs.renew(RUN_ID, "w1", until=200)
    assert not runs.renew(RUN_ID, "w2", until=300)
    assert runs.lease(RUN_ID) == Lease("w1", 200)


def test_a_released_run_can_be_claimed(runs: Runs) -> None:
    claim(runs, "w1")
    runs.release(RUN_ID, "w2")
    assert not claim(runs, "w3")
    runs.release(RUN_ID, "w1")
    assert claim(runs, "w3")


def test_only_the_owner_finishes_a_run(runs: Runs) -> None:
    claim(runs, "w1")
    runs.finish(RUN_ID, "w2", RunStatus.ERROR, error="no", now=120)
    assert runs.get(RUN_ID).status is RunStatus.IN_PROGRESS
    runs.finish(RUN_ID, "w1", RunStatus.COMPLETED, error=None, now=130)
    run = runs.get(RUN_ID)
    assert (run.status, run.ended, run.error) == (RunStatus.COMPLETED, 130, None)


def test_a_run_that_is_over_cannot_be_claimed(runs: Runs) -> None:
    claim(runs, "w1")
    runs.finish(RUN_ID, "w1", RunStatus.COMPLETED, error=None, now=130)
    assert not any(claim(runs, "w2", taken_from=lease) for lease in (Lease("w1", 115), FREE))


@pytest.fixture
def journal(database: Database, runs: Runs) -> RunJournal:
    """The journal of the worker that has the run."""
    claim(runs, "w1")
    return RunJournal(database, RUN_ID, "w1")


def test_a_case_is_read_back_unchanged(runs: Runs, journal: RunJournal) -> None:
    broken = CaseResult(2, 1, "And?", Verdict.ERROR, 12.0, 13.0, error="no answer")
    journal.append([broken, DONE])
    assert runs.cases(RUN_ID) == (DONE, broken)
    assert journal.finished() == {(1, 1), (1, 2)}


def test_cases_are_sorted_by_iteration_and_number(runs: Runs, journal: RunJournal) -> None:
    for iteration, number in ((2, 1), (1, 10), (1, 9)):
        journal.append([DONE._replace(iteration=iteration, number=number)])
    assert [(case.iteration, case.number) for case in runs.cases(RUN_ID)] == [(1, 9), (1, 10), (2, 1)]


def test_finished_cases_are_counted_by_verdict(runs: Runs, journal: RunJournal) -> None:
    journal.append([DONE._replace(number=number, verdict=verdict) for number, verdict in enumerate(Verdict)])
    assert runs.count(RUN_ID) == dict.fromkeys(Verdict, 1)


@pytest.mark.parametrize("others", [1, 2_000])
def test_an_append_that_fails_keeps_none_of_its_cases(journal: RunJournal, others: int) -> None:
    journal.append([DONE])
    with pytest.raises(StoreError):
        journal.append([*(DONE._replace(number=2 + more) for more in range(others)), DONE._replace(number=None)])
    assert journal.finished() == {(1, 1)}


@pytest.mark.parametrize("others", [0, 1, 4, 2_000])
def test_a_result_that_is_appended_again_counts_once_and_the_first_of_a_case_stays(
    database: Database, runs: Runs, journal: RunJournal, others: int
) -> None:
    journal.append([DONE])
    counted = RunJournal(database, RUN_ID, "w1", tally := Tally(RunOptions()))
    late = DONE._replace(number=2, ended=99.0)
    journal.append([DONE._replace(number=2)])
    counted.append([*(DONE._replace(number=3 + more) for more in range(others)), DONE, late])
    assert runs.cases(RUN_ID)[:2] == (DONE, DONE._replace(number=2))
    assert len(journal.finished()) == 2 + others
    assert tally.summary().total == 1 + others


def test_a_batch_of_large_results_is_not_held_twice(journal: RunJournal) -> None:
    answer = replace(ANSWER, outcome="x" * 100_000)
    batch = [DONE._replace(number=number, generated=answer) for number in range(1, 101)]
    tracemalloc.start()
    try:
        journal.append(batch)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3_000_000


def test_a_worker_that_lost_the_run_cannot_append(runs: Runs, journal: RunJournal) -> None:
    claim(runs, "w2", taken_from=Lease("w1", 115))
    with pytest.raises(StoreError, match="taken over by another worker"):
        journal.append([DONE])
    assert runs.cases(RUN_ID) == ()


def test_a_run_that_was_deleted_takes_no_more_cases(database: Database, journal: RunJournal) -> None:
    database.execute("DELETE FROM run")
    with pytest.raises(StoreError, match="was deleted"):
        journal.append([DONE])


def test_a_run_that_is_over_takes_no_more_cases(runs: Runs, journal: RunJournal) -> None:
    runs.finish(RUN_ID, "w1", RunStatus.COMPLETED, error=None, now=130)
    with pytest.raises(StoreError):
        journal.append([DONE])


def test_a_canceled_run_keeps_its_cases_and_takes_no_more(runs: Runs, journal: RunJournal) -> None:
    journal.append([DONE])
    assert runs.cancel(RUN_ID, error="canceled by Ada", now=130)
    with pytest.raises(StoreError):
        journal.append([DONE._replace(number=2)])
    run = runs.get(RUN_ID)
    assert (run.status, run.ended, run.error) == (RunStatus.TERMINATED, 130, "canceled by Ada")
    assert runs.cases(RUN_ID) == (DONE,)


def test_a_run_that_is_over_cannot_be_canceled(runs: Runs) -> None:
    assert runs.cancel(RUN_ID, error="x", now=130)
    assert not runs.cancel(RUN_ID, error="y", now=140)
    assert runs.get(RUN_ID).error == "x"


def test_another_process_sees_a_case_as_soon_as_it_is_appended(folder: Path, journal: RunJournal) -> None:
    journal.append([DONE])
    reader = open_database(store_in(folder))
    assert Runs(reader).cases(RUN_ID) == (DONE,)
    reader.close()


@pytest.mark.parametrize(("cases", "size", "most"), [(3, 10**6, 3), (10**6, 1, 1)])
def test_pages_have_a_maximum_of_cases_and_bytes(
    runs: Runs, database: Database, monkeypatch: pytest.MonkeyPatch, cases: int, size: int, most: int
) -> None:
    monkeypatch.setattr(limits, "MAX_PAGE_CASES", cases)
    monkeypatch.setattr(limits, "MAX_PAGE_BYTES", size)
    claim(runs, "w1")
    done = tuple(DONE._replace(iteration=iteration, number=number) for iteration in (1, 2) for number in (1, 2))
    RunJournal(database, RUN_ID, "w1").append(done)
    places = {(0, 0): 0, (1, 1): 1, (1, 2): 2, (2, 2): 4}
    assert [runs.page(RUN_ID, after=place) for place in places] == [done[at : at + most] for at in places.values()]


def test_a_run_is_seen_by_its_user_and_by_admins(runs: Runs) -> None:
    user = User("005000000000002AAA", "ci", "ci")
    run_id = runs.start(EVALUATION_DEFINITION, EVALUATION, RunContent(b""), OPTIONS, total=4, now=1, user=user)
    assert [runs.is_visible_to(each, user) for each in (run_id, RUN_ID)] == [True, False]
    assert [runs.is_visible_to(each, ADMIN) for each in (run_id, RUN_ID, "gone")] == [True, True, False]


def test_a_case_is_found_by_iteration_and_number(runs: Runs, journal: RunJournal) -> None:
    journal.append([DONE])
    assert (runs.case(RUN_ID, 1, 1), runs.case(RUN_ID, 2, 1)) == (DONE, None)


def test_a_run_names_the_run_whose_answers_it_judges(runs: Runs) -> None:
    made = runs.start(
        EVALUATION_DEFINITION, EVALUATION, RunContent(b"<xml/>"), OPTIONS, total=4, now=101, answers_of=RUN_ID
    )
    assert (runs.get(made).answers_of, runs.get(RUN_ID).answers_of) == (RUN_ID, None)


def test_a_run_that_is_over_can_be_extended(runs: Runs, journal: RunJournal) -> None:
    journal.append([DONE])
    assert not runs.extend(RUN_ID, OPTIONS, total=8)
    runs.finish(RUN_ID, "w1", RunStatus.ERROR, error="stopped", now=130)
    more = replace(OPTIONS, iterations=4)
    assert not runs.extend(RUN_ID, more, total=3)
    assert runs.extend(RUN_ID, more, total=8)
    found = runs.get(RUN_ID)
    assert (found.status, found.total, found.ended, found.error, found.options) == (RunStatus.NEW, 8, None, None, more)
    assert runs.cases(RUN_ID) == (DONE,)


@pytest.mark.parametrize(
    ("status", "now"), [(RunStatus.ERROR, RunStatus.NEW), (RunStatus.COMPLETED, RunStatus.COMPLETED)]
)
def test_only_a_run_that_stopped_continues_with_the_same_total(
    runs: Runs, journal: RunJournal, status: RunStatus, now: RunStatus
) -> None:
    journal.append([DONE])
    runs.finish(RUN_ID, "w1", status, error=None, now=130)
    assert runs.extend(RUN_ID, OPTIONS, total=4) is (now is RunStatus.NEW)
    assert runs.get(RUN_ID).status is now


def test_a_run_that_ended_elsewhere_is_saved_without_results(runs: Runs, database: Database) -> None:
    ended = Run("elsewhere", "Orders", "Desk", RunStatus.COMPLETED, 5.0, 2, "v1", ended=7.0)
    content = RunContent(b"<xml/>")
    with database.transaction():
        run_id = runs.keep_ended(EVALUATION_DEFINITION, ended, content)
    assert runs.get(run_id) == replace(ended, id=run_id)
    assert (runs.content(run_id), runs.stored_page(run_id, after=(0, 0), cases=10, size=10)) == (content, [])
    runs.record(run_id, replace(ended.options, cases=(1,)), total=1)
    assert runs.get(run_id) == replace(ended, id=run_id, total=1, options=replace(ended.options, cases=(1,)))


def test_runs_that_asked_are_listed_newest_first_and_those_of_a_suite_all(runs: Runs, database: Database) -> None:
    def keep(started: float, *, confirms: str = "", answers_of: str | None = None) -> str:
        options = RunOptions(confirms=confirms, origin=Origin("suite"))
        run = Run("", "Orders", "Desk", RunStatus.COMPLETED, started, 1, answers_of=answers_of, options=options)
        with database.transaction():
            return runs.keep_ended(EVALUATION_DEFINITION, run, RunContent(b""))

    first, second = keep(5.0), keep(6.0)
    others = [keep(7.0, confirms=first), keep(8.0, answers_of=second)]
    asked = [run.id for run in runs.newest_asked() if run.options.origin.suite == "suite"]
    assert asked == [second, first]
    assert [run.id for run in runs.of_suite("suite")] == [first, second, *others]
