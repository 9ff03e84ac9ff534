"""The file names of components in source format, in metadata format and in zips."""

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
# A safe file name on every system: no separator, drive, stream or control character, valid Unicode, not hidden.
_FULL_NAME: Final = re.compile(r"(?!\.)[^/\\:\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


def entry_name(component: Component) -> str:
    """Return the component's name in a zip: `aiEvaluationDefinitions/X.aiEvaluationDefinition`."""
    return f"{component.type.directory}/{component.full_name}.{component.type.suffix}"


def parse_safe_file_name(file_name: str) -> tuple[MetadataType, str] | None:
    """Return type and full name of a component by its file name in source or metadata format; None for other files.

    None is also returned for hidden files and for names that are not safe file names.
    """
    named = parse_file_name(file_name)
    return named if named and _FULL_NAME.fullmatch(named[1]) else None


def parse_file_name(file_name: str) -> tuple[MetadataType, str] | None:
    """Return type and full name like `parse_safe_file_name`, but also for unsafe full names."""
    full_name, _, suffix = file_name.removesuffix(META_XML_SUFFIX).rpartition(".")
    row = _BY_SUFFIX.get(suffix)
    return (row, full_name) if row and full_name and not full_name.startswith(".") else None


def unsafe_name_problem(component: Component, label: str) -> Problem | None:
    """Return the problem of a component with an unsafe full name; None if the name is safe."""
    if _FULL_NAME.fullmatch(component.full_name):
        return None
    message = f"the full name {component.full_name!r} is not a valid name of a component"
    hint = "Rename the file; letters, digits and underscores are safe on every system."
    return Problem("full-name-unsafe", Severity.ERROR, Location(label), message, hint, component.key)


def target_path(project: Project, kind: MetadataType, full_name: str) -> Path:
    """Return the path of a component that the project does not have yet, always inside the project.

    In a DX project, it is in `main/default` of the default package directory.

    Raises:
        InvalidMetadata: The full name is not a valid file name, such as `../X` (code `full-name-unsafe`).
    """
    if not _FULL_NAME.fullmatch(full_name):
        raise _unsafe(kind, full_name)
    file_name = f"{full_name}.{kind.suffix}"
    if project.is_dx:
        folder = project.package_directories[0] / "main" / "default" / kind.directory
        return folder / f"{file_name}{META_XML_SUFFIX}"
    return project.root / kind.directory / file_name


def _unsafe(row: MetadataType, full_name: str) -> InvalidMetadata:
    message = f"the full name {full_name!r} is not a valid file name"
    location = Location(f"{row.directory}/{full_name}.{row.suffix}")
    hint = "Rename the component in the org."
    problem = Problem("full-name-unsafe", Severity.ERROR, location, message, hint, f"{row.name}:{full_name}")
    return InvalidMetadata(message, problems=(problem,), actions=(hint,))
