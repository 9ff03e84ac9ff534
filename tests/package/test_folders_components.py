from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import ProjectError
from evalmeta.package.folders import component_files

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.package.project import Project

SUFFIX = "aiEvaluationDefinition"


def names(project: Project) -> list[str]:
    return sorted(component.full_name for component in component_files(project))


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_a_component_may_be_in_any_folder_of_a_package_directory(dx_project: Project) -> None:
    file = touch(dx_project.root / "force-app" / "x" / "y" / f"Deep.{SUFFIX}-meta.xml")
    assert file in [component.path for component in component_files(dx_project)]


def test_metadata_format_is_found_in_a_package_directory_too(dx_project: Project) -> None:
    touch(dx_project.root / "force-app" / f"Bare.{SUFFIX}")
    assert names(dx_project) == ["Bare", "Billing", "Orders", "Returns"]


def test_files_outside_the_package_directories_are_not_the_projects(dx_project: Project) -> None:
    touch(dx_project.root / "other" / f"Stray.{SUFFIX}-meta.xml")
    assert "Stray" not in names(dx_project)


@pytest.mark.parametrize("folder", [".hidden", "node_modules", "a/.git/b", "a/node_modules/b"])
def test_hidden_folders_and_node_modules_are_skipped(dx_project: Project, folder: str) -> None:
    touch(dx_project.root / "force-app" / folder / f"Skipped.{SUFFIX}-meta.xml")
    assert "Skipped" not in names(dx_project)


def test_a_folder_with_a_components_name_is_not_a_component(dx_project: Project) -> None:
    (dx_project.root / "force-app" / f"Folder.{SUFFIX}").mkdir()
    assert "Folder" not in names(dx_project)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_links_to_outside_are_not_followed(
    dx_project: Project, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    outside = touch(tmp_path_factory.mktemp("outside") / f"Outside.{SUFFIX}-meta.xml")
    link = dx_project.root / "force-app" / outside.name
    link.symlink_to(outside if kind == "file" else outside.parent)
    assert "Outside" not in names(dx_project)


def test_links_inside_are_followed_once(dx_project: Project) -> None:
    touch(dx_project.root / "shared" / f"Shared.{SUFFIX}-meta.xml")
    (dx_project.root / "force-app" / "one").symlink_to(dx_project.root / "shared")
    (dx_project.root / "force-app" / "two").symlink_to(dx_project.root / "shared")
    assert names(dx_project).count("Shared") == 1


def test_loops_of_links_end(dx_project: Project) -> None:
    (dx_project.root / "force-app" / "up").symlink_to(dx_project.root / "force-app")
    (dx_project.root / "force-app" / "self").symlink_to("self")
    (dx_project.root / "force-app" / "broken").symlink_to("nowhere")
    assert names(dx_project) == ["Billing", "Orders", "Returns"]


def test_a_package_directory_that_is_not_a_folder_is_named(dx_project: Project) -> None:
    folder = dx_project.root / "force-app"
    folder.rename(dx_project.root / "moved")
    with pytest.raises(ProjectError, match="the package directory 'force-app' does not exist"):
        names(dx_project)
    folder.touch()
    with pytest.raises(ProjectError, match="the package directory 'force-app' is not a folder"):
        names(dx_project)


def test_a_plain_folder_has_its_components_directly_in_the_types_folder(plain_project: Project) -> None:
    folder = plain_project.root / "aiEvaluationDefinitions"
    touch(folder / "deeper" / f"Deeper.{SUFFIX}")
    touch(plain_project.root / f"Above.{SUFFIX}")
    touch(folder / "notes.txt")
    assert names(plain_project) == ["Billing", "Orders"]


def test_source_format_is_found_in_a_plain_folder_too(plain_project: Project) -> None:
    touch(plain_project.root / "aiEvaluationDefinitions" / f"Source.{SUFFIX}-meta.xml")
    assert "Source" in names(plain_project)


def test_a_plain_folder_that_links_outside_is_not_followed(
    plain_project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = plain_project.root / "aiEvaluationDefinitions"
    moved = folder.rename(tmp_path_factory.mktemp("outside") / "moved")
    folder.symlink_to(moved)
    assert names(plain_project) == []


def test_a_plain_folder_without_the_types_folder_is_empty(plain_project: Project) -> None:
    (plain_project.root / "aiEvaluationDefinitions").rename(plain_project.root / "moved")
    assert names(plain_project) == []


@pytest.mark.parametrize("line", ["force-app/main", "aiEvaluationDefinitions/", "**/default/**", "*-meta.xml"])
def test_ignored_files_are_skipped(dx_project: Project, line: str) -> None:
    touch(dx_project.root / "force-app" / f"Bare.{SUFFIX}")
    (dx_project.root / ".forceignore").write_text(line)
    assert names(dx_project) == ["Bare"]


def test_files_are_also_ignored_in_a_plain_folder(plain_project: Project) -> None:
    (plain_project.root / ".forceignore").write_text("Orders.*")
    assert names(plain_project) == ["Billing"]
    (plain_project.root / ".forceignore").write_text("/aiEvaluationDefinitions/")
    assert names(plain_project) == []


def test_an_ignored_package_directory_is_empty(dx_project: Project) -> None:
    (dx_project.root / ".forceignore").write_text("force-app")
    assert names(dx_project) == []


def test_links_to_ignored_folders_are_ignored(dx_project: Project) -> None:
    touch(dx_project.root / "force-app" / "drafts" / f"Draft.{SUFFIX}")
    (dx_project.root / "force-app" / "link").symlink_to(dx_project.root / "force-app" / "drafts")
    (dx_project.root / ".forceignore").write_text("drafts")
    assert "Draft" not in names(dx_project)
