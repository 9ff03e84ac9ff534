from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from evalmeta.client.runs import extend_run, fetch_definition, rescore_run
from evalmeta.errors import EvalmetaError, NotFound, OrgFault, SettingsError, SubjectNotBound
from evalmeta.model.evaluation import today
from evalmeta.model.run import Run, RunStatus, Verdict
from evalmeta.model.run_options import RunOptions, Scoring
from evalmeta.model.settings import Settings
from evalmeta.org import runs as reruns
from evalmeta.org.run_worker import work
from evalmeta.package.project import find_project
from evalmeta.store.runs import Runs
from org.parts import (
    SETTINGS,
    asked,
    definition,
    deploy,
    embedded,
    follow_up,
    make_project,
    numbers,
    opened_of,
    package,
    started,
)

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from evalmeta.client.connection import Connection
    from evalmeta.package.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project")


def finished(project: Project, **options: object) -> str:
    run_id = started(project, cases=3, options=RunOptions(**options))
    with opened_of(project) as org:
        asyncio.run(work(org, run_id))
    return run_id


def extended(project: Project, run_id: str, iterations: int) -> Run:
    async def extend(connection: Connection) -> Run:
        await extend_run(connection, run_id, iterations=iterations)
        return await follow_up(connection, run_id)

    return embedded(project, extend)


def rescored(project: Project, run_id: str, *, as_deployed: bool = False, **options: object) -> Run:
    async def rescore(connection: Connection) -> Run:
        new_id = await rescore_run(connection, run_id, RunOptions(**options), as_deployed=as_deployed)
        return await follow_up(connection, new_id)

    return embedded(project, rescore)


def test_an_extended_run_asks_its_new_iterations_only(project: Project) -> None:
    run_id = finished(project, cases=(1, 3))
    run = extended(project, run_id, 3)
    assert (run.id, run.status, run.total) == (run_id, RunStatus.COMPLETED, 6)
    assert numbers(run) == [(iteration, number) for iteration in (1, 2, 3) for number in (1, 3)]
    assert sorted(asked(project)) == ["Orders 1"] * 3 + ["Orders 3"] * 3


def test_a_worker_runs_iterations_added_before_its_claim(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = finished(project)
    with opened_of(project) as org:
        before = org.runs.get(run_id)
        reruns.extend_run(org, before, iterations=2)
        looks = [before]
        get = Runs.get
        monkeypatch.setattr(Runs, "get", lambda runs, sought: looks.pop() if looks else get(runs, sought))
        asyncio.run(work(org, run_id))
    assert len(asked(project)) == 6


@pytest.mark.parametrize(("iterations", "said"), [(2, "3 to 1000 iterations, not to 2"), (1001, "not to 1001")])
def test_a_run_is_extended_to_more_iterations_within_the_limit(project: Project, iterations: int, said: str) -> None:
    run_id = finished(project, iterations=2)
    with pytest.raises(EvalmetaError, match=said):
        extended(project, run_id, iterations)


def test_a_run_in_progress_is_neither_extended_nor_rescored(project: Project) -> None:
    run_id = started(project, cases=1)
    with opened_of(project) as org:
        run = org.runs.get(run_id)
        with pytest.raises(OrgFault, match="is not over: its status is NEW"):
            reruns.extend_run(org, run, iterations=2)
        with pytest.raises(OrgFault, match="is not over: its status is NEW"):
            reruns.rescore_run(org, run, RunOptions(), as_deployed=False)
        with pytest.raises(OrgFault, match="is not over"):
            reruns.extend_run(org, replace(run, status=RunStatus.COMPLETED), iterations=2)


def test_a_run_of_an_agent_that_is_no_longer_bound_is_not_extended(project: Project) -> None:
    run_id = finished(project)
    (project.root / "evalmeta.toml").write_text("")
    with opened_of(project) as org:
        bare = replace(org, settings=Settings)
        with pytest.raises(SubjectNotBound):
            reruns.extend_run(bare, org.runs.get(run_id), iterations=2)
        assert org.runs.get(run_id).status is RunStatus.COMPLETED


def test_answers_are_judged_again_by_other_rules_without_asking(project: Project) -> None:
    first = finished(project, iterations=2, cases=(2, 3))
    again = rescored(project, first, scoring=Scoring(profile="testing-center"), seed=4)
    assert (again.answers_of, again.options.scoring.profile) == (first, "testing-center")
    assert numbers(again) == [(1, 2), (1, 3), (2, 2), (2, 3)]
    assert {case.verdict for case in again.cases} == {Verdict.PASS}
    assert len(asked(project)) == 4


def test_answers_are_judged_again_as_often_as_they_were_given(project: Project) -> None:
    first = finished(project, iterations=2, iterations_by="run")
    with opened_of(project) as org:
        again = reruns.rescore_run(org, org.runs.get(first), RunOptions(), as_deployed=False)
        options = org.runs.get(again).options
    assert (options.iterations, options.iterations_by) == (2, "run")


def test_answers_that_were_judged_again_can_be_once_more_and_are_not_extended(project: Project) -> None:
    first = finished(project)
    again = rescored(project, first)
    assert rescored(project, again.id).answers_of == first
    with pytest.raises(EvalmetaError, match=f"scores the answers of run {first}; extend that run"):
        extended(project, again.id, 2)


def test_answers_are_judged_by_the_definition_that_is_deployed_now(project: Project) -> None:
    first = finished(project)
    with opened_of(project) as org:
        content = definition("Orders", cases=4).replace(b"<utterance>Orders 2", b"<utterance>Which orders?")
        deploy(org, package({"Orders": content}))
    again = rescored(project, first, as_deployed=True)
    assert again.total == len(again.cases) == 4
    assert [case.error for case in again.cases] == [
        None,
        "the recorded answer is to 'Orders 2'",
        None,
        "no answer to this case was recorded",
    ]


def test_a_definition_that_is_gone_judges_nothing(project: Project) -> None:
    run_id = finished(project)
    with opened_of(project) as org:
        org.database.execute("DELETE FROM component")
    with pytest.raises(NotFound, match="Orders is no longer deployed"):
        rescored(project, run_id, as_deployed=True)
    assert embedded(project, lambda connection: fetch_definition(connection, run_id)).current is None


def test_of_two_who_extend_a_run_one_does(project: Project) -> None:
    run_id = finished(project)
    with opened_of(project) as org:
        run = org.runs.get(run_id)
        reruns.extend_run(org, run, iterations=2)
        with pytest.raises(OrgFault, match="is not over"):
            reruns.extend_run(org, run, iterations=2)


def test_how_answers_are_judged_is_checked_before(project: Project) -> None:
    run_id, options = finished(project), RunOptions(scoring=Scoring(rater="nobody"))
    with opened_of(project) as org, pytest.raises(SettingsError, match="the rater 'nobody' is not configured"):
        reruns.rescore_run(org, org.runs.get(run_id), options, as_deployed=False)


def quarantine(project: Project, until: date) -> Project:
    """List case 2 of Orders; return the project as it is now."""
    entry = f'[[quarantine]]\ntest = "Orders"\ncase = 2\nreason = "flaky"\nuntil = {until}\n'
    (project.root / "evalmeta.toml").write_text(SETTINGS + entry)
    return find_project(project.root)


def quarantined(run: Run) -> list[bool]:
    return [case.is_quarantined for case in run.cases]


def test_a_run_marks_the_results_of_listed_cases(project: Project) -> None:
    project = quarantine(project, today())
    run_id = finished(project)
    with opened_of(project) as org:
        assert [case.is_quarantined for case in org.runs.stream(run_id)] == [False, True, False]


def test_a_quarantine_that_has_ended_is_recorded_and_counts(project: Project) -> None:
    project = quarantine(project, today() - timedelta(days=1))
    with opened_of(project) as org:
        started_id = started(project, cases=3)
        asyncio.run(work(org, started_id))
        second = org.runs.case(started_id, 1, 2)
        assert (second.is_quarantined, second.quarantine.reason) == (False, "flaky")


def test_rescoring_judges_by_the_day_on_which_the_agent_was_asked(project: Project) -> None:
    project = quarantine(project, today() - timedelta(days=1))
    run_id = finished(project)
    # As if the agent had been asked on the last day of the quarantine.
    with opened_of(project) as org:
        org.database.execute("UPDATE run SET created_at = created_at - 86400, started_at = started_at - 86400")
    assert quarantined(rescored(project, run_id)) == [False, True, False]


def test_a_resumed_run_has_one_day(project: Project) -> None:
    project = quarantine(project, today() - timedelta(days=1))
    run_id = started(project, cases=3)
    with opened_of(project) as org:
        org.database.execute("UPDATE run SET created_at = created_at - 86400, started_at = created_at - 86400")
        asyncio.run(work(org, run_id))
        assert [case.is_quarantined for case in org.runs.stream(run_id)] == [False, True, False]
