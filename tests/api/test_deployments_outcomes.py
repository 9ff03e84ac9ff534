from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.deployments import failure_of, outcome_of
from evalmeta.api.packages import DeployPackage
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.package.folders import find_components
from evalmeta.package.project import find_project
from evalmeta.protocol.metadata_api import DeployDetails, DeployMessage, DeployResult

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.package.project import Project

KIND, NAME = "AiEvaluationDefinition", "Returns_Desk_Checks"
FILE = f"aiEvaluationDefinitions/{NAME}.aiEvaluationDefinition"
DONE = DeployMessage(KIND, NAME, f"zip/{FILE}", success=True)
RESULT = DeployResult("0Af1", "Succeeded", done=True, success=True)


@pytest.fixture
def project(copy_samples: Callable[[str], Path]) -> Project:
    return find_project(copy_samples("failing"))


def told(*successes: DeployMessage, failures: tuple[DeployMessage, ...] = ()) -> DeployResult:
    return replace(RESULT, details=DeployDetails(failures, successes))


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, "Unchanged"),
        ({"changed": True}, "Changed"),
        ({"changed": True, "created": True}, "Created"),
        ({"changed": True, "deleted": True}, "Deleted"),
    ],
)
def test_changes_to_a_component_are_reported_with_the_projects_file(
    project: Project, change: dict[str, bool], state: str
) -> None:
    [component] = outcome_of(told(replace(DONE, **change)), project).components
    assert (component.state, component.full_name, component.file) == (state, NAME, FILE)


def test_components_that_the_project_does_not_have_are_reported_with_the_orgs_file(project: Project) -> None:
    [component] = outcome_of(told(replace(DONE, full_name="Other")), project).components
    assert component.file == f"zip/{FILE}"


def test_the_message_about_the_manifest_is_not_a_component(project: Project) -> None:
    manifest = DeployMessage("", "package.xml", "package.xml", success=True)
    assert outcome_of(told(manifest), project).components == ()


def test_a_refused_component_is_a_problem_with_its_place(project: Project) -> None:
    refused = replace(DONE, success=False, problem="no", line_number=6, column_number=5)
    [problem] = outcome_of(told(failures=(refused,)), project).problems
    assert (str(problem.location), problem.message, problem.component) == (f"{FILE}:6:5", "no", f"{KIND}:{NAME}")


def test_a_warning_of_the_org_is_reported_unless_it_is_known(project: Project) -> None:
    warned = told(replace(DONE, problem="odd", problem_type="Warning"))
    known = Problem("odd", Severity.WARNING, Location(FILE), "odd")
    package = DeployPackage(b"", find_components(project), warnings=(known,))
    assert outcome_of(warned, project).messages == (f"{FILE}: odd",)
    assert outcome_of(warned, project, package).messages == ()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"status": "Failed"}, "deployment 0Af1 failed; the org was not changed"),
        ({"status": "Failed", "error_message": "x"}, "deployment 0Af1 failed: x; the org was not changed"),
        ({"status": "Failed", "check_only": True}, "validation 0Af1 failed; the org was not changed"),
        ({"status": "Canceled"}, "deployment 0Af1 was canceled; the org was not changed"),
    ],
)
def test_a_failure_says_that_nothing_was_changed(project: Project, change: dict[str, object], said: str) -> None:
    assert str(failure_of(outcome_of(replace(RESULT, **change), project))) == said
