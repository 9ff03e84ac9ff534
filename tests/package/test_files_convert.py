from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.errors import InvalidMetadata
from evalmeta.model.registry import TYPES, Component
from evalmeta.package.components import entries_of
from evalmeta.package.files import parse_safe_file_name
from evalmeta.package.folders import target_path
from evalmeta.package.project import Project

TYPE = TYPES[0]
ROOT = Path("/project")
DX = Project(ROOT, is_dx=True, package_directories=(ROOT / "a", ROOT / "b"), api_version=None)
PLAIN = Project(ROOT, is_dx=False, package_directories=(ROOT,), api_version=None)


def test_an_entry_has_the_metadata_formats_name() -> None:
    component = Component(TYPE, "X", ROOT / "anywhere" / "X.aiEvaluationDefinition-meta.xml")
    assert list(entries_of(component)) == [("aiEvaluationDefinitions/X.aiEvaluationDefinition", component.path)]


@pytest.mark.parametrize("file_name", ["My_Test.aiEvaluationDefinition", "My_Test.aiEvaluationDefinition-meta.xml"])
def test_both_formats_name_the_same_component(file_name: str) -> None:
    assert parse_safe_file_name(file_name) == (TYPE, "My_Test")


def test_dots_belong_to_the_full_name() -> None:
    assert parse_safe_file_name("a.b.aiEvaluationDefinition") == (TYPE, "a.b")


@pytest.mark.parametrize(
    "file_name",
    [
        "package.xml",
        "X.cls-meta.xml",
        "aiEvaluationDefinition",
        ".aiEvaluationDefinition",
        "-meta.xml",
        "X.aiEvaluationDefinition-meta.xml-meta.xml",
        "._X.aiEvaluationDefinition-meta.xml",
        "../X.aiEvaluationDefinition",
        "a\\X.aiEvaluationDefinition",
        "C:X.aiEvaluationDefinition",
        "X\0.aiEvaluationDefinition",
        "X\n.aiEvaluationDefinition",
    ],
)
def test_other_names_are_not_components(file_name: str) -> None:
    assert parse_safe_file_name(file_name) is None


def test_new_components_of_a_dx_project_are_in_its_default_package_directory() -> None:
    folder = ROOT / "a" / "main" / "default" / "aiEvaluationDefinitions"
    assert target_path(DX, TYPE, "X") == folder / "X.aiEvaluationDefinition-meta.xml"


def test_new_components_of_a_plain_folder_are_in_metadata_format() -> None:
    assert target_path(PLAIN, TYPE, "X") == ROOT / "aiEvaluationDefinitions" / "X.aiEvaluationDefinition"


@pytest.mark.parametrize("full_name", ["", ".", "..", "../X", "/etc/X", "a\\b", "C:X", "X\0", "X\n"])
def test_unsafe_full_names_have_no_path(full_name: str) -> None:
    with pytest.raises(InvalidMetadata) as caught:
        target_path(DX, TYPE, full_name)
    assert [problem.code for problem in caught.value.problems] == ["full-name-unsafe"]


@given(st.text(), st.sampled_from([DX, PLAIN]))
def test_a_target_is_read_back_as_the_component_it_was_made_for(full_name: str, project: Project) -> None:
    try:
        target = target_path(project, TYPE, full_name)
    except InvalidMetadata:
        assert parse_safe_file_name(f"{full_name}.{TYPE.suffix}") is None
    else:
        assert parse_safe_file_name(target.name) == (TYPE, full_name)
        assert target.parent.name == TYPE.directory
