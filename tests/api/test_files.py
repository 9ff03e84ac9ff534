from __future__ import annotations

import dataclasses
import errno
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.api import files
from evalmeta.api.selections import resolve
from evalmeta.errors import InvalidMetadata, NotFound, ProjectError
from evalmeta.package.project import find_project
from evalmeta.package.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLE = Path("aiEvaluationDefinitions/my_test_n1.aiEvaluationDefinition")


def test_a_definition_read_and_written_keeps_its_bytes(copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    before = SAMPLE.read_bytes()

    files.write(files.read(SAMPLE), Path("same"))

    assert Path("same").read_bytes() == before


def test_a_changed_definition_is_written_changed(copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    changed = dataclasses.replace(files.read(SAMPLE), description="Other tests")

    files.write(changed, SAMPLE)

    assert files.read(SAMPLE) == changed


def test_a_write_that_fails_leaves_the_file_as_it_was(
    copy_samples: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_samples()
    before = SAMPLE.read_bytes()
    changed = dataclasses.replace(files.read(SAMPLE), description="Other tests")

    def no_space(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(ProjectError, match="cannot be written: No space left"):
        files.write(changed, SAMPLE)
    assert SAMPLE.read_bytes() == before


def test_reading_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"absent\.xml"):
        files.read(tmp_path / "absent.xml")


def test_two_files_with_one_name_are_found(copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    other = Path("other/MY_TEST_N1.aiEvaluationDefinition")
    other.parent.mkdir()
    other.write_bytes(SAMPLE.read_bytes())

    found = files.validate([SAMPLE, other])

    assert [problem.code for problem in found.problems if problem.is_error] == ["full-name-duplicate"]


def test_the_manifests_version_is_in_force_in_a_plain_folder(copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    manifest = Path("package.xml")
    manifest.write_text(manifest.read_text().replace("<version>64.0", "<version>63.0"))

    codes = {problem.code for problem in files.validate().problems}

    assert codes == {"parameter-version"}


def test_a_missing_member_is_placed_in_the_manifest(copy_samples: Callable[..., Path]) -> None:
    project = find_project(copy_samples())
    Path("other.xml").write_text(
        '<Package xmlns="http://soap.sforce.com/2006/04/metadata">\n<types>\n  <members>Nobody</members>\n'
        "<name>AiEvaluationDefinition</name></types><version>64.0</version></Package>"
    )

    with pytest.raises(InvalidMetadata) as refused:
        resolve(project, Selection(manifest=Path("other.xml")))

    assert str(refused.value.problems[0].location) == "other.xml:3:3"


def test_a_name_that_stands_twice_hides_no_other_problem(copy_samples: Callable[..., Path]) -> None:
    folder = copy_samples("dx-project") / "force-app/x"
    folder.mkdir()
    (folder / "Outage_Desk.aiEvaluationDefinition").write_text("<broken")

    found = files.validate()

    assert {problem.code for problem in found.problems} == {"full-name-duplicate", "xml-malformed"}
    assert {problem.location.path for problem in found.problems} == {"force-app/x/Outage_Desk.aiEvaluationDefinition"}


def test_a_full_name_is_unique_in_its_project_only(
    copy_samples: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = copy_samples("dx-project")
    shutil.copytree(project, project.with_name("other"))
    monkeypatch.chdir(project.parent)

    assert files.validate([Path("project"), Path("other")]).problems == ()


def test_a_file_named_twice_counts_once(copy_samples: Callable[..., Path]) -> None:
    found = files.validate([copy_samples() / SAMPLE, SAMPLE, SAMPLE.parent / ".." / SAMPLE])

    assert (found.problems, found.files) == ((), 1)


@pytest.mark.parametrize("name", ["a:b", "A\n::error::B", "a\udcff"])
def test_a_definition_with_an_invalid_name_is_reported(copy_samples: Callable[..., Path], name: str) -> None:
    copy_samples()
    SAMPLE.rename(SAMPLE.with_name(f"{name}.aiEvaluationDefinition"))

    assert "full-name-unsafe" in {problem.code for problem in files.validate().problems}


@pytest.mark.parametrize("name", ["package.xml", "Pipe.aiEvaluationDefinition"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)

    with pytest.raises(NotFound, match="is a pipe"):
        files.validate([tmp_path / name])


def test_an_empty_manifest_is_reported(copy_samples: Callable[..., Path]) -> None:
    copy_samples("invalid/manifest_selects_nothing")

    assert [problem.code for problem in files.validate().problems] == ["manifest-selects-nothing"]


def test_a_manifest_for_several_tools_is_valid(copy_samples: Callable[..., Path]) -> None:
    copy_samples("invalid/manifest_type_other")

    found = files.validate()

    assert (found.is_valid, [problem.code for problem in found.problems]) == (True, ["manifest-type-other"])
