"""Packages: zips for the Metadata API, built from a selection without an org.

Manifests made from a selection: of the project's files, or of what an org has.

Parcels: the zips that deployments send, packed from a project or from a folder in metadata format.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.api.files import bytes_of, check_components, ignore_problems, shown
from evalmeta.api.selections import read_manifest, refuse_destructive, resolve
from evalmeta.client.metadata import list_components
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.component import (
    DESTRUCTIVE_FILES,
    PACKAGE_FILE,
    POST_DESTRUCTIVE_FILE,
    PRE_DESTRUCTIVE_FILE,
    WILDCARD,
    Manifest,
    ManifestTypes,
    merge_types,
)
from evalmeta.model.registry import types_at
from evalmeta.package.archive import build_zip, manifest_of, near_limits, package_entries, read_zip
from evalmeta.package.files import put_file, read_file
from evalmeta.package.resolver import api_version_of
from evalmeta.package.selection import Selection, match_names, parse_members
from evalmeta.xmlio.manifests import write_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from evalmeta.client.connection import Connection
    from evalmeta.model.component import Component, ComponentSet
    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import ApiVersion, MetadataType
    from evalmeta.package.files import FileState
    from evalmeta.package.project import Project
    from evalmeta.package.selection import MemberPattern


@dataclass(frozen=True, slots=True)
class Package:
    """A zip that was built.

    Attributes:
        state: what writing it did to the file.
        components: how many components it holds.
        destructive: the names of the destructive changes in it.
        size: its size in bytes.
        sha256: its digest in hexadecimal digits.
        warnings: about the project's files.
        messages: about the package as a whole.
    """

    path: Path
    state: FileState
    components: int
    destructive: tuple[str, ...]
    size: int
    sha256: str
    warnings: tuple[Problem, ...]
    messages: tuple[str, ...]


def build_package(
    project: Project,
    selection: Selection,
    path: Path,
    *,
    destructive: dict[str, Path] | None = None,
    api_version: ApiVersion | None = None,
) -> Package:
    """Writes the zip that a deployment of the selection would send; the same files always give the same bytes.

    Args:
        project: where the components are.
        selection: which of them.
        path: the zip's file; its folder is made when it is missing.
        destructive: manifests of what is to be deleted, by their names in the zip.
        api_version: the version in the package's manifest; by default the version in force.

    Raises:
        ArchiveError: the package goes beyond what an org takes; nothing was written.
        NotFound: the project has no components, and nothing is to be deleted.
        EvalmetaError: as `selections.resolve` and `selections.read_manifest`.
    """
    deletions, told = read_deletions(destructive or {})
    components = resolve(project, selection, api_version=api_version, may_be_empty=bool(deletions))
    if not (components.components or deletions):
        raise NotFound(f"{shown(project.root)} has no components in it.")
    entries = list(package_entries(components, deletions))
    data = build_zip(entries)
    return Package(
        path,
        put_file(path, data),
        len(components.components),
        tuple(sorted(deletions)),
        len(data),
        hashlib.sha256(data).hexdigest(),
        (*components.warnings, *told, *ignore_problems(project)),
        near_limits(zipped=len(data), entries=len(entries)),
    )


def find_destructive(manifest: Path | None, *, pre: Path | None = None, post: Path | None = None) -> dict[str, Path]:
    """Finds what is to be deleted: the files beside a manifest, or in their place those that are named.

    Raises:
        UsageError: `pre` or `post` is given without a manifest.
    """
    if manifest is None:
        if pre or post:
            raise UsageError(
                "--pre-destructive-changes and --post-destructive-changes need --manifest.",
                actions=("Name the package.xml to go with it; it may be empty.",),
            )
        return {}
    beside = {name: manifest.parent / name for name in DESTRUCTIVE_FILES}
    named = {PRE_DESTRUCTIVE_FILE: pre, POST_DESTRUCTIVE_FILE: post}
    return {name: path for name, path in beside.items() if path.is_file()} | {
        name: path for name, path in named.items() if path is not None
    }


def manifest_from_project(
    project: Project, selection: Selection, *, deletes: bool = False, api_version: ApiVersion | None = None
) -> Manifest:
    """Gives the manifest for a selection of the project's components, types and members sorted.

    A type named without a name becomes `*`, but not where the manifest `deletes`: there
    every component is named by itself, and those that are named so need not be in the
    project any more.

    Args:
        project: where the components are.
        selection: which of them.
        deletes: whether it is to say what is deleted.
        api_version: the manifest's version; by default the version in force.

    Raises:
        EvalmetaError: as `selections.resolve`.
    """
    patterns = parse_members(selection.metadata)
    taken = [each for each in patterns if (not each.is_wild if deletes else each.is_whole_type)]
    blocks = tuple(ManifestTypes(each.type.name, (each.name,)) for each in taken)
    whole = {each.type for each in taken if each.is_whole_type}
    others = tuple(str(each) for each in patterns if each not in taken and each.type not in whole)
    if taken and not others:
        return Manifest(merge_types(blocks), str(api_version or api_version_of(project)))
    chosen = Selection(metadata=others) if others else selection
    components = resolve(project, chosen, api_version=api_version)
    named = manifest_of(components.components, components.api_version)
    return Manifest(merge_types((*named.types, *blocks)), named.version)


async def manifest_from_org(
    connection: Connection, project: Project, selection: Selection, *, api_version: ApiVersion | None = None
) -> Manifest:
    """Gives the manifest that names what an org has: everything, or what `Type:Name` entries select of it.

    Raises:
        NotFound: an entry matches nothing in the org.
        OrgError: the org cannot be reached or refuses the call.
        UsageError: files are selected, or a manifest is.
    """
    if selection.source_dirs or selection.manifest:
        raise UsageError("--from-org takes --metadata, not --source-dir or --manifest.")
    version = api_version or api_version_of(project)
    entries = selection.metadata or tuple(row.name for row in types_at(min(version, connection.api_version)))
    named = await _named_in_org(connection, parse_members(entries), may_be_empty=not selection.metadata)
    return Manifest(merge_types(tuple(named)), str(version))


async def manifest_to_retrieve(
    connection: Connection, project: Project, selection: Selection, *, api_version: ApiVersion | None = None
) -> Manifest | None:
    """Gives what to retrieve for a selection, in an API version instead of the manifest's or project's own.

    None stands for everything, in the project's version. Files and folders stand for the
    components they hold now. A type without a name goes to the org as `*`; names with
    wildcards are looked up there.

    Raises:
        EvalmetaError: as `selections.resolve` and `manifest_from_org`.
    """
    if selection.is_everything:
        return None if api_version is None else Manifest(_stars(types_at(api_version)), str(api_version))
    if selection.manifest is not None:
        refuse_destructive(selection.manifest)
        manifest, _ = read_manifest(selection.manifest)
        return manifest if api_version is None else replace(manifest, version=str(api_version))
    if selection.source_dirs:
        return manifest_from_project(project, selection, api_version=api_version)
    patterns = parse_members(selection.metadata)
    blocks = [ManifestTypes(each.type.name, (each.name,)) for each in patterns if not _needs_list(each)]
    blocks += await _named_in_org(connection, [each for each in patterns if _needs_list(each)])
    return Manifest(merge_types(tuple(blocks)), str(api_version or api_version_of(project)))


def save_manifest(manifest: Manifest, path: Path) -> FileState:
    """Writes a manifest to a file, whatever was there, and says what that did.

    Raises:
        ProjectError: the file cannot be written.
    """
    return put_file(path, write_manifest(manifest))


def _stars(types: Iterable[MetadataType]) -> tuple[ManifestTypes, ...]:
    return tuple(ManifestTypes(row.name, (WILDCARD,)) for row in types)


def _needs_list(pattern: MemberPattern) -> bool:
    return pattern.is_wild and not pattern.is_whole_type


async def _named_in_org(
    connection: Connection, patterns: Sequence[MemberPattern], *, may_be_empty: bool = False
) -> list[ManifestTypes]:
    types = dict.fromkeys(pattern.type for pattern in patterns)
    names = {row.name: [each.full_name for each in await list_components(connection, row.name)] for row in types}
    wanted = [pattern for pattern in patterns if names[pattern.type.name] or not may_be_empty]
    keys = match_names(wanted, names, where="the org")
    return [ManifestTypes(name, (member,)) for name, _, member in (key.partition(":") for key in sorted(keys))]


# Where the sf CLI puts what is no single package.
_FOLDER: Final = "zip/"


@dataclass(frozen=True, slots=True)
class Parcel:
    """A zip to deploy.

    Attributes:
        components: the project's components in it; none when it was packed from elsewhere.
        single_package: whether package.xml stands in its root.
        warnings: about the project's files.
        messages: about the parcel as a whole.
    """

    zip_file: bytes
    components: tuple[Component, ...] = ()
    single_package: bool = True
    warnings: tuple[Problem, ...] = ()
    messages: tuple[str, ...] = ()


def pack_project(
    project: Project,
    components: ComponentSet,
    *,
    destructive: Mapping[str, Path] | None = None,
    newest: ApiVersion | None = None,
) -> Parcel:
    """Checks components and packs them.

    Args:
        project: whose components they are.
        components: what is deployed.
        destructive: manifests of what is deleted, by their names in the zip.
        newest: the newest API version that the org has.

    Raises:
        InvalidMetadata: the check found errors.
        ArchiveError: the package goes beyond what an org takes.
        NotFound: a manifest of what is deleted does not exist.
    """
    warnings = check_components(project, components)
    deletions, told = read_deletions(destructive or {})
    version = components.api_version if newest is None else min(components.api_version, newest)
    entries = list(package_entries(replace(components, api_version=version), deletions))
    zip_file = build_zip(entries)
    lowered = f"API version {version} is used, not {components.api_version}: the org has no newer one"
    messages = near_limits(zipped=len(zip_file), entries=len(entries))
    return Parcel(
        zip_file,
        components.components,
        warnings=(*components.warnings, *told, *warnings),
        messages=messages if version == components.api_version else (lowered, *messages),
    )


def pack_folder(path: Path, *, single_package: bool = False) -> Parcel:
    """Packs a folder in metadata format, or takes a zip as it is; the org alone judges what is in it.

    Args:
        path: the folder, or the zip.
        single_package: whether its package.xml stands in its root, and not in a folder there.

    Raises:
        NotFound: there is nothing, or no package.xml in it.
        ArchiveError: the zip cannot be trusted, or goes beyond what an org takes.
        ProjectError: a file cannot be read.
    """
    if path.is_dir():
        return _pack_files(path, single_package=single_package)
    if not path.is_file():
        raise NotFound(f"{shown(path)}: there is no such folder or zip")
    zip_file = read_file(path, max_bytes=limits.MAX_ZIP_BYTES)
    entries = read_zip(zip_file)
    if not any(name.rpartition("/")[2] == PACKAGE_FILE for name in entries):
        raise _without_manifest(path)
    messages = near_limits(zipped=len(zip_file), entries=len(entries))
    return Parcel(zip_file, single_package=single_package, messages=messages)


def read_deletions(paths: Mapping[str, Path]) -> tuple[dict[str, bytes], tuple[Problem, ...]]:
    """Reads manifests of what is to be deleted: what is sent of each under its name, and warnings.

    Types that evalmeta does not handle are left out; any other manifest keeps its bytes.

    Raises:
        NotFound: there is no such file.
        InvalidMetadata: one has errors.
    """
    deletions: dict[str, bytes] = {}
    told: list[Problem] = []
    for name, path in paths.items():
        manifest, warnings = read_manifest(path, destructive=True)
        deletions[name] = write_manifest(manifest) if warnings else bytes_of(path)
        told += warnings
    return deletions, tuple(told)


def _pack_files(folder: Path, *, single_package: bool) -> Parcel:
    if not (folder / PACKAGE_FILE).is_file():
        raise _without_manifest(folder)
    prefix = "" if single_package else _FOLDER
    entries: list[tuple[str, bytes | Path]] = []
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in place.parts):
            entries.append((prefix + place.as_posix(), path))
    zip_file = build_zip(entries)
    messages = near_limits(zipped=len(zip_file), entries=len(entries))
    return Parcel(zip_file, single_package=single_package, messages=messages)


def _without_manifest(path: Path) -> NotFound:
    return NotFound(
        f"{shown(path)} has no {PACKAGE_FILE}", actions=["Make one: evalmeta manifest generate, or package build."]
    )
