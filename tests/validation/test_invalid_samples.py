"""Every code has a sample that breaks it; what is told about each stands in invalid_samples.txt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import InvalidMetadata
from evalmeta.model.component import DESTRUCTIVE_FILES, PACKAGE_FILE
from evalmeta.model.registry import NEWEST_API_VERSION, TYPES, parse_api_version
from evalmeta.package.agent_files import AgentFiles
from evalmeta.package.files import parse_safe_file_name, shown, target_path
from evalmeta.package.forceignore import read_forceignore
from evalmeta.package.project import PROJECT_FILE, find_project
from evalmeta.package.resolver import resolve
from evalmeta.validation.manifests import validate_manifest
from evalmeta.validation.rules import CODES, FIXED_CODES, RulePolicy
from evalmeta.validation.validator import CheckedFile, check_component, validate_together
from evalmeta.xmlio.manifests import index_members
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import ApiVersion

SAMPLES = Path(__file__).parent.parent.parent / "metadata-samples"
INVALID = SAMPLES / "invalid"
SNAPSHOT = Path(__file__).parent / "invalid_samples.txt"
# Told by an org, and when something is taken from one: the tests of those rooms show them.
FROM_ORGS = {"conflict", "full-name-unsafe", "refused"}


def label(path: Path) -> str:
    return path.relative_to(SAMPLES).as_posix()


def code_of(sample: Path) -> str:
    return sample.name.partition(".")[0].replace("__", "_").replace("_", "-")


def checked(
    path: Path,
    version: ApiVersion = NEWEST_API_VERSION,
    policy: RulePolicy = RulePolicy(),  # noqa: B008 - immutable
) -> CheckedFile:
    found = parse_safe_file_name(path.name)
    assert found, path
    kind, full_name = found
    return check_component(
        kind, path.read_bytes(), label=label(path), full_name=full_name, policy=policy, api_version=version
    )


def definitions(folder: Path) -> list[Path]:
    return sorted(path for row in TYPES for path in folder.rglob(f"*.{row.suffix}*"))


def in_definition(path: Path) -> list[Problem]:
    return list(checked(path).problems)


def in_manifest(path: Path) -> Iterator[Problem]:
    manifest, problems = validate_manifest(
        path.read_bytes(), label=label(path), destructive=path.name in DESTRUCTIVE_FILES, mixed=True
    )
    yield from problems
    if problems or manifest is None or path.name != PACKAGE_FILE:
        return
    locate = index_members(read_xml(path.read_bytes(), label=label(path)))
    deletes = any((path.parent / name).exists() for name in DESTRUCTIVE_FILES)
    try:
        resolve(
            find_project(path), manifest=manifest, manifest_path=Path(label(path)), locate=locate, may_be_empty=deletes
        )
    except InvalidMetadata as error:
        yield from error.problems


def in_folder(folder: Path) -> Iterator[Problem]:
    yield from read_forceignore(folder).problems
    version = NEWEST_API_VERSION
    for path in sorted(folder.rglob("*.xml")):
        if path.name in {PACKAGE_FILE, *DESTRUCTIVE_FILES}:
            yield from in_manifest(path)
            manifest, _ = validate_manifest(path.read_bytes(), label=label(path))
            version = parse_api_version(manifest.version or "") or version if manifest else version
    if (folder / PROJECT_FILE).exists():
        version = find_project(folder).api_version or version
    policy = RulePolicy(declared_variables=AgentFiles([folder]).declared_variables)
    files = [checked(path, version, policy) for path in definitions(folder)]
    for file in files:
        yield from file.problems
    yield from validate_together([each.file for each in files if each.file], RulePolicy())


def told(sample: Path) -> list[Problem]:
    return list(in_folder(sample) if sample.is_dir() else in_definition(sample))


def render(problem: Problem) -> str:
    return f"{problem} | {problem.hint}".replace(f"{SAMPLES}/", "").replace(f"{shown(SAMPLES)}/", "")


SAMPLE_PATHS = sorted(INVALID.iterdir())


@pytest.mark.parametrize("sample", SAMPLE_PATHS, ids=code_of)
def test_a_sample_breaks_the_rule_it_is_named_after_and_no_other(sample: Path) -> None:
    assert {problem.code for problem in told(sample)} == {code_of(sample)}


def test_every_code_has_its_sample() -> None:
    assert {code_of(sample) for sample in SAMPLE_PATHS} == {*CODES, *FIXED_CODES} - FROM_ORGS


def test_a_name_that_is_not_a_valid_file_name_is_reported(tmp_path: Path) -> None:
    (tmp_path / PACKAGE_FILE).touch()
    with pytest.raises(InvalidMetadata) as caught:
        target_path(find_project(tmp_path), TYPES[0], "../up")
    assert [problem.code for problem in caught.value.problems] == ["full-name-unsafe"]


def test_every_problem_has_the_text_of_the_snapshot() -> None:
    found = [render(problem) for sample in SAMPLE_PATHS for problem in told(sample)]
    assert found == SNAPSHOT.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("sample", SAMPLE_PATHS, ids=code_of)
def test_every_problem_has_its_rule_its_location_and_a_hint(sample: Path) -> None:
    for problem in told(sample):
        assert problem.code in {*CODES, *FIXED_CODES}
        assert problem.message
        assert problem.hint.endswith((".", "?"))
        # What is wrong with a file's name stands on no line of it.
        in_file = problem.code != "full-name-duplicate"
        assert (problem.location.line > 0, problem.location.column > 0) == (in_file, in_file)


@pytest.mark.parametrize("sample", SAMPLE_PATHS, ids=code_of)
def test_a_message_begins_small_and_ends_without_a_full_stop(sample: Path) -> None:
    for problem in told(sample):
        assert not problem.message.endswith(".")
        assert not problem.message[0].isupper() or problem.message.startswith(tuple(row.name for row in TYPES))


def test_every_other_sample_has_no_error() -> None:
    good = [path for path in definitions(SAMPLES) if INVALID not in path.parents]
    assert len(good) >= 10
    assert [problem for path in good for problem in in_definition(path) if problem.is_error] == []


def test_every_other_manifest_selects_what_is_there() -> None:
    manifests = [path for path in SAMPLES.rglob(PACKAGE_FILE) if INVALID not in path.parents]
    assert len(manifests) >= 3
    assert [problem for path in manifests for problem in in_manifest(path)] == []
