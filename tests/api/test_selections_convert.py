from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.api.selections import convert_metadata, convert_source
from evalmeta.errors import InvalidMetadata, NotFound, ProjectError, UsageError
from evalmeta.package.project import Project, find_project
from evalmeta.package.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

TYPE = "AiEvaluationDefinition"
OUT = Path("out")
OUTAGE = "aiEvaluationDefinitions/Outage_Desk.aiEvaluationDefinition"


@pytest.fixture
def project(copy_samples: Callable[[str], Path]) -> Project:
    return find_project(copy_samples("dx-project"))


def contents(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*.aiEvaluationDefinition*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_source_format_becomes_metadata_format_and_back_with_the_same_bytes(project: Project) -> None:
    before = contents(Path("force-app"))
    convert_source(project, Selection(), OUT)
    shutil.rmtree("force-app")
    Path("force-app").mkdir()

    done = convert_metadata(OUT, Selection())

    assert contents(Path("force-app")) == before
    assert {each.state for each in done} == {"Created"}


def test_only_names_and_folders_change(project: Project) -> None:
    convert_source(project, Selection(metadata=(f"{TYPE}:Outage_Desk",)), OUT)
    [source] = Path("force-app").rglob("Outage_Desk*")
    assert contents(OUT) == {OUTAGE: source.read_bytes()}
    assert b"<members>Outage_Desk</members>" in (OUT / "package.xml").read_bytes()


def test_a_second_conversion_touches_nothing(project: Project) -> None:
    convert_source(project, Selection(), OUT)
    before = (OUT / OUTAGE).stat().st_mtime_ns
    assert {each.state for each in convert_source(project, Selection(), OUT)} == {"Unchanged"}
    assert (OUT / OUTAGE).stat().st_mtime_ns == before


def test_files_with_other_content_are_listed_and_left_alone(project: Project) -> None:
    (OUT / OUTAGE).parent.mkdir(parents=True)
    (OUT / OUTAGE).write_bytes(b"mine")
    with pytest.raises(UsageError, match=f"different content.*\n  out/{OUTAGE}"):
        convert_source(project, Selection(), OUT)
    assert list(contents(OUT)) == [OUTAGE]
    done = convert_source(project, Selection(), OUT, overwrite=True)
    assert [each.full_name for each in done if each.state == "Changed"] == ["Outage_Desk"]


def test_nothing_is_written_through_a_link_that_leads_out(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    OUT.mkdir()
    (OUT / "aiEvaluationDefinitions").symlink_to(outside)
    with pytest.raises(ProjectError, match="leads out of"):
        convert_source(project, Selection(), OUT)
    assert list(outside.iterdir()) == []


def test_a_component_that_the_project_has_keeps_its_place(project: Project) -> None:
    convert_source(project, Selection(), OUT)
    [old] = Path("force-app").rglob("Outage_Desk*")
    moved = Path("force-app/outages") / old.name
    moved.parent.mkdir()
    old.rename(moved)
    for output_dir in (None, Path("force-app")):
        files = {each.full_name: each.file for each in convert_metadata(OUT, Selection(), output_dir)}
        assert files["Outage_Desk"] == moved.as_posix()
    assert not old.exists()


def test_a_retrieved_folder_may_be_nested(project: Project) -> None:
    convert_source(project, Selection(), OUT / "unpackaged" / "unpackaged")
    [done] = convert_metadata(OUT, Selection(metadata=(f"{TYPE}:Outage*",)), Path("new"))
    assert done.file == f"new/main/default/{OUTAGE}-meta.xml"


def test_a_folder_without_components_is_named(project: Project) -> None:
    OUT.mkdir()
    for folder, why in ((OUT, "out has no components"), (Path("gone"), "gone does not exist or is not a folder")):
        with pytest.raises(NotFound, match=why):
            convert_metadata(folder, Selection())
    shutil.rmtree("force-app/main")
    with pytest.raises(NotFound, match="has no components"):
        convert_source(project, Selection(), OUT)


def test_a_name_is_looked_for_in_the_folder_that_is_converted(project: Project) -> None:
    convert_source(project, Selection(), OUT)
    with pytest.raises(NotFound, match=f"out has no {TYPE}:Z"):
        convert_metadata(OUT, Selection(metadata=(f"{TYPE}:Z*",)))


def test_the_same_name_twice_is_refused(project: Project) -> None:
    for folder in ("a", "b"):
        convert_source(project, Selection(), OUT / folder)
    with pytest.raises(InvalidMetadata, match="have the same full name"):
        convert_metadata(OUT, Selection(), Path("new"))


def test_a_plain_folder_takes_no_source_format_by_itself(copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    with pytest.raises(ProjectError, match="in metadata format, so files in source format cannot be added"):
        convert_metadata(Path("aiEvaluationDefinitions"), Selection())


def test_a_component_keeps_its_place_when_its_case_is_another(project: Project) -> None:
    convert_source(project, Selection(), OUT)
    [old] = Path("force-app").rglob("Outage_Desk*")
    renamed = old.rename(old.with_name(old.name.replace("Outage_Desk", "outage_desk")))
    files = {each.full_name: each.file for each in convert_metadata(OUT, Selection())}
    assert files["Outage_Desk"] == renamed.as_posix()
    assert not old.exists()
