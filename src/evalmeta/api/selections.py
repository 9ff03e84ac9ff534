"""Selections: which components a command takes, and what a check of them finds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evalmeta.api.metadata import Validation, bytes_of, shown, validate
from evalmeta.errors import InvalidMetadata, UsageError
from evalmeta.model.component import ComponentSet
from evalmeta.model.manifest import DESTRUCTIVE_FILES
from evalmeta.package.members import components_named, parse_members
from evalmeta.package.project import find_project
from evalmeta.package.resolver import api_version_of, find_components
from evalmeta.package.resolver import resolve as resolve_components
from evalmeta.package.selection import Selection, components_under
from evalmeta.validation.validator import validate_manifest
from evalmeta.xmlio.manifests import index_members
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from evalmeta.model.component import Component
    from evalmeta.model.manifest import Manifest
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.project import Project

__all__ = ["read_manifest", "resolve", "validate_selection"]

_EVERYTHING = Selection()


def resolve(
    project: Project,
    selection: Selection = _EVERYTHING,
    *,
    api_version: ApiVersion | None = None,
    may_be_empty: bool = False,
) -> ComponentSet:
    """Gives the components that a selection takes, and the API version in force.

    Args:
        project: where they are looked for.
        selection: which of them; everything by default.
        api_version: the version in force; by default the manifest's, or the project's.
        may_be_empty: whether a manifest may select nothing.

    Raises:
        NotFound: a file, a folder or a name does not exist; the nearest names are given.
        InvalidMetadata: the manifest has problems, or names what the project does not have.
        ProjectError: a path lies outside the package directories, or cannot be read.
        UsageError: the manifest says what to delete.
    """
    if selection.manifest is not None:
        return _resolve_manifest(project, selection.manifest, api_version=api_version, may_be_empty=may_be_empty)
    return ComponentSet(_chosen(project, selection), api_version or api_version_of(project))


def read_manifest(path: Path, *, destructive: bool = False) -> Manifest:
    """Reads a manifest; its name, or `destructive`, says whether it is one of what to delete.

    Raises:
        NotFound: there is no such file.
        InvalidMetadata: it has problems.
    """
    label = shown(path)
    destructive = destructive or path.name in DESTRUCTIVE_FILES
    manifest, problems = validate_manifest(bytes_of(path), label=label, destructive=destructive)
    if manifest is None or problems:
        raise InvalidMetadata(f"{label} cannot be used", problems=problems)
    return manifest


def validate_selection(selection: Selection, *, start: Path | None = None) -> Validation:
    """Checks what a selection takes, and the manifest that selects.

    Raises:
        NotFound: a file, a folder or a name does not exist.
        ProjectError: there is no project around `start` (the current folder when None),
            or a path lies outside its package directories.
    """
    if selection.manifest is not None and selection.manifest.name in DESTRUCTIVE_FILES:
        return validate([selection.manifest])
    manifests = int(selection.manifest is not None)
    try:
        components = resolve(find_project(start or Path.cwd()), selection, may_be_empty=True).components
    except InvalidMetadata as error:
        return Validation(error.problems, manifests)
    found = validate([each.path for each in components]) if components else Validation((), 0)
    return Validation(found.problems, found.files + manifests)


def _resolve_manifest(
    project: Project, path: Path, *, api_version: ApiVersion | None, may_be_empty: bool
) -> ComponentSet:
    manifest, label = read_manifest(path), shown(path)
    if path.name in DESTRUCTIVE_FILES:
        raise UsageError(f"{label} says what to delete, not what to take.", actions=("Name a package.xml.",))
    return resolve_components(
        project,
        manifest=manifest,
        manifest_path=Path(label),
        api_version=api_version,
        locate=index_members(read_xml(bytes_of(path), label=label)),
        may_be_empty=may_be_empty,
    )


def _chosen(project: Project, selection: Selection) -> tuple[Component, ...]:
    patterns = parse_members(selection.metadata)
    components = find_components(project)
    if selection.source_dirs:
        return components_under(project, components, selection.source_dirs)
    return components_named(components, patterns) if patterns else components
