"""Names of components' files in source format, in metadata format and in a zip."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from evalmeta.errors import InvalidMetadata
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import TYPES

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.component import Component
    from evalmeta.model.registry import MetadataType
    from evalmeta.package.project import Project


META_XML_SUFFIX: Final = "-meta.xml"

_BY_SUFFIX: Final = {row.suffix: row for row in TYPES}
# One file name on every system: no separator, drive, stream or control character, all of it UTF-8, and not hidden.
_FULL_NAME: Final = re.compile(r"(?!\.)[^/\\:\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


def entry_name(component: Component) -> str:
    """Return the component's place in a zip: `aiEvaluationDefinitions/X.aiEvaluationDefinition`."""
    return f"{component.type.directory}/{component.full_name}.{component.type.suffix}"


def parse_safe_file_name(file_name: str) -> tuple[MetadataType, str] | None:
    """Read type and full name from a file's name, in source or metadata format; None when it is no component's.

    Hidden files and names that could lead out of a folder are no component's.
    """
    named = parse_file_name(file_name)
    return named if named and _FULL_NAME.fullmatch(named[1]) else None


def parse_file_name(file_name: str) -> tuple[MetadataType, str] | None:
    """Read what a file on disk means to name: as `parse_safe_file_name`, but names that no org or zip can have too."""
    full_name, _, suffix = file_name.removesuffix(META_XML_SUFFIX).rpartition(".")
    row = _BY_SUFFIX.get(suffix)
    return (row, full_name) if row and full_name and not full_name.startswith(".") else None


def unsafe_name_problem(component: Component, label: str) -> Problem | None:
    """Return of a component whose file, shown as `label`, has a name that `parse_safe_file_name` does not take."""
    if _FULL_NAME.fullmatch(component.full_name):
        return None
    message = f"the full name {component.full_name!r} cannot be that of a component"
    hint = "Rename the file: letters, digits and underscores are safe everywhere."
    return Problem("full-name-unsafe", Severity.ERROR, Location(label), message, hint, component.key)


def target_path(project: Project, type: MetadataType, full_name: str) -> Path:  # noqa: A002 - Salesforce's word
    """Return the file for a component that the project does not have yet, always inside the project's folders.

    A DX project takes it into `main/default` of its default package directory.

    Raises:
        InvalidMetadata: the full name is no file name, such as `../X` (code `full-name-unsafe`).
    """
    if not _FULL_NAME.fullmatch(full_name):
        raise _unsafe(type, full_name)
    file_name = f"{full_name}.{type.suffix}"
    if project.is_dx:
        folder = project.package_directories[0] / "main" / "default" / type.directory
        return folder / f"{file_name}{META_XML_SUFFIX}"
    return project.root / type.directory / file_name


def _unsafe(row: MetadataType, full_name: str) -> InvalidMetadata:
    message = f"the full name {full_name!r} cannot be the name of a file"
    location = Location(f"{row.directory}/{full_name}.{row.suffix}")
    hint = "Rename the component in the org."
    problem = Problem("full-name-unsafe", Severity.ERROR, location, message, hint, f"{row.name}:{full_name}")
    return InvalidMetadata(message, problems=(problem,), actions=(hint,))
