"""The components that a command selects by folders, by a manifest, or by `--metadata` entries.

Such an entry is `Type:Name`, `Type:Order_*`, or `Type` for all components of the type.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.errors import NotFound, ProjectError, UsageError
from evalmeta.model.registry import TYPES, WILDCARD, metadata_type, nearest_type_name
from evalmeta.package.files import slash_hint
from evalmeta.package.forceignore import read_forceignore
from evalmeta.package.resolver import HINTED_MEMBERS, nearest_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalmeta.model.registry import Component, MetadataType
    from evalmeta.package.project import Project


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected folders and files, or a manifest, or `Type:Name` entries; everything if all are empty.

    Raises:
        UsageError: More than one of the three is used.
    """

    source_dirs: tuple[Path, ...] = ()
    manifest: Path | None = None
    metadata: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that only one of the three is used."""
        if sum((bool(self.source_dirs), self.manifest is not None, bool(self.metadata))) > 1:
            raise UsageError(
                "--source-dir, --manifest and --metadata cannot be combined.",
                actions=("Use only one of them; --source-dir and --metadata can be repeated.",),
            )

    @property
    def is_everything(self) -> bool:
        """Return whether all components are selected."""
        return not (self.source_dirs or self.manifest or self.metadata)


def components_under(project: Project, components: Sequence[Component], paths: Sequence[Path]) -> tuple[Component, ...]:
    """Return the components that are one of the files or in one of the folders, in their order.

    Raise NotFound if a path contains no components, and ProjectError if it is outside the package directories.
    """
    wanted = {_real(path): path for path in paths}
    hit: set[Path] = set()
    chosen: list[Component] = []
    for component in components:
        around = wanted.keys() & {component.path, *component.path.parents}
        if around:
            hit |= around
            chosen.append(component)
    for real, path in wanted.items():
        if real not in hit:
            raise _nothing_under(project, path, real)
    return tuple(chosen)


def _real(path: Path) -> Path:
    """Return a path like those of components: links to folders are resolved, a link to a file is kept."""
    if path.is_dir():
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(path.parent)) / path.name


def _nothing_under(project: Project, path: Path, real: Path) -> ProjectError | NotFound:
    if not path.exists():
        return NotFound(f"{path}: the file or folder does not exist.", actions=slash_hint(path))
    if not any(
        real.is_relative_to(directory) or directory.is_relative_to(real) for directory in project.package_directories
    ):
        folders = ", ".join(directory.relative_to(project.root).as_posix() for directory in project.package_directories)
        return ProjectError(
            f"{path}: is outside the project's package directories ({folders}).",
            actions=("Name a file or folder inside them, or add a package directory to sfdx-project.json.",),
        )
    line = read_forceignore(project.root).find_line(real, is_folder=path.is_dir())
    if line is not None:
        return NotFound(f"{path}: is ignored by {line}.")
    kind = "contains no components" if path.is_dir() else "is not a component"
    return NotFound(f"{path}: {kind}.")


class MemberPattern(NamedTuple):
    """A type and a full name, in which `*` matches any characters and `?` any one."""

    type: MetadataType
    name: str

    def __str__(self) -> str:
        """Return the entry as it is written."""
        return f"{self.type.name}:{self.name}"

    @property
    def is_whole_type(self) -> bool:
        """Return whether it matches all components of the type."""
        return self.name == WILDCARD

    @property
    def is_wild(self) -> bool:
        """Return whether the name has wildcards."""
        return not {"*", "?"}.isdisjoint(self.name)


def parse_members(entries: Iterable[str]) -> tuple[MemberPattern, ...]:
    """Parse entries, without duplicates; raise UsageError or NotFound for malformed entries or unknown types."""
    return tuple(dict.fromkeys(_parse(entry) for entry in entries))


def match_names(patterns: Sequence[MemberPattern], names: Mapping[str, Sequence[str]], *, where: str) -> set[str]:
    """Return the keys (`Type:Name`) that patterns select; raise NotFound if some patterns match nothing.

    `names` are the full names by type; `where` is what they belong to, for messages: `the project`.
    """
    selected: set[str] = set()
    missing: list[MemberPattern] = []
    for pattern in patterns:
        found = _matching(pattern, names.get(pattern.type.name, ()))
        selected.update(f"{pattern.type.name}:{name}" for name in found)
        if not found:
            missing.append(pattern)
    if missing:
        listed = ", ".join(str(pattern) for pattern in missing)
        nearest = [
            (member_pattern.type.name, nearest_name(member_pattern.name, names.get(member_pattern.type.name, ())))
            for member_pattern in missing[:HINTED_MEMBERS]
        ]
        hints = dict.fromkeys(f"Did you mean {kind}:{name}?" for kind, name in nearest if name)
        raise NotFound(f"{where} has no {listed}.", actions=tuple(hints))
    return selected


def components_named(
    components: Sequence[Component], patterns: Sequence[MemberPattern], *, where: str = "the project"
) -> tuple[Component, ...]:
    """Return the components that patterns select, in their order; `where` and errors are those of `match_names`."""
    names: dict[str, list[str]] = {}
    for component in components:
        names.setdefault(component.type.name, []).append(component.full_name)
    selected = match_names(patterns, names, where=where)
    return tuple(component for component in components if component.key in selected)


def _parse(entry: str) -> MemberPattern:
    type_name, colon, name = (part.strip() for part in entry.partition(":"))
    if not type_name or (colon and not name):
        raise UsageError(
            f"--metadata {entry!r} is not a valid Type or Type:Name.",
            actions=(f"Write it as {TYPES[0].name}:Full_Name.",),
        )
    row = metadata_type(type_name)
    if row is None:
        near = nearest_type_name(type_name)
        hints = [f"Did you mean {near}?" if near else f"Known types: {', '.join(kind.name for kind in TYPES)}."]
        if not (near or colon):
            hints.insert(0, f"Name a component with its type: {TYPES[0].name}:{type_name}")
        raise NotFound(f"evalmeta does not handle the type {type_name!r}.", actions=hints)
    return MemberPattern(row, name or WILDCARD)


def _matching(pattern: MemberPattern, names: Sequence[str]) -> list[str]:
    if not pattern.is_wild:
        return [name for name in names if name == pattern.name]
    matches = re.compile(translate(pattern.name.replace("[", "[[]"))).match
    return [name for name in names if matches(name)]
