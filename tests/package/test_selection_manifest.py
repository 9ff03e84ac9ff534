from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import InvalidMetadata, ProjectError
from evalmeta.model.problem import Location, Problem
from evalmeta.model.registry import NEWEST_API_VERSION, ApiVersion, Manifest, ManifestTypes
from evalmeta.package.folders import find_components
from evalmeta.package.selection import resolve

if TYPE_CHECKING:
    from evalmeta.package.project import Project

TYPE = "AiEvaluationDefinition"


def manifest(*members: str, name: str = TYPE, version: str | None = None) -> Manifest:
    return Manifest((ManifestTypes(name, members),), version)


def selected(project: Project, wanted: Manifest | None) -> list[str]:
    return [component.full_name for component in resolve(project, manifest=wanted).components]


def problems(project: Project, wanted: Manifest) -> tuple[Problem, ...]:
    with pytest.raises(InvalidMetadata) as caught:
        resolve(project, manifest=wanted, manifest_path=Path("manifest/package.xml"))
    return caught.value.problems


def test_components_are_sorted_by_name(dx_project: Project) -> None:
    (dx_project.root / "force-app" / f"Alpha.{TYPE[0].lower()}{TYPE[1:]}").touch()
    assert [component.full_name for component in find_components(dx_project)] == [
        "Alpha",
        "Billing",
        "Orders",
        "Returns",
    ]


@pytest.mark.parametrize("name", ["Orders", "ORDERS"])
def test_two_files_with_one_full_name_are_both_named(dx_project: Project, name: str) -> None:
    second = dx_project.root / "force-app" / f"{name}.aiEvaluationDefinition"
    second.touch()
    with pytest.raises(InvalidMetadata, match="have the same full name") as caught:
        find_components(dx_project)
    (problem,) = caught.value.problems
    first = dx_project.root / "force-app/main/default/aiEvaluationDefinitions/Orders.aiEvaluationDefinition-meta.xml"
    assert problem.code == "full-name-duplicate"
    assert all(str(path) in problem.message for path in (first, second))


def test_a_folder_that_cannot_be_read_is_a_project_error(dx_project: Project) -> None:
    too_long = dx_project.root / ("x" * 300)
    with pytest.raises(ProjectError, match="cannot be read"):
        find_components(replace(dx_project, package_directories=(too_long,)))


def test_without_a_manifest_all_components_are_selected(dx_project: Project) -> None:
    assert selected(dx_project, None) == ["Billing", "Orders", "Returns"]


def test_the_wildcard_selects_all_components(plain_project: Project) -> None:
    assert selected(plain_project, manifest("*")) == ["Billing", "Orders"]


def test_members_select_only_themselves(dx_project: Project) -> None:
    assert selected(dx_project, manifest("Returns", "Billing")) == ["Billing", "Returns"]


def test_repeated_members_and_types_are_merged(dx_project: Project) -> None:
    blocks = (ManifestTypes(TYPE, ("Orders", "Orders")), ManifestTypes(TYPE, ("*", "Billing")))
    assert selected(dx_project, Manifest(blocks)) == ["Billing", "Orders", "Returns"]


def test_type_names_are_found_in_any_case(dx_project: Project) -> None:
    assert selected(dx_project, manifest("Orders", name="aievaluationdefinition")) == ["Orders"]


def test_a_member_without_file_is_a_problem_with_the_nearest_name(dx_project: Project) -> None:
    (problem,) = problems(dx_project, manifest("orders", "Billing"))
    assert problem.code == "manifest-member-missing"
    assert problem.location == Location("manifest/package.xml")
    assert problem.message == "the project has no AiEvaluationDefinition 'orders'"
    assert (problem.hint, problem.component) == ("Did you mean Orders?", f"{TYPE}:orders")


def test_a_wildcard_inside_a_name_is_explained(dx_project: Project) -> None:
    assert problems(dx_project, manifest("Ord*"))[0].hint.startswith("Write a <members> for each name")


@pytest.mark.parametrize("name", ["a:b", "a\\b", "a\nb", "a\udcff"])
def test_a_file_with_an_unsafe_name_is_reported(dx_project: Project, name: str) -> None:
    (dx_project.root / "force-app" / f"{name}.aiEvaluationDefinition").touch()
    with pytest.raises(InvalidMetadata) as caught:
        find_components(dx_project)
    assert [problem.code for problem in caught.value.problems] == ["full-name-unsafe"]


def test_a_plain_folders_manifest_says_its_version(plain_project: Project) -> None:
    manifest_file = plain_project.root / "package.xml"
    manifest_file.write_text(
        '<Package xmlns="http://soap.sforce.com/2006/04/metadata"><version>65.0</version></Package>'
    )
    assert resolve(plain_project).api_version == ApiVersion(65)
    manifest_file.write_text(manifest_file.read_text().replace("65", "61"))
    with pytest.raises(ProjectError, match=r"the version in package\.xml, 61\.0, is too old"):
        resolve(plain_project)


def test_a_member_without_similar_names_has_no_hint(dx_project: Project) -> None:
    assert problems(dx_project, manifest("Zzz"))[0].hint == ""


def test_every_missing_member_is_one_problem(dx_project: Project) -> None:
    names = [f"Order{number}" for number in range(100)]
    found = problems(dx_project, manifest("*", *names, *names))
    assert [problem.component for problem in found] == [f"{TYPE}:{name}" for name in names]


def test_an_unknown_type_is_a_problem_with_the_nearest_type(dx_project: Project) -> None:
    (problem,) = problems(dx_project, manifest("*", name="AiEvalutionDefinition"))
    assert (problem.code, problem.hint) == ("manifest-type-unknown", f"Did you mean {TYPE}?")


def test_a_type_without_similar_names_lists_the_known_ones(dx_project: Project) -> None:
    (problem,) = problems(dx_project, manifest("*", name="a flow"))
    assert problem.hint == f"Known types: {TYPE}, AiTestingDefinition, AiAgentScorerDefinition, AiAuthoringBundle."


@pytest.mark.parametrize("wanted", [Manifest(()), manifest()])
def test_a_manifest_that_selects_nothing_says_so(dx_project: Project, wanted: Manifest) -> None:
    (problem,) = problems(dx_project, wanted)
    assert (problem.code, problem.message) == ("manifest-selects-nothing", "the manifest selects nothing")


def test_a_wildcard_in_an_empty_project_selects_nothing(dx_project: Project) -> None:
    shutil.rmtree(dx_project.root / "force-app/main")
    assert [problem.code for problem in problems(dx_project, manifest("*"))] == ["manifest-selects-nothing"]


def test_the_summary_counts_the_problems_that_it_does_not_show(dx_project: Project) -> None:
    with pytest.raises(InvalidMetadata, match=r"package\.xml: the project has no .* 'A' \(1 more\)"):
        resolve(dx_project, manifest=manifest("A", "B"))


def test_a_callback_returns_lines_and_columns(dx_project: Project) -> None:
    places = {(TYPE.lower(), "A"): (4, 9), ("a flow", ""): (8, 5)}
    blocks = (ManifestTypes(TYPE.lower(), ("A",)), ManifestTypes("a flow", ("*",)))
    with pytest.raises(InvalidMetadata) as caught:
        resolve(dx_project, manifest=Manifest(blocks), locate=lambda name, member: places[name, member])
    assert {str(problem.location) for problem in caught.value.problems} == {"package.xml:4:9", "package.xml:8:5"}


def test_the_api_version_in_force_is_the_nearest_one_given(dx_project: Project) -> None:
    project = replace(dx_project, api_version=ApiVersion(65))
    wanted = manifest("*", version="64.0")
    assert resolve(project, manifest=wanted, api_version=ApiVersion(63)).api_version == ApiVersion(63)
    assert resolve(project, manifest=wanted).api_version == ApiVersion(64)
    assert resolve(project, manifest=manifest("*")).api_version == ApiVersion(65)
    assert resolve(project).api_version == ApiVersion(65)
    assert resolve(dx_project).api_version == NEWEST_API_VERSION


def test_an_invalid_version_is_a_problem(dx_project: Project) -> None:
    (problem,) = problems(dx_project, manifest("*", version="newest"))
    assert (problem.code, problem.hint) == ("manifest-version-invalid", "Write a version such as 68.0.")


def test_contents_are_never_read(dx_project: Project) -> None:
    for component in find_components(dx_project):
        component.path.write_bytes(b"\xff no XML")
    assert len(resolve(dx_project).components) == 3


def test_a_manifest_beside_destructive_changes_may_select_nothing(dx_project: Project) -> None:
    assert resolve(dx_project, manifest=Manifest(()), may_be_empty=True).components == ()
    with pytest.raises(InvalidMetadata, match="the project has no"):
        resolve(dx_project, manifest=manifest("Absent"), may_be_empty=True)


def test_a_project_older_than_its_types_is_resolved_in_the_version_of_the_types(dx_project: Project) -> None:
    assert resolve(replace(dx_project, api_version=ApiVersion(61))).api_version == ApiVersion(63)
