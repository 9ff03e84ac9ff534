from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evalmeta.model.evaluation import Case, Evaluation
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, ContentKind, Run, RunContent, RunStatus, TestResult, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.store.remote_runs import RemoteRun, RemoteRuns
from evalmeta.store.run_lists import ListedRun, RunFilter, list_runs, run_page
from evalmeta.store.runs import Lease, RunJournal, Runs

if TYPE_CHECKING:
    from evalmeta.store.database import Database

URL = "https://dev.example"


STRICT = RunOptions(undecided="fail")
OPEN = TestResult("coherence", Verdict.UNDECIDED)


def cases(*verdicts: Verdict, results: tuple[TestResult, ...] = ()) -> tuple[CaseResult, ...]:
    return tuple(CaseResult(number, 1, "", verdict, 1.0, 2.0, results) for number, verdict in enumerate(verdicts, 1))


def run_here(
    database: Database,
    name: str,
    *verdicts: Verdict,
    now: float,
    options: RunOptions | None = None,
    content: RunContent = RunContent(b"<x/>"),  # noqa: B008 - immutable
) -> str:
    evaluation = Evaluation(name, "Desk", tuple(Case(number, ()) for number in range(1, 5)))
    runs = Runs(database)
    run_id = runs.start(EVALUATION_DEFINITION, evaluation, content, options or RunOptions(), total=4, now=now)
    runs.claim(run_id, "w", taken_from=Lease(None, None), until=now, now=now)
    RunJournal(database, run_id, "w").append(cases(*verdicts, results=(OPEN,) if options is STRICT else ()))
    return run_id


def run_there(database: Database, name: str, *verdicts: Verdict, now: float) -> str:
    run = Run("4KB5e0000000001AAA", name, "", RunStatus.COMPLETED, now, 4, ended=now + 1, cases=cases(*verdicts))
    RemoteRuns(database).keep(RemoteRun(URL, "dev", run, (run.id,)))
    return run.id


def counts(listed: ListedRun) -> tuple[int, int, int, int]:
    found = listed.summary
    return found.passed, found.failed, found.errors, found.undecided


def test_runs_of_all_orgs_are_sorted_by_time_and_have_counts(database: Database) -> None:
    first = run_here(database, "Orders", Verdict.PASS, Verdict.PASS, Verdict.FAILURE, now=1.0)
    there = run_there(database, "Orders", Verdict.PASS, Verdict.ERROR, Verdict.UNDECIDED, now=2.0)
    last = run_here(database, "Orders", now=3.0)
    found = [(run.org_url, run.org_name, run.id, run.status, run.started, counts(run)) for run in list_runs(database)]
    assert found == [
        ("", "", first, RunStatus.IN_PROGRESS, 1.0, (2, 1, 0, 0)),
        (URL, "dev", there, RunStatus.COMPLETED, 2.0, (1, 0, 1, 1)),
        ("", "", last, RunStatus.IN_PROGRESS, 3.0, (0, 0, 0, 0)),
    ]


def test_a_definitions_runs_are_listed_by_its_name_in_any_case(database: Database) -> None:
    run_here(database, "Returns", now=1.0)
    there = run_there(database, "Orders", now=2.0)
    assert [run.id for run in list_runs(database, RunFilter(test="orders"))] == [there]


def test_a_limit_lists_the_latest_runs(database: Database) -> None:
    ids = [run_here(database, "Orders", now=float(now)) for now in range(1, 4)]
    assert [run.id for run in list_runs(database, limit=2)] == ids[1:]


@pytest.mark.sqlite
def test_a_list_does_not_read_the_cases_of_runs_of_other_orgs(database: Database) -> None:
    run_there(database, "Orders", Verdict.PASS, now=1.0)
    database.execute("UPDATE remote_run SET body = json_remove(CAST(body AS TEXT), '$.testCases')")
    assert [run.summary.passed for run in list_runs(database)] == [1]
    assert [run.summary.passed for run in run_page(database, RunFilter(), limit=5).runs] == [1]


def test_complete_runs_of_all_orgs_are_sorted_by_time(database: Database) -> None:
    there = run_there(database, "Orders", now=3.0)
    first = run_here(database, "Orders", now=1.0)
    run_here(database, "Orders", now=2.0)
    Runs(database).finish(first, "w", RunStatus.COMPLETED, error=None, now=4.0)
    found = list_runs(database, RunFilter(status="COMPLETED"))
    assert [(run.org_url, run.id, run.started) for run in found] == [("", first, 1.0), (URL, there, 3.0)]


def test_only_runs_of_files_have_a_file(database: Database) -> None:
    contents = {
        "definition": RunContent(b'{"file": "of.yaml"}'),
        "file": RunContent(b'{"file": "of.yaml"}', ContentKind.FILE),
        "payload": RunContent(b'{"tests": []}', ContentKind.PAYLOAD),
        "cases": RunContent(b'{"cases": "0"}', ContentKind.CASES),
    }
    for name, content in contents.items():
        run_here(database, name, now=1.0, content=content)
    assert {run.definition: run.file for run in list_runs(database) if run.file} == {"file": "of.yaml"}


def test_runs_that_asked_suspect_cases_again_are_found_by_the_run_in_every_org(database: Database) -> None:
    run_here(database, "Orders", now=1.0)
    again = RunOptions(confirms="4KB1")
    here = run_here(database, "Orders", now=2.0, options=again)
    there = Run("4KB5e0000000001AAA", "Orders", "", RunStatus.COMPLETED, 3.0, 2, options=again)
    RemoteRuns(database).keep(RemoteRun(URL, "dev", there, (there.id,)))
    found = list_runs(database, RunFilter(confirms="4KB1"))
    assert [(run.org_url, run.id, run.confirms) for run in found] == [("", here, "4KB1"), (URL, there.id, "4KB1")]


def test_an_org_and_a_subject_choose_runs(database: Database) -> None:
    here = run_here(database, "Orders", now=1.0)
    run = Run("4KB5e0000000001AAA", "Orders", "Shop", RunStatus.COMPLETED, 2.0, 0)
    RemoteRuns(database).keep(RemoteRun(URL, "dev", run, (run.id,)))
    wanted = [RunFilter(org_url=""), RunFilter(subject="Desk"), RunFilter(org_url=URL), RunFilter(subject="Shop")]
    assert [[run.id for run in list_runs(database, chosen)] for chosen in wanted] == [
        [here],
        [here],
        [run.id],
        [run.id],
    ]


def test_strict_runs_count_undecided_as_failed_in_every_org(database: Database) -> None:
    run_here(database, "Orders", Verdict.PASS, Verdict.ERROR, now=1.0, options=STRICT)
    there = Run("4KB5e0000000001AAA", "Orders", "", RunStatus.COMPLETED, 2.0, 2, options=STRICT)
    there = replace(there, cases=cases(Verdict.PASS, Verdict.ERROR, results=(OPEN,)))
    RemoteRuns(database).keep(RemoteRun(URL, "dev", there, (there.id,)))
    assert [counts(run)[:3] for run in list_runs(database)] == [(0, 1, 1)] * 2


def test_averaged_cases_count_by_their_means_in_every_org(database: Database) -> None:
    options = RunOptions(iterations=2)
    scores = ((Verdict.FAILURE, 0.4), (Verdict.PASS, 1.0))
    averaged = [
        CaseResult(1, iteration, "", verdict, 1.0, 2.0, (TestResult("overlap", verdict, score=score, threshold=0.5),))
        for iteration, (verdict, score) in enumerate(scores, 1)
    ]
    here = run_here(
        database, "Orders", now=1.0, options=options, content=RunContent(b'{"file": "x"}', ContentKind.FILE)
    )
    RunJournal(database, here, "w").append(averaged)
    run = Run("4KB5e0000000001AAA", "Orders", "", RunStatus.COMPLETED, 2.0, 2, options=options, cases=tuple(averaged))
    RemoteRuns(database).keep(RemoteRun(URL, "dev", run, (run.id,)))
    assert [counts(each)[:2] for each in list_runs(database)] == [(2, 0), (2, 0)]


def test_partial_runs_and_runs_judged_again_are_marked_in_every_org(database: Database) -> None:
    part = RunOptions(shard=(1, 2))
    run_here(database, "Orders", now=1.0, options=part)
    run_there(database, "Orders", now=2.0)
    there = Run("4KB5e0000000002AAA", "Orders", "", RunStatus.COMPLETED, 3.0, 2, answers_of="4KB1", options=part)
    RemoteRuns(database).keep(RemoteRun(URL, "dev", there, (there.id,)))
    found = [(run.is_partial, run.answers_of, run.is_whole) for run in list_runs(database)]
    assert found == [(True, None, False), (False, None, True), (True, "4KB1", False)]
