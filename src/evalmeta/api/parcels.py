"""Parcels: the zips that deployments send, packed from a project or from a folder in metadata format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.api.metadata import bytes_of, check_components, shown
from evalmeta.api.selections import read_manifest
from evalmeta.errors import NotFound
from evalmeta.model.manifest import PACKAGE_FILE
from evalmeta.package.archive import build_zip, read_zip
from evalmeta.package.contents import near_limits, package_entries
from evalmeta.package.files import read_file
from evalmeta.xmlio.manifests import write_manifest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evalmeta.model.component import Component, ComponentSet
    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.project import Project

__all__ = ["Parcel", "pack_folder", "pack_project", "read_deletions"]

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
