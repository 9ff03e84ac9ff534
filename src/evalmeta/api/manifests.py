"""Manifests made from a selection: of the project's files, or of what an org has."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalmeta.api.selections import read_manifest, refuse_destructive, resolve
from evalmeta.client.retrieve import list_components
from evalmeta.errors import UsageError
from evalmeta.model.manifest import WILDCARD, Manifest, ManifestTypes, unite
from evalmeta.model.registry import types_at
from evalmeta.package.contents import manifest_of
from evalmeta.package.files import put_file
from evalmeta.package.members import match_names, parse_members
from evalmeta.package.resolver import api_version_of
from evalmeta.package.selection import Selection
from evalmeta.xmlio.manifests import write_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from evalmeta.client.connection import Connection
    from evalmeta.model.registry import ApiVersion, MetadataType
    from evalmeta.package.files import FileState
    from evalmeta.package.members import MemberPattern
    from evalmeta.package.project import Project

__all__ = ["manifest_from_org", "manifest_from_project", "manifest_to_retrieve", "save_manifest"]


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
        return Manifest(unite(blocks), str(api_version or api_version_of(project)))
    chosen = Selection(metadata=others) if others else selection
    components = resolve(project, chosen, api_version=api_version)
    named = manifest_of(components.components, components.api_version)
    return Manifest(unite((*named.types, *blocks)), named.version)


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
    return Manifest(unite(tuple(named)), str(version))


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
    return Manifest(unite(tuple(blocks)), str(api_version or api_version_of(project)))


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
