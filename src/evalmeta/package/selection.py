"""What a command was asked to take, and which of a project's components that is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evalmeta.errors import NotFound, ProjectError, UsageError
from evalmeta.package.forceignore import FORCEIGNORE_FILE, read_forceignore

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.component import Component
    from evalmeta.package.project import Project

__all__ = ["Selection", "components_under"]


@dataclass(frozen=True, slots=True)
class Selection:
    """What to take: folders and files, or what a manifest names, or `Type:Name` entries; without any, everything.

    Raises:
        UsageError: more than one of the three is given.
    """

    source_dirs: tuple[Path, ...] = ()
    manifest: Path | None = None
    metadata: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuses a contradiction."""
        if sum((bool(self.source_dirs), self.manifest is not None, bool(self.metadata))) > 1:
            raise UsageError(
                "--source-dir, --manifest and --metadata exclude each other.",
                actions=("Give one of them, as often as needed for --source-dir and --metadata.",),
            )

    @property
    def is_everything(self) -> bool:
        """Says whether nothing is left out."""
        return not (self.source_dirs or self.manifest or self.metadata)


def components_under(project: Project, components: Sequence[Component], paths: Sequence[Path]) -> tuple[Component, ...]:
    """Gives the components that are one of the files, or stand in one of the folders, in the order they came.

    Raises:
        NotFound: there is no such path, or nothing of the project's in it.
        ProjectError: a path lies outside the package directories.
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
    """Gives a path as components' paths are spelt: links to folders resolved, a link to a file kept."""
    if path.is_dir():
        return Path(os.path.realpath(path))
    return Path(os.path.realpath(path.parent)) / path.name


def _nothing_under(project: Project, path: Path, real: Path) -> ProjectError | NotFound:
    if not path.exists():
        return NotFound(f"{path}: there is no such file or folder.")
    if not any(real.is_relative_to(each) or each.is_relative_to(real) for each in project.package_directories):
        folders = ", ".join(each.relative_to(project.root).as_posix() for each in project.package_directories)
        return ProjectError(
            f"{path}: lies outside the project's package directories ({folders}).",
            actions=("Name a file or folder inside, or add a package directory to sfdx-project.json.",),
        )
    line = read_forceignore(project.root).find_line(real, is_folder=path.is_dir())
    if line is not None:
        place = f"{FORCEIGNORE_FILE}:{line.number}" if line.number else f"a default of {FORCEIGNORE_FILE}"
        return NotFound(f"{path}: is ignored by {line.text.strip()!r} ({place}).")
    kind = "has no components in it" if path.is_dir() else "is no component"
    return NotFound(f"{path}: {kind}.")
