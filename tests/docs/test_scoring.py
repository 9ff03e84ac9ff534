from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

from evalmeta.api.deployments import deploy
from evalmeta.api.runs.org import finish_run
from evalmeta.api.selections import resolve
from evalmeta.client.runs import start_run
from evalmeta.model.expectations import known_names, scorer_names
from evalmeta.model.run_options import ActionMatch, RunOptions, Scoring, ScoringProfile
from evalmeta.package.project import find_project
from org.parts import embedded

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.client.connection import Connection
    from evalmeta.model.run import CaseResult

PAGE = (Path(__file__).parent.parent.parent / "docs/scoring.md").read_text()
ROW = re.compile(r"^\| (\d+) \| (\w+) \| .+ \| ([A-Z]+) \| ([A-Z]+) \|$", re.MULTILINE)


def documented(profile: ScoringProfile) -> list[tuple[int, str, str]]:
    column = 2 + get_args(ScoringProfile).index(profile)
    return [(int(row[0]), row[1], row[column]) for row in ROW.findall(PAGE)]


@pytest.mark.parametrize("profile", get_args(ScoringProfile))
def test_the_sample_project_is_judged_as_its_table_says(
    copy_samples: Callable[[str], Path], profile: ScoringProfile
) -> None:
    project = find_project(copy_samples("grading"))

    async def judge(connection: Connection) -> tuple[CaseResult, ...]:
        await deploy(connection, project, resolve(project))
        options = RunOptions(scoring=Scoring(profile))
        run_id = await start_run(connection, "Delivery_Desk_Grading", options=options)
        return (await finish_run(connection, run_id)).run.cases

    cases = embedded(project, judge)
    assert [
        (case.number, result.name, result.verdict.value) for case in cases for result in case.results
    ] == documented(profile)


def test_the_table_has_differences_and_agreements() -> None:
    pairs = {(row[2], row[3]) for row in ROW.findall(PAGE)}
    assert {"PASS", "FAILURE"} <= {one for one, other in pairs if one == other}
    assert len([one for one, other in pairs if one != other]) >= 3


def test_every_name_and_every_way_of_matching_has_its_row() -> None:
    names = {*known_names(), *scorer_names("AGENT"), *scorer_names("PROMPT"), *get_args(ActionMatch)}
    assert [name for name in names if not re.search(rf"^\|.*`{name}`", PAGE, re.MULTILINE)] == []
