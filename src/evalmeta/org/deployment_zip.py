"""The content of a deployment's zip: its components with their problems, what it deletes, and what fails in it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from evalmeta.model.registry import (
    META_XML_SUFFIX,
    NEWEST_API_VERSION,
    TYPES,
    WILDCARD,
    metadata_type,
    parse_api_version,
)
from evalmeta.package.archive import read_zip
from evalmeta.package.components import EntryName, entry_name, gather_contents, parse_entry
from evalmeta.protocol.metadata_api import DeployMessage, DeployOptions
from evalmeta.validation.rules import NO_ORG_RULES, RulePolicy
from evalmeta.validation.validator import validate_component, validate_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import Manifest, MetadataType


MANIFEST: Final = "package.xml"
# Metadata API Developer Guide, "Deleting Components from an Organization": before the deployment, or after it.
_DESTRUCTIVE: Final = {
    "destructiveChanges.xml": True,
    "destructiveChangesPre.xml": True,
    "destructiveChangesPost.xml": False,
}
# The parts of a component's name and of its files: `Account.Size` is in objects/Account.object.
_WORDS: Final = re.compile(r"[/.]")
_ORG_POLICY: Final = RulePolicy(profile="orgs", rules=NO_ORG_RULES)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A component of the zip with its problems; the file name of a bundle is that of its folder."""

    type: MetadataType
    full_name: str
    file_name: str
    content: bytes
    problems: tuple[Problem, ...]

    @property
    def is_refused(self) -> bool:
        """Return whether the component has errors."""
        return any(problem.is_error for problem in self.problems)


@dataclass(frozen=True, slots=True)
class Deletion:
    """A component to delete, before (`first`) or after the others are saved; `file_name` is the manifest."""

    type: MetadataType
    full_name: str
    file_name: str
    first: bool


@dataclass(frozen=True, slots=True)
class Package:
    """The content of a zip; `failures` and `warnings` are not about components in it."""

    candidates: tuple[Candidate, ...] = ()
    deletions: tuple[Deletion, ...] = ()
    failures: tuple[DeployMessage, ...] = ()
    warnings: tuple[DeployMessage, ...] = ()


def unpack(zip_file: bytes, options: DeployOptions) -> Package:
    """Read a zip and check every component in it; raise ArchiveError if it cannot be read or trusted.

    Without `single_package`, every folder with a package.xml is a package.
    """
    entries = read_zip(zip_file)
    manifests = [name for name in entries if name.count("/") == 1 and name.endswith(f"/{MANIFEST}")]
    packages = []
    for prefix in [""] if MANIFEST in entries else [name.removesuffix(MANIFEST) for name in manifests]:
        own = {name.removeprefix(prefix): content for name, content in entries.items() if name.startswith(prefix)}
        packages.append(_unpack(own, options))
    if not packages:
        return Package(failures=(deploy_message("", MANIFEST, MANIFEST, problem="No package.xml found"),))
    candidates, repeated = _without_duplicates([candidate for package in packages for candidate in package.candidates])
    return Package(
        candidates,
        tuple(deletion for package in packages for deletion in package.deletions),
        (*(failure for package in packages for failure in package.failures), *repeated),
        tuple(warning for package in packages for warning in package.warnings),
    )


def deploy_message(type_name: str, full_name: str, file_name: str, *, problem: str) -> DeployMessage:
    """Return the message of an error."""
    return DeployMessage(type_name, full_name, file_name, success=False, problem=problem, problem_type="Error")


def problem_message(type_name: str, full_name: str, file_name: str, problem: Problem) -> DeployMessage:
    """Return the message of a validation problem, with its location."""
    text = f"{problem.message} [{problem.code}] {problem.hint}".strip()
    message = deploy_message(type_name, full_name, file_name, problem=text)
    return replace(message, line_number=problem.location.line or None, column_number=problem.location.column or None)


def not_there(type_name: str, full_name: str, file_name: str) -> DeployMessage:
    """Return the warning of a component that cannot be deleted because it does not exist."""
    problem = f"No {type_name} named: {full_name} found"
    return DeployMessage("", file_name, file_name, success=True, problem=problem, problem_type="Warning")


def _without_duplicates(candidates: Iterable[Candidate]) -> tuple[tuple[Candidate, ...], list[DeployMessage]]:
    """Return the first of each component, ignoring the case of names, and a failure for every other."""
    first: dict[tuple[MetadataType, str], Candidate] = {}
    repeated: list[DeployMessage] = []
    for candidate in candidates:
        if first.setdefault((candidate.type, candidate.full_name.casefold()), candidate) is not candidate:
            problem = f"The {candidate.type.name} '{candidate.full_name}' is in the zip more than once"
            repeated.append(
                deploy_message(candidate.type.name, candidate.full_name, candidate.file_name, problem=problem)
            )
    return tuple(first.values()), repeated


def _unpack(entries: Mapping[str, bytes], options: DeployOptions) -> Package:
    manifest, problems = validate_manifest(entries[MANIFEST], label=MANIFEST, mixed=True)
    errors = [problem for problem in problems if problem.is_error]
    if manifest is None or errors:
        return Package(failures=tuple(problem_message("", MANIFEST, MANIFEST, problem) for problem in errors))
    version = parse_api_version(manifest.version or "")
    if version and version > NEWEST_API_VERSION:
        problem = f"Invalid version specified:{version}"
        return Package(failures=(deploy_message("", MANIFEST, MANIFEST, problem=problem),))
    named = _named(manifest)
    failures, others = _others(manifest, entries)
    contents: list[tuple[EntryName, bytes]] = []
    for file_name, content in entries.items():
        if file_name == MANIFEST or file_name in _DESTRUCTIVE or file_name in others:
            continue
        component = _component_of(file_name)
        if component is None or named.get(component.type, frozenset()).isdisjoint((WILDCARD, component.full_name)):
            type_name, name = (component.type.name, component.full_name) if component else ("", file_name)
            problem = f"The file {file_name} is in the package but not named in package.xml"
            failures.append(deploy_message(type_name, name, file_name, problem=problem))
        else:
            contents.append((component, content))
    candidates = [_candidate(*key, content, manifest) for key, content in gather_contents(contents).items()]
    deletions, messages = _deletions(entries)
    missing = list(_missing(manifest, candidates))
    if options.allow_missing_files:
        missing = [replace(message, success=True, problem_type="Warning") for message in missing]
    messages += [*failures, *missing]
    return Package(
        tuple(candidates),
        deletions,
        tuple(message for message in messages if not message.success),
        tuple(message for message in messages if message.success),
    )


def _others(manifest: Manifest, entries: Mapping[str, bytes]) -> tuple[list[DeployMessage], set[str]]:
    """Return a failure for each component of another type, and the files of these components.

    As in an org, a wildcard names the files that are there. Their types are unknown if several types have one.
    """
    named = [
        (types.name, member) for types in manifest.types if not metadata_type(types.name) for member in types.members
    ]
    failures = [_unsupported(type_name, member, MANIFEST) for type_name, member in named if member != WILDCARD]
    words = {word for _, member in named for word in _WORDS.split(member)}
    ours = {MANIFEST, *_DESTRUCTIVE, *(row.directory for row in TYPES)}
    files = {name for name in entries if name.partition("/")[0] not in ours}
    others = {name for name in files if not words.isdisjoint(_WORDS.split(name))}
    wildcards = {type_name for type_name, member in named if member == WILDCARD}
    if not wildcards:
        return failures, others
    only = wildcards.pop() if len(wildcards) == 1 else ""
    unknown = sorted({name.removesuffix(META_XML_SUFFIX) for name in files - others})
    # The file of a component has its name: `classes/Order.cls`.
    stems = {name: name.rpartition("/")[2].partition(".")[0] for name in unknown}
    return [*failures, *(_unsupported(only, stems[name] if only else name, name) for name in unknown)], files


def _unsupported(type_name: str, full_name: str, file_name: str) -> DeployMessage:
    supported = ", ".join(row.name for row in TYPES)
    what = f"type {type_name}" if type_name else f"type of {file_name}"
    problem = f"This org does not support the {what}; it has {supported}"
    return deploy_message(type_name, full_name, file_name, problem=problem)


def _component_of(file_name: str) -> EntryName | None:
    """Return the component of a file that is where an org expects it."""
    component = parse_entry(file_name)
    name = entry_name(component.type, component.full_name) if component else ""
    return component if component and file_name in {name, f"{name}/{component.file}"} else None


def _named(manifest: Manifest) -> dict[MetadataType, frozenset[str]]:
    named: dict[MetadataType, frozenset[str]] = {}
    for types in manifest.types:
        if kind := metadata_type(types.name):
            named[kind] = named.get(kind, frozenset()).union(types.members)
    return named


def _candidate(kind: MetadataType, full_name: str, content: bytes, manifest: Manifest) -> Candidate:
    file_name = entry_name(kind, full_name)
    version = parse_api_version(manifest.version or "") or NEWEST_API_VERSION
    problems = validate_component(
        kind, content, label=file_name, full_name=full_name, policy=_ORG_POLICY, api_version=version
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
    """Return what to delete, the problems of its manifests, and a warning for each component of another type."""
    deletions: list[Deletion] = []
    messages: list[DeployMessage] = []
    for file_name, first in _DESTRUCTIVE.items():
        if file_name not in entries:
            continue
        manifest, problems = validate_manifest(entries[file_name], label=file_name, destructive=True, mixed=True)
        errors = [problem_message("", file_name, file_name, problem) for problem in problems if problem.is_error]
        messages += errors
        for types in manifest.types if manifest and not errors else ():
            if kind := metadata_type(types.name):
                deletions += [Deletion(kind, member, file_name, first) for member in types.members]
            else:
                messages += [not_there(types.name, member, file_name) for member in types.members]
    return tuple(deletions), messages
