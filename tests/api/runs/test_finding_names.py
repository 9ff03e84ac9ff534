from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from api.runs.test_comparisons import FAILURE, PASS, keep, run
from evalmeta.api.runs.baselines import open_baseline
from evalmeta.api.runs.comparisons import compare_with, load_run
from evalmeta.api.runs.finding import is_run_name, locate, run_id_of
from evalmeta.errors import NotFound
from evalmeta.model.run_options import RunOptions
from org.parts import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.package.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    found = make_project(tmp_path / "project")
    keep(found, run(1, PASS), run(2, FAILURE), run(3, PASS, name="Returns"), run(4, PASS, prefix="3A2"))
    keep(found, run(5, PASS))
    return found


@pytest.mark.parametrize(
    ("name", "started"),
    [("latest", 5), ("previous", 2), ("latest:Returns", 3), ("latest:orders", 5), ("previous:Orders", 2)],
)
def test_a_name_is_the_newest_run_or_the_one_of_the_same_test_before(project: Project, name: str, started: int) -> None:
    assert load_run(project, name).started == started
    assert locate(project, name).id == run_id_of(project, name)


def test_a_run_that_only_asked_suspect_cases_again_has_no_name(project: Project) -> None:
    keep(project, run(6, FAILURE), run(7, PASS, options=RunOptions(cases=(1,), confirms=run(6).id)))
    assert (run_id_of(project, "latest"), run_id_of(project, "previous")) == (run(6).id, run(5).id)


def test_an_id_stays_as_it_is(project: Project) -> None:
    assert run_id_of(project, "4KB000000000001GAA") == "4KB000000000001GAA"
    assert not is_run_name("4KB000000000001GAA")
    assert not is_run_name("latest:")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("latest:Nothing", "there is no run of Nothing here"),
        ("previous:Returns", "there is no run of Returns here before the latest one"),
    ],
)
def test_a_name_without_a_run_is_an_error(project: Project, name: str, message: str) -> None:
    with pytest.raises(NotFound, match=message):
        run_id_of(project, name)


def test_an_org_without_runs_is_an_error(project: Project) -> None:
    with pytest.raises(NotFound, match="there is no run in this org"):
        run_id_of(project, "latest", org_url="https://dev.example.com")


@pytest.mark.parametrize("name", ["latest", "previous"])
def test_each_run_is_compared_with_the_complete_run_before_it(project: Project, tmp_path: Path, name: str) -> None:
    baseline = open_baseline(project, type(tmp_path)(name))
    found = compare_with(baseline, [load_run(project, "latest")]).tests[0]
    assert found is not None
    assert found.before == load_run(project, "previous").id
    assert compare_with(baseline, [load_run(project, "latest:Returns")]).tests == ()
