from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]


@pytest.fixture
def project(copy_samples: Callable[[str], Path]) -> Path:
    return copy_samples("dx-project")


def test_a_project_is_converted_and_back(evalmeta: Program, project: Path) -> None:
    there = evalmeta("convert", "source", "--output-dir", "mdapi")
    back = evalmeta("convert", "metadata", "--root-dir", "mdapi")

    assert there.out.startswith("Converted 3 components.")
    assert (project / "mdapi/package.xml").is_file()
    assert back.out.count("Unchanged") == 3


def test_one_folder_can_be_converted(evalmeta: Program, project: Path) -> None:
    files = json.loads(evalmeta("convert", "source", "-r", "force-app/main", "--json").out)["result"]["files"]

    assert len(files) == 4
    assert (project / "metadataPackage").is_dir()


def test_the_converted_folder_is_a_project_to_deploy(
    evalmeta: Program, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalmeta("convert", "source", "-d", "mdapi")
    plain = project.rename(project.parent / "before") / "mdapi"
    plain.rename(project)
    monkeypatch.chdir(project)

    assert "Deployed 3 components" in evalmeta("deploy", "-x", "package.xml").out


def test_other_content_is_overwritten_only_by_force(evalmeta: Program, project: Path) -> None:
    (project / "mdapi").mkdir()
    (project / "mdapi/package.xml").write_text("mine")

    refused = evalmeta("convert", "source", "-d", "mdapi")
    forced = evalmeta("convert", "source", "-d", "mdapi", "--force")

    assert (refused.code, "mdapi/package.xml" in refused.err) == (2, True)
    assert (forced.code, "Changed" in forced.out) == (0, True)


def test_a_root_folder_excludes_a_selection(evalmeta: Program, project: Path) -> None:
    done = evalmeta("convert", "source", "-r", "force-app", "-p", "force-app")

    assert (done.code, "--root-dir cannot be combined with" in done.err) == (2, True)
    assert not (project / "metadataPackage").exists()


def test_part_of_a_folder_in_metadata_format_can_be_chosen(evalmeta: Program, project: Path) -> None:
    evalmeta("convert", "source", "-d", "mdapi")
    [file] = (project / "mdapi").rglob("Outage_Desk*")

    done = evalmeta("convert", "metadata", "-r", "mdapi", "-p", str(file), "-d", "new")

    assert done.out.startswith("Converted 1 component.")
