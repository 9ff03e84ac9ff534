"""What a deployment's zip holds: components to save, components to delete, and what is wrong with either."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from evalmeta.model.manifest import WILDCARD
from evalmeta.model.registry import NEWEST_API_VERSION, metadata_type, parse_api_version
from evalmeta.package.archive import read_zip
from evalmeta.package.convert import META_XML_SUFFIX, full_name_of
from evalmeta.validation.judgement import Judgement
from evalmeta.validation.manifests import validate_manifest
from evalmeta.validation.validator import validate_component
from evalmeta.wire.messages import DeployMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalmeta.model.manifest import Manifest
    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import MetadataType
    from evalmeta.wire.messages import DeployOptions

__all__ = ["MANIFEST", "Candidate", "Deletion", "Package", "deploy_message", "problem_message", "unpack"]

MANIFEST: Final = "package.xml"
# Metadata API Developer Guide, "Deleting Components from an Organization": before the deployment, or after it.
_DESTRUCTIVE: Final = {
    "destructiveChanges.xml": True,
    "destructiveChangesPre.xml": True,
    "destructiveChangesPost.xml": False,
}
_ORG_JUDGEMENT: Final = Judgement(profile="orgs")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A component of the zip, and what is wrong with it."""

    type: MetadataType
    full_name: str
    file_name: str
    content: bytes
    problems: tuple[Problem, ...]

    @property
    def is_refused(self) -> bool:
        """Says whether an org cannot take it."""
        return any(problem.is_error for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Deletion:
    """A component that is to go, `first` of all or at the end; `file_name` is the manifest that says so."""

    type: MetadataType
    full_name: str
    file_name: str
    first: bool


@dataclass(frozen=True, slots=True)
class Package:
    """What a zip asks for; `failures` and `warnings` concern no component that it holds."""

    candidates: tuple[Candidate, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    failures: tuple[DeployMessage, ...] = ()
    warnings: tuple[DeployMessage, ...] = ()


def unpack(zip_file: bytes, options: DeployOptions) -> Package:
    """Takes a zip apart and checks every component in it.

    Without `single_package` every folder with a package.xml is a package.

    Raises:
        ArchiveError: the zip cannot be read or trusted.
    """
    entries = read_zip(zip_file)
    packages = [_unpack(_below(prefix, entries), options) for prefix in _prefixes(entries)]
    if not packages:
        return Package(failures=(deploy_message("", MANIFEST, MANIFEST, problem="No package.xml found"),))
    candidates, repeated = _told_once([each for package in packages for each in package.candidates])
    return Package(
        candidates,
        tuple(each for package in packages for each in package.deletions),
        (*(each for package in packages for each in package.failures), *repeated),
        tuple(each for package in packages for each in package.warnings),
    )


def deploy_message(type_name: str, full_name: str, file_name: str, *, problem: str) -> DeployMessage:
    """Makes the message of something that went wrong."""
    return DeployMessage(type_name, full_name, file_name, success=False, problem=problem, problem_type="Error")


def problem_message(type_name: str, full_name: str, file_name: str, problem: Problem) -> DeployMessage:
    """Makes the message of a validation problem, with its place."""
    text = f"{problem.message} [{problem.code}] {problem.hint}".strip()
    message = deploy_message(type_name, full_name, file_name, problem=text)
    return replace(message, line_number=problem.location.line or None, column_number=problem.location.column or None)


def _prefixes(entries: Mapping[str, bytes]) -> list[str]:
    """Lists the folders that are packages: the zip itself, or those right below it."""
    if MANIFEST in entries:
        return [""]
    return [name.removesuffix(MANIFEST) for name in entries if name.count("/") == 1 and name.endswith(f"/{MANIFEST}")]


def _below(prefix: str, entries: Mapping[str, bytes]) -> Mapping[str, bytes]:
    return {name.removeprefix(prefix): content for name, content in entries.items() if name.startswith(prefix)}


def _told_once(candidates: Iterable[Candidate]) -> tuple[tuple[Candidate, ...], list[DeployMessage]]:
    """Gives the first of each component, in any case of its name, and a failure for every other."""
    first: dict[tuple[MetadataType, str], Candidate] = {}
    repeated: list[DeployMessage] = []
    for each in candidates:
        if first.setdefault((each.type, each.full_name.casefold()), each) is not each:
            problem = f"The {each.type.name} '{each.full_name}' is in the zip more than once"
            repeated.append(deploy_message(each.type.name, each.full_name, each.file_name, problem=problem))
    return tuple(first.values()), repeated


def _unpack(entries: Mapping[str, bytes], options: DeployOptions) -> Package:
    manifest, problems = validate_manifest(entries[MANIFEST], label=MANIFEST)
    if manifest is None or problems:
        return Package(failures=tuple(problem_message("", MANIFEST, MANIFEST, problem) for problem in problems))
    named = _named(manifest)
    failures: list[DeployMessage] = []
    candidates: list[Candidate] = []
    for file_name, content in entries.items():
        if file_name == MANIFEST or file_name in _DESTRUCTIVE:
            continue
        found = _component_of(file_name)
        if found is None or named.get(found[0], frozenset()).isdisjoint((WILDCARD, found[1])):
            failures.append(_unnamed(found, file_name))
        else:
            candidates.append(_candidate(*found, file_name, content, manifest))
    deletions, refused = _deletions(entries)
    missing = _missing(manifest, candidates)
    if options.allow_missing_files:
        warnings = tuple(replace(each, success=True, problem_type="Warning") for each in missing)
        return Package(tuple(candidates), deletions, (*failures, *refused), warnings)
    return Package(tuple(candidates), deletions, (*failures, *refused, *missing))


def _component_of(file_name: str) -> tuple[MetadataType, str] | None:
    folder, _, name = file_name.rpartition("/")
    found = None if name.endswith(META_XML_SUFFIX) else full_name_of(name)
    return found if found and found[0].directory == folder else None


def _named(manifest: Manifest) -> dict[MetadataType, frozenset[str]]:
    """Gives the members that a manifest names, by type."""
    named: dict[MetadataType, frozenset[str]] = {}
    for types in manifest.types:
        if kind := metadata_type(types.name):
            named[kind] = named.get(kind, frozenset()).union(types.members)
    return named


def _unnamed(found: tuple[MetadataType, str] | None, file_name: str) -> DeployMessage:
    type_name, name = (found[0].name, found[1]) if found else ("", file_name)
    problem = f"The file {file_name} is in the package but not named in package.xml"
    return deploy_message(type_name, name, file_name, problem=problem)


def _candidate(kind: MetadataType, full_name: str, file_name: str, content: bytes, manifest: Manifest) -> Candidate:
    version = parse_api_version(manifest.version or "") or NEWEST_API_VERSION
    problems = validate_component(
        kind, content, label=file_name, full_name=full_name, judgement=_ORG_JUDGEMENT, api_version=version
    )
    return Candidate(kind, full_name, file_name, content, tuple(problems))


def _missing(manifest: Manifest, candidates: list[Candidate]) -> Iterator[DeployMessage]:
    there = {(candidate.type, candidate.full_name) for candidate in candidates}
    for types in manifest.types:
        kind = metadata_type(types.name)
        for member in types.members:
            if kind and member != WILDCARD and (kind, member) not in there:
                problem = (
                    f"An object '{member}' of type {kind.name} was named in package.xml, "
                    "but was not found in zipped directory"
                )
                yield deploy_message(kind.name, member, MANIFEST, problem=problem)


def _deletions(entries: Mapping[str, bytes]) -> tuple[tuple[Deletion, ...], list[DeployMessage]]:
    deletions: list[Deletion] = []
    refused: list[DeployMessage] = []
    for file_name, first in _DESTRUCTIVE.items():
        if file_name not in entries:
            continue
        manifest, problems = validate_manifest(entries[file_name], label=file_name, destructive=True)
        refused += [problem_message("", file_name, file_name, problem) for problem in problems]
        for types in manifest.types if manifest and not problems else ():
            if kind := metadata_type(types.name):
                deletions += [Deletion(kind, member, file_name, first) for member in types.members]
    return tuple(deletions), refused
