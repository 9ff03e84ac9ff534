"""Formatting: files in the form in which an org hands them out, comments kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalmeta.api.metadata import bytes_of, files_to_check, shown
from evalmeta.errors import InvalidMetadata
from evalmeta.package.convert import named_by
from evalmeta.package.files import put_file
from evalmeta.validation.manifests import validate_manifest
from evalmeta.xmlio.formatter import format_definition, format_manifest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from evalmeta.model.problem import Problem

__all__ = ["Formatting", "format_files"]


@dataclass(frozen=True, slots=True)
class Formatting:
    """What formatting did.

    Attributes:
        changed: the files that were written anew, or would be.
        problems: why files were left alone.
        files: how many files were looked at.
    """

    changed: tuple[str, ...]
    problems: tuple[Problem, ...]
    files: int


def format_files(paths: Sequence[Path] = (), *, start: Path | None = None, check: bool = False) -> Formatting:
    """Writes files in canonical form, each in one step; a file that cannot be read as its type is left alone.

    Args:
        paths: as for `metadata.validate`.
        start: as for `metadata.validate`.
        check: write nothing, only tell which files would change.

    Raises:
        NotFound: a path does not exist, or is no file that evalmeta formats.
        ProjectError: there is no project, and no path was given; or a file cannot be written.
    """
    files = files_to_check(paths, start=start)
    changed: list[str] = []
    problems: list[Problem] = []
    for path in files:
        before = bytes_of(path)
        try:
            after = _formatted(path, before)
        except InvalidMetadata as error:
            problems += error.problems
            continue
        if after != before:
            changed.append(shown(path))
            if not check:
                put_file(path, after)
    return Formatting(tuple(changed), tuple(problems), len(files))


def _formatted(path: Path, data: bytes) -> bytes:
    label = shown(path)
    if named_by(path.name):
        return format_definition(data, label=label)
    manifest, problems = validate_manifest(data, label=label)
    if manifest is None:
        raise InvalidMetadata(f"{label} cannot be formatted", problems=problems)
    return format_manifest(data, label=label)
