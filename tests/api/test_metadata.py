from __future__ import annotations

import dataclasses
import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.api import metadata
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

    metadata.write(metadata.read(SAMPLE), Path("same"))

    assert Path("same").read_bytes() == before


def test_a_changed_definition_is_written_changed(copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    changed = dataclasses.replace(metadata.read(SAMPLE), description="Other tests")

    metadata.write(changed, SAMPLE)

    assert metadata.read(SAMPLE) == changed


def test_a_write_that_fails_leaves_the_file_as_it_was(
    copy_samples: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy_samples()
    before = SAMPLE.read_bytes()
    changed = dataclasses.replace(metadata.read(SAMPLE), description="Other tests")

    def no_space(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(ProjectError, match="cannot be written: No space left"):
        metadata.write(changed, SAMPLE)
    assert SAMPLE.read_bytes() == before


def test_reading_what_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"absent\.xml"):
        metadata.read(tmp_path / "absent.xml")


def test_two_files_with_one_name_are_found(copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    other = Path("other/MY_TEST_N1.aiEvaluationDefinition")
    other.parent.mkdir()
    other.write_bytes(SAMPLE.read_bytes())

    found = metadata.validate([SAMPLE, other])

    assert [problem.code for problem in found.problems if problem.is_error] == ["full-name-duplicate"]


def test_the_manifests_version_is_in_force_in_a_plain_folder(copy_samples: Callable[..., Path]) -> None:
    copy_samples()
    manifest = Path("package.xml")
    manifest.write_text(manifest.read_text().replace("<version>64.0", "<version>63.0"))

    codes = {problem.code for problem in metadata.validate().problems}

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


def test_a_case_is_found_by_its_number(copy_samples: Callable[..., Path]) -> None:
    copy_samples()

    assert metadata.case_lines(SAMPLE) == {1: 8, 2: 29}
