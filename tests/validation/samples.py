"""What validation reports about the samples in metadata-samples/invalid, one for each rule."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evalmeta.errors import InvalidMetadata
from evalmeta.model.registry import (
    AUTHORING_BUNDLE,
    DESTRUCTIVE_FILES,
    NEWEST_API_VERSION,
    PACKAGE_FILE,
    TYPES,
    parse_api_version,
)
from evalmeta.package.agent_files import AgentFiles
from evalmeta.package.files import parse_safe_file_name, shown
from evalmeta.package.forceignore import read_forceignore
from evalmeta.package.project import PROJECT_FILE, find_project
from evalmeta.package.selection import resolve
from evalmeta.validation.bundle_rules import Bundle, check_bundle
from evalmeta.validation.rules import RulePolicy
from evalmeta.validation.validator import CheckedFile, check_component, validate_manifest, validate_together
from evalmeta.xmlio.definitions import index_members
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import ApiVersion

SAMPLES = Path(__file__).parent.parent.parent / "metadata-samples"
INVALID = SAMPLES / "invalid"
SNAPSHOT = Path(__file__).parent / "invalid_samples.txt"


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
    return sorted(path for row in TYPES if not row.is_bundle for path in folder.rglob(f"*.{row.suffix}*"))


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


def in_bundles(folder: Path) -> Iterator[Problem]:
    for path in sorted(path.parent for path in folder.rglob("*.agent")):
        bundle = Bundle(AUTHORING_BUNDLE, path.name, {file.name: file.read_bytes() for file in sorted(path.iterdir())})
        yield from check_bundle(bundle, label=label(path), severity_of=RulePolicy().severity)


def in_folder(folder: Path) -> Iterator[Problem]:
    yield from read_forceignore(folder).problems
    version = NEWEST_API_VERSION
    for path in sorted(folder.rglob("*.xml")):
        if path.name in {PACKAGE_FILE, *DESTRUCTIVE_FILES}:
            yield from in_manifest(path)
            manifest, _ = validate_manifest(path.read_bytes(), label=label(path))
            version = parse_api_version(manifest.version or "") or version if manifest else version
    yield from in_bundles(folder)
    if (folder / PROJECT_FILE).exists():
        project = find_project(folder)
        version = project.api_version or version
        yield from filter(None, map(project.replacements.problem_of, definitions(folder)))
    agents = AgentFiles([folder])
    policy = RulePolicy(agents=agents)
    files = [checked(path, version, policy) for path in definitions(folder)]
    for file in files:
        yield from file.problems
    yield from validate_together([file.file for file in files if file.file], RulePolicy())


def problems_of(sample: Path) -> list[Problem]:
    return list(in_folder(sample) if sample.is_dir() else in_definition(sample))


def render(problem: Problem) -> str:
    return f"{problem} | {problem.hint}".replace(f"{SAMPLES}/", "").replace(f"{shown(SAMPLES)}/", "")


SAMPLE_PATHS = sorted(INVALID.iterdir())


def snapshot() -> str:
    """Return the problems of all samples, one a line, as `make docs` writes them into invalid_samples.txt."""
    return "".join(f"{render(problem)}\n" for sample in SAMPLE_PATHS for problem in problems_of(sample))
