"""Every code has a sample that breaks it; `make docs` writes what is reported about each into invalid_samples.txt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import InvalidMetadata
from evalmeta.model.registry import PACKAGE_FILE, TYPES
from evalmeta.package.folders import target_path
from evalmeta.package.project import find_project
from evalmeta.validation.rules import list_rules
from validation.samples import (
    INVALID,
    SAMPLE_PATHS,
    SAMPLES,
    SNAPSHOT,
    code_of,
    definitions,
    in_bundles,
    in_definition,
    in_manifest,
    problems_of,
    snapshot,
)

if TYPE_CHECKING:
    from pathlib import Path

CODES = {rule.code for rule in list_rules()}
# Told by an org, when something is taken from one, or about a test spec: the tests of those rooms show them.
WITHOUT_SAMPLES = {"conflict", "full-name-unsafe", "refused", "review-pending"}


@pytest.mark.parametrize("sample", SAMPLE_PATHS, ids=code_of)
def test_a_sample_breaks_the_rule_it_is_named_after_and_no_other(sample: Path) -> None:
    assert {problem.code for problem in problems_of(sample)} == {code_of(sample)}


def test_every_code_has_its_sample() -> None:
    assert {code_of(sample) for sample in SAMPLE_PATHS} == CODES - WITHOUT_SAMPLES


def test_a_name_that_is_not_a_valid_file_name_is_reported(tmp_path: Path) -> None:
    (tmp_path / PACKAGE_FILE).touch()
    with pytest.raises(InvalidMetadata) as caught:
        target_path(find_project(tmp_path), TYPES[0], "../up")
    assert [problem.code for problem in caught.value.problems] == ["full-name-unsafe"]


def test_every_problem_has_the_text_of_the_snapshot() -> None:
    assert snapshot().splitlines() == SNAPSHOT.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("sample", SAMPLE_PATHS, ids=code_of)
def test_every_problem_has_its_rule_its_location_and_a_hint(sample: Path) -> None:
    for problem in problems_of(sample):
        assert problem.code in CODES
        assert problem.message
        assert problem.hint.endswith((".", "?"))
        # What is wrong with a file's name stands on no line of it.
        in_file = problem.code not in {"full-name-duplicate", "bundle-file-missing", "bundle-file-unknown"}
        assert (problem.location.line > 0, problem.location.column > 0) == (in_file, in_file)


@pytest.mark.parametrize("sample", SAMPLE_PATHS, ids=code_of)
def test_a_message_begins_small_and_ends_without_a_full_stop(sample: Path) -> None:
    for problem in problems_of(sample):
        assert not problem.message.endswith(".")
        assert not problem.message[0].isupper() or problem.message.startswith(tuple(row.name for row in TYPES))


def test_every_other_sample_has_no_error() -> None:
    good = [path for path in definitions(SAMPLES) if INVALID not in path.parents]
    assert len(good) >= 10
    assert [problem for path in good for problem in in_definition(path) if problem.is_error] == []
    assert list(in_bundles(SAMPLES / "agent-script")) == []


def test_every_other_manifest_selects_what_is_there() -> None:
    manifests = [path for path in SAMPLES.rglob(PACKAGE_FILE) if INVALID not in path.parents]
    assert len(manifests) >= 3
    assert [problem for path in manifests for problem in in_manifest(path)] == []
