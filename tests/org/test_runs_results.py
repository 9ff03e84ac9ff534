from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, RunStatus, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.org.runs import placeholders, prepare_file_run, start_prepared
from evalmeta.protocol.connect import read_run, write_run
from org.parts import make_project, opened_of, started

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.run import Run

BROKEN = CaseResult(1, 1, "Orders 1", Verdict.ERROR, 1, 2, error="no answer")


def shown(
    tmp_path: Path, status: RunStatus, *cases: CaseResult, chosen: tuple[int, ...] | None = None
) -> tuple[Run, tuple[CaseResult, ...]]:
    project = make_project(tmp_path / "project")
    run_id = started(project, cases=2, options=RunOptions(iterations=2, cases=chosen))
    with opened_of(project) as org:
        run = org.runs.get(run_id)
        assert run is not None
        assert EVALUATION_DEFINITION.run_prefix == run_id[:3]
        run = replace(run, status=status, started=1, ended=3, cases=cases)
        return run, placeholders(org, run)


def test_a_broken_case_has_an_error_for_every_expectation(tmp_path: Path) -> None:
    _, [case] = shown(tmp_path, RunStatus.IN_PROGRESS, BROKEN)
    assert [(result.name, result.verdict, result.error) for result in case.results] == [
        ("topic_assertion", Verdict.ERROR, "no answer")
    ]


@pytest.mark.parametrize("status", [RunStatus.ERROR, RunStatus.TERMINATED])
def test_a_run_that_ended_early_has_an_error_for_every_case_it_never_asked(tmp_path: Path, status: RunStatus) -> None:
    _, cases = shown(tmp_path, status, BROKEN._replace(verdict=Verdict.PASS, error=None))
    assert sorted((case.iteration, case.number) for case in cases) == [(1, 2), (2, 1), (2, 2)]
    assert {case.error for case in cases} == {"the run ended before this case was run"}


def test_a_case_that_was_asked_less_often_than_it_says_has_an_error_for_each_time(tmp_path: Path) -> None:
    spec = "subject: Desk\ntestCases:\n- {input: a, contains: x, iterations: 3}\n- {input: b, contains: x}\n"
    project = make_project(tmp_path / "project")
    (project.root / "t.yaml").write_text(spec)
    with opened_of(project) as opened:
        org = replace(opened, reads_files=True)
        prepared = prepare_file_run(org, "t.yaml", RunOptions(), subject_name="Desk")
        run = org.runs.get(start_prepared(org, prepared))
        assert run is not None
        assert (run.total, run.options.most_iterations) == (4, 3)
        stopped = replace(run, status=RunStatus.TERMINATED, cases=(BROKEN._replace(verdict=Verdict.PASS, error=None),))
        missing = placeholders(org, stopped)
    assert [(case.iteration, case.number) for case in missing] == [(1, 2), (2, 1), (3, 1)]


def test_a_case_that_was_not_chosen_was_not_to_be_asked(tmp_path: Path) -> None:
    _, cases = shown(tmp_path, RunStatus.TERMINATED, chosen=(2,))
    assert [(case.iteration, case.number) for case in cases] == [(1, 2), (2, 2)]


def test_a_run_in_progress_has_no_placeholders(tmp_path: Path) -> None:
    assert shown(tmp_path, RunStatus.IN_PROGRESS)[1] == ()


@pytest.mark.parametrize("status", list(RunStatus))
def test_placeholders_are_removed_when_a_run_is_read(tmp_path: Path, status: RunStatus) -> None:
    run, cases = shown(tmp_path, status, BROKEN)
    assert read_run(write_run(run, escape=True, placeholders=cases)) == run


def test_a_run_that_broke_ends_the_poll_of_salesforces_clients(tmp_path: Path) -> None:
    run, cases = shown(tmp_path, RunStatus.ERROR)
    written = write_run(run, escape=True, placeholders=cases)
    assert written["status"] == "COMPLETED"
    assert [case["status"] for case in written["testCases"]] == ["ERROR"] * 4
