from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.selections import read_manifest, resolve, validate_selection
from evalmeta.errors import InvalidMetadata, NotFound, UsageError
from evalmeta.model.registry import ApiVersion
from evalmeta.package.project import find_project
from evalmeta.package.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

TYPE = "AiEvaluationDefinition"
PACKAGE = '<Package xmlns="http://soap.sforce.com/2006/04/metadata">{}</Package>'
ALL = f"<types><members>*</members><name>{TYPE}</name></types>"


@pytest.fixture
def project(copy_samples: Callable[[str], Path]) -> Path:
    return copy_samples("dx-project")


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        (Selection(), ["Meter_Conversations", "Outage_Desk", "Tariff_Criteria"]),
        (Selection(manifest=Path("manifest/package.xml")), ["Meter_Conversations", "Outage_Desk", "Tariff_Criteria"]),
        (Selection(metadata=(f"{TYPE}:*_Desk",)), ["Outage_Desk"]),
        (Selection(source_dirs=(Path("force-app"),)), ["Meter_Conversations", "Outage_Desk", "Tariff_Criteria"]),
    ],
)
def test_each_way_to_select_gives_components(project: Path, selection: Selection, names: list[str]) -> None:
    found = resolve(find_project(project), selection)
    assert [component.full_name for component in found.components] == names
    assert found.api_version == ApiVersion(64)


def test_the_version_that_is_asked_for_comes_first(project: Path) -> None:
    assert (
        resolve(find_project(project), Selection(metadata=(TYPE,)), api_version=ApiVersion(66)).api_version.major == 66
    )


def test_destructive_changes_select_nothing_to_take(project: Path) -> None:
    Path("destructiveChanges.xml").write_text(PACKAGE.format(""))
    with pytest.raises(UsageError, match="lists what to delete"):
        resolve(find_project(project), Selection(manifest=Path("destructiveChanges.xml")))


def test_a_manifest_of_any_name_can_be_read_as_destructive_changes(project: Path) -> None:
    path = project / "old.xml"
    path.write_text(PACKAGE.format(ALL))
    with pytest.raises(InvalidMetadata) as refused:
        read_manifest(path, destructive=True)
    assert [problem.code for problem in refused.value.problems] == ["destructive-wildcard"]


def test_a_selection_is_checked_with_its_manifest(project: Path) -> None:
    assert validate_selection(Selection(manifest=Path("manifest/package.xml")), start=project).files == 4
    assert validate_selection(Selection(metadata=(f"{TYPE}:Outage_Desk",))).files == 1


def test_a_manifest_that_names_too_much_has_problems_as_values(project: Path) -> None:
    path = project / "other.xml"
    path.write_text(PACKAGE.format(f"{ALL.replace('*', 'Absent')}<version>64.0</version>"))
    found = validate_selection(Selection(manifest=path))
    assert [str(problem.location) for problem in found.problems] == ["other.xml:1:65"]
    assert not found.is_valid


@pytest.mark.parametrize("content", ["", "<version>64.0</version>"])
def test_destructive_changes_are_checked_by_their_name(project: Path, content: str) -> None:
    path = project / "destructiveChangesPre.xml"
    path.write_text(PACKAGE.format(content))
    assert validate_selection(Selection(manifest=path)).is_valid


def test_an_unknown_name_is_an_error_instead_of_a_problem(project: Path) -> None:
    with pytest.raises(NotFound):
        validate_selection(Selection(metadata=(f"{TYPE}:Absent",)), start=project)


def test_a_selection_is_checked_in_the_version_of_its_manifest(project: Path) -> None:
    path = project / "manifest/package.xml"
    path.write_text(path.read_text().replace("<version>64.0", "<version>63.0"))
    codes = {problem.code for problem in validate_selection(Selection(manifest=path), start=project).problems}
    assert codes == {"parameter-version"}


@pytest.mark.parametrize("types", ["", f"<types><name>{TYPE}</name></types>", ALL.replace("AiEv", "AiTest", 1)])
def test_a_manifest_that_selects_nothing_is_reported(project: Path, types: str) -> None:
    path = project / "package.xml"
    path.write_text(PACKAGE.format(f"{types.replace('AiTestaluation', 'AiTesting')}<version>66.0</version>"))
    found = validate_selection(Selection(manifest=path), start=project)
    assert [problem.code for problem in found.problems] == ["manifest-selects-nothing"]


def test_a_name_that_stands_twice_hides_no_other_problem(project: Path) -> None:
    folder = project / "force-app/x"
    folder.mkdir()
    (folder / "Outage_Desk.aiEvaluationDefinition").write_text("<broken")
    codes = {problem.code for problem in validate_selection(Selection(source_dirs=(folder,)), start=project).problems}
    assert codes == {"full-name-duplicate", "xml-malformed"}
