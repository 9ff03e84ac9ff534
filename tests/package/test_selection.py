from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import NotFound, ProjectError, UsageError
from evalmeta.package.folders import find_components
from evalmeta.package.selection import Selection, components_under

if TYPE_CHECKING:
    from evalmeta.package.project import Project

HERE = Path()


def names(project: Project, *paths: Path) -> list[str]:
    return [each.full_name for each in components_under(project, find_components(project), paths)]


@pytest.mark.parametrize(
    "given",
    [
        {"source_dirs": (HERE,), "manifest": HERE},
        {"source_dirs": (HERE,), "metadata": ("X",)},
        {"manifest": HERE, "metadata": ("X",)},
    ],
)
def test_two_ways_to_select_cannot_be_combined(given: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="cannot be combined"):
        Selection(**given)  # type: ignore[arg-type]


def test_an_empty_selection_selects_everything() -> None:
    assert Selection().is_everything
    assert not Selection(manifest=HERE).is_everything


def test_a_folder_selects_its_components(dx_project: Project) -> None:
    assert names(dx_project, dx_project.root / "force-app/main") == ["Billing", "Orders", "Returns"]


def test_files_select_components_in_the_projects_order(dx_project: Project) -> None:
    folder = dx_project.root / "force-app/main/default/aiEvaluationDefinitions"
    files = [folder / f"{name}.aiEvaluationDefinition-meta.xml" for name in ("Returns", "Billing")]
    assert names(dx_project, *files) == ["Billing", "Returns"]


def test_paths_may_overlap(dx_project: Project) -> None:
    root = dx_project.root
    assert len(names(dx_project, root, root / "force-app", root / "force-app/main")) == 3


def test_relative_paths_start_in_the_current_folder(dx_project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(dx_project.root / "force-app")
    assert len(names(dx_project, Path("main"))) == 3


def test_a_link_to_a_folder_selects_the_folder(dx_project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    link = tmp_path_factory.mktemp("elsewhere") / "link"
    link.symlink_to(dx_project.root)
    assert len(names(dx_project, link / "force-app")) == 3


def test_a_path_that_does_not_exist_is_named(dx_project: Project) -> None:
    with pytest.raises(NotFound, match="nowhere: the file or folder does not exist"):
        names(dx_project, dx_project.root / "force-app", Path("nowhere"))


def test_a_path_outside_the_package_directories_is_refused_with_their_names(dx_project: Project) -> None:
    (dx_project.root / "other").mkdir()
    with pytest.raises(ProjectError, match=r"other: is outside .* \(force-app\)") as caught:
        names(dx_project, dx_project.root / "other")
    assert "sfdx-project.json" in caught.value.actions[0]


@pytest.mark.parametrize(("name", "why"), [("empty", "contains no components"), ("notes.txt", "is not a component")])
def test_a_path_without_components_says_so(dx_project: Project, name: str, why: str) -> None:
    path = dx_project.root / "force-app" / name
    path.touch() if path.suffix else path.mkdir()
    with pytest.raises(NotFound, match=why):
        names(dx_project, path)


@pytest.mark.parametrize("line", ["**/main/**", "Orders.*"])
def test_an_ignored_path_is_reported_with_the_line_that_ignores_it(dx_project: Project, line: str) -> None:
    (dx_project.root / ".forceignore").write_text(f"# what stays\n{line}\n")
    folder = dx_project.root / "force-app/main/default/aiEvaluationDefinitions"
    with pytest.raises(NotFound, match=r"is ignored by .* \(\.forceignore:2\)"):
        names(dx_project, folder / "Orders.aiEvaluationDefinition-meta.xml")
