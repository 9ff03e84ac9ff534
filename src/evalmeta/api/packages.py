"""Packages for the Metadata API, and the manifests for a selection of components."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.api.files import check_components, ignore_problems
from evalmeta.api.selections import read_manifest, refuse_destructive, resolve
from evalmeta.api.sync import find_unchanged
from evalmeta.client.metadata import list_components
from evalmeta.errors import NotFound, Suggestion, UsageError
from evalmeta.model.registry import (
    DESTRUCTIVE_FILES,
    PACKAGE_FILE,
    POST_DESTRUCTIVE_FILE,
    PRE_DESTRUCTIVE_FILE,
    WILDCARD,
    Manifest,
    ManifestTypes,
    merge_types,
    metadata_type,
    types_at,
)
from evalmeta.package.archive import build_zip, manifest_of, near_limits, package_entries, read_zip
from evalmeta.package.files import FileState, bytes_of, put_file, read_file, shown
from evalmeta.package.project import Project, api_version_of
from evalmeta.package.selection import MemberPattern, Selection, match_names, parse_members
from evalmeta.xmlio.definitions import write_manifest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.client.connection import Connection
    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import ApiVersion, Component, ComponentSet


# The folder that the sf CLI uses in a zip that is not a single package.
_FOLDER: Final = "zip/"


@dataclass(frozen=True, slots=True)
class DeployPackage:
    """A zip to deploy; without components if it was packed from another folder than the project.

    `destructive` has the files of its manifests of destructive changes, by their names in the zip. In a single package,
    package.xml is in the root. Warnings are about the project's files, messages about the package as a whole.
    """

    zip_file: bytes
    components: tuple[Component, ...] = ()
    destructive: Mapping[str, Path] = field(default_factory=dict)
    single_package: bool = True
    warnings: tuple[Problem, ...] = ()
    messages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BuiltPackage:
    """A zip that was written to a file, with the names of its manifests of destructive changes and its SHA-256."""

    path: Path
    state: FileState
    components: int
    destructive: tuple[str, ...]
    size: int
    sha256: str
    warnings: tuple[Problem, ...]
    messages: tuple[str, ...]


def pack_project(
    project: Project,
    components: ComponentSet,
    *,
    destructive: Mapping[str, Path] | None = None,
    newest: ApiVersion | None = None,
    connection: Connection | None = None,
) -> DeployPackage:
    """Validate components and pack them with manifests of what to delete, in an API version that the org has.

    Components that the org of `connection` has already may have errors.
    """
    if connection is None:
        warnings = check_components(project, components)
    else:
        warnings = check_components(project, components, find_unchanged=partial(find_unchanged, project, connection))
    version = components.api_version if newest is None else min(components.api_version, newest)
    package = _packed(project, replace(components, api_version=version), destructive)
    messages = (*lowered_version(components.api_version, version), *package.messages)
    return replace(package, warnings=(*package.warnings, *warnings), messages=messages)


def pack_folder(path: Path, *, single_package: bool = False) -> DeployPackage:
    """Pack a folder in metadata format as a single package or as one in a folder, or read a zip."""
    if path.is_dir():
        prefix = "" if single_package else _FOLDER
        files = dict(_files_in(path)) if (path / PACKAGE_FILE).is_file() else {}
        has_manifest, count = bool(files), len(files)
        zip_file = build_zip([(prefix + name, file) for name, file in files.items()])
    elif path.is_file():
        zip_file = read_file(path, max_bytes=limits.MAX_ZIP_BYTES)
        names = read_zip(zip_file)
        has_manifest, count = any(name.rpartition("/")[2] == PACKAGE_FILE for name in names), len(names)
    else:
        raise NotFound(f"{shown(path)} does not exist")
    if not has_manifest:
        way_out = "Generate it with `evalmeta manifest generate`, or the whole package with `evalmeta package build`."
        raise NotFound(f"{shown(path)} has no {PACKAGE_FILE}", actions=[way_out])
    messages = near_limits(zipped=len(zip_file), entries=count)
    return DeployPackage(zip_file, single_package=single_package, messages=messages)


def build_package(
    project: Project,
    selection: Selection,
    path: Path,
    *,
    destructive: Mapping[str, Path] | None = None,
    api_version: ApiVersion | None = None,
) -> BuiltPackage:
    """Write the zip that a deployment of a selection would send; the same files always give the same bytes."""
    components = resolve(project, selection, api_version=api_version, may_be_empty=bool(destructive))
    if not (components.components or destructive):
        raise NotFound(f"{shown(project.root)} has no components in it.")
    package = _packed(project, components, destructive)
    return BuiltPackage(
        path,
        put_file(path, package.zip_file),
        len(package.components),
        tuple(sorted(package.destructive)),
        len(package.zip_file),
        hashlib.sha256(package.zip_file).hexdigest(),
        (*package.warnings, *ignore_problems(project)),
        package.messages,
    )


def find_destructive(manifest: Path | None, *, pre: Path | None = None, post: Path | None = None) -> dict[str, Path]:
    """Find the manifests of what to delete: the files next to a manifest, or those that are given instead."""
    if manifest is None:
        if pre or post:
            raise UsageError(
                "--pre-destructive-changes and --post-destructive-changes need --manifest.",
                actions=("Add --manifest with a package.xml, which may be empty.",),
            )
        return {}
    siblings = {name: manifest.parent / name for name in DESTRUCTIVE_FILES}
    named = {PRE_DESTRUCTIVE_FILE: pre, POST_DESTRUCTIVE_FILE: post}
    return {name: path for name, path in siblings.items() if path.is_file()} | {
        name: path for name, path in named.items() if path is not None
    }


def lowered_version(wanted: ApiVersion | None, used: ApiVersion) -> tuple[str, ...]:
    """Return a message if an older API version than the wanted one is used."""
    if wanted is None or wanted <= used:
        return ()
    return (f"API version {used} is used instead of {wanted}: the org has no newer one",)


def _packed(project: Project, components: ComponentSet, destructive: Mapping[str, Path] | None) -> DeployPackage:
    deletions: dict[str, bytes] = {}
    warnings = [*components.warnings]
    messages: list[str] = []
    for name, path in (destructive or {}).items():
        manifest, found = read_manifest(path, destructive=True)
        # Types that evalmeta does not handle are left out; any other manifest keeps its bytes.
        deletions[name] = write_manifest(manifest) if found else bytes_of(path)
        warnings += found
    entries: list[tuple[str, bytes | Path]] = []
    for name, source in package_entries(components, deletions):
        if isinstance(source, bytes) or not project.replacements.rows_for(source):
            entries.append((name, source))
            continue
        replaced = project.replacements.replace_in(source, read_file(source))
        entries.append((name, replaced.content))
        messages += replaced.messages
    zip_file = build_zip(entries)
    messages += near_limits(zipped=len(zip_file), entries=len(entries))
    return DeployPackage(
        zip_file, components.components, destructive or {}, warnings=tuple(warnings), messages=tuple(messages)
    )


def _files_in(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            yield name.as_posix(), path


def manifest_from_project(
    project: Project, selection: Selection, *, deletes: bool = False, api_version: ApiVersion | None = None
) -> Manifest:
    """Return the manifest for a selection of the project's components, with sorted types and members.

    A type without a name becomes `*`. A manifest that `deletes` lists every component instead, and may name components
    that the project does not have any more.
    """
    patterns = parse_members(selection.metadata)
    # These become members as they are; the project's files are not searched for them.
    literal = [pattern for pattern in patterns if (not pattern.is_wild if deletes else pattern.is_whole_type)]
    blocks = tuple(ManifestTypes(member_pattern.type.name, (member_pattern.name,)) for member_pattern in literal)
    whole = {member_pattern.type for member_pattern in literal if member_pattern.is_whole_type}
    others = tuple(str(pattern) for pattern in patterns if pattern not in literal and pattern.type not in whole)
    if literal and not others:
        return Manifest(merge_types(blocks), str(api_version or api_version_of(project)))
    chosen = Selection(metadata=others) if others else selection
    components = resolve(project, chosen, api_version=api_version)
    named = manifest_of(components.components, components.api_version)
    return Manifest(merge_types((*named.types, *blocks)), named.version)


async def manifest_from_org(
    connection: Connection, project: Project, selection: Selection, *, api_version: ApiVersion | None = None
) -> Manifest:
    """Return the manifest of an org's components: all, or those that `Type:Name` entries select."""
    if selection.source_dirs or selection.manifest:
        raise UsageError("--from-org takes --metadata, not --source-dir or --manifest.")
    version = api_version or api_version_of(project)
    entries = selection.metadata or tuple(row.name for row in types_at(min(version, connection.api_version)))
    named = await _named_in_org(connection, parse_members(entries), may_be_empty=not selection.metadata)
    return Manifest(merge_types(tuple(named)), str(version))


async def manifest_to_retrieve(
    connection: Connection, project: Project, selection: Selection, *, api_version: ApiVersion | None = None
) -> Manifest | None:
    """Return the manifest to retrieve a selection with; None selects everything, in the project's API version.

    Files and folders stand for the components in them. A type without a name is sent to the
    org as `*`; names with wildcards are looked up in the org. `api_version` replaces the
    version of the given manifest or of the project.
    """
    if selection.is_everything:
        return None if api_version is None else manifest_of_everything(connection, api_version)
    if selection.manifest is not None:
        refuse_destructive(selection.manifest)
        manifest, _ = read_manifest(selection.manifest)
        return manifest if api_version is None else replace(manifest, version=str(api_version))
    if selection.source_dirs:
        return manifest_from_project(project, selection, api_version=api_version)
    patterns = parse_members(selection.metadata)
    lookups = [pattern for pattern in patterns if pattern.is_wild and not pattern.is_whole_type]
    blocks = [ManifestTypes(pattern.type.name, (pattern.name,)) for pattern in patterns if pattern not in lookups]
    blocks += await _named_in_org(connection, lookups)
    return Manifest(merge_types(tuple(blocks)), str(api_version or api_version_of(project)))


def manifest_of_everything(connection: Connection, version: ApiVersion) -> Manifest:
    """Return the manifest, in an API version, that selects all types that the org has."""
    types = types_at(min(version, connection.api_version))
    return Manifest(tuple(ManifestTypes(row.name, (WILDCARD,)) for row in types), str(version))


def save_manifest(manifest: Manifest, path: Path) -> FileState:
    """Write a manifest to a file, and return what that did to the file."""
    return put_file(path, write_manifest(manifest))


async def refuse_missing(connection: Connection, manifest: Manifest) -> None:
    """Raise NotFound if the org lacks components that a manifest names, with the nearest names of those in the org."""
    kinds = [(metadata_type(block.name), block.members) for block in manifest.types]
    patterns = [
        MemberPattern(kind, member) for kind, members in kinds if kind for member in members if member != WILDCARD
    ]
    try:
        await _named_in_org(connection, patterns)
    except NotFound as error:
        raise NotFound(str(error), actions=[*error.actions, Suggestion("See what it has", "test", "list")]) from None


async def _named_in_org(
    connection: Connection, patterns: Sequence[MemberPattern], *, may_be_empty: bool = False
) -> list[ManifestTypes]:
    types = dict.fromkeys(pattern.type for pattern in patterns)
    names = {
        row.name: [component.full_name for component in await list_components(connection, row.name)] for row in types
    }
    wanted = [pattern for pattern in patterns if names[pattern.type.name] or not may_be_empty]
    keys = match_names(wanted, names, where="the org")
    return [ManifestTypes(name, (member,)) for name, _, member in (key.partition(":") for key in sorted(keys))]
