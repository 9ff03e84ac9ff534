"""Packages: zips for the Metadata API, built from a selection without an org."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalmeta.api.metadata import ignore_problems, shown
from evalmeta.api.parcels import read_deletions
from evalmeta.api.selections import resolve
from evalmeta.errors import NotFound, UsageError
from evalmeta.model.manifest import DESTRUCTIVE_FILES, POST_DESTRUCTIVE_FILE, PRE_DESTRUCTIVE_FILE
from evalmeta.package.archive import build_zip
from evalmeta.package.contents import near_limits, package_entries
from evalmeta.package.files import put_file

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.problem import Problem
    from evalmeta.model.registry import ApiVersion
    from evalmeta.package.files import FileState
    from evalmeta.package.project import Project
    from evalmeta.package.selection import Selection

__all__ = ["Package", "build_package", "find_destructive"]


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
