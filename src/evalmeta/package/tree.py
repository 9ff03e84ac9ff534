"""The search for component files in a project's folders, by their names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta.errors import ProjectError
from evalmeta.model.component import Component
from evalmeta.model.registry import TYPES
from evalmeta.package.convert import parse_file_name
from evalmeta.package.files import shown
from evalmeta.package.forceignore import read_forceignore
from evalmeta.package.project import PROJECT_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.package.forceignore import ForceIgnore
    from evalmeta.package.project import Project


_SKIPPED: Final = "node_modules"


def component_files(project: Project) -> Iterator[Component]:
    """Yield the components of the project, in no particular order.

    In a DX project, components can be in any folder of a package directory, except hidden ones and `node_modules`; in
    a plain folder, only in the folder of their type. Symlinks inside the project are followed, each folder once.
    Files that `.forceignore` ignores are skipped.

    Raises:
        OSError: A folder cannot be read.
        ProjectError: `.forceignore` cannot be read, or a package directory is not a folder.
    """
    ignore = read_forceignore(project.root)
    return _in_package_directories(project, ignore) if project.is_dx else _in_type_folders(project, ignore)


def _in_package_directories(project: Project, ignore: ForceIgnore) -> Iterator[Component]:
    pending = [each for each in project.package_directories if not _hides(ignore, each)]
    _expect_folders(project, pending)
    visited: set[Path] = set()
    while pending:
        folder = pending.pop()
        if folder in visited:
            continue
        visited.add(folder)
        for entry in _entries(folder, project.root):
            if not entry.is_dir():
                yield from _component(entry, ignore)
                continue
            target = _real(entry) if entry.is_symlink() else Path(entry.path)
            skipped = entry.name.startswith(".") or entry.name == _SKIPPED
            if not (skipped or _hides(ignore, Path(entry.path)) or _hides(ignore, target)):
                pending.append(target)


def _expect_folders(project: Project, directories: Sequence[Path]) -> None:
    for each in directories:
        if not each.is_dir():
            what = "is not a folder" if each.exists() else "does not exist"
            name = each.relative_to(project.root).as_posix()
            raise ProjectError(
                f"{shown(project.root / PROJECT_FILE)}: the package directory {name!r} {what}.",
                actions=(f"Create the folder {shown(each)}, or correct packageDirectories.",),
            )


def _in_type_folders(project: Project, ignore: ForceIgnore) -> Iterator[Component]:
    for row in TYPES:
        link = project.root / row.directory
        folder = Path(os.path.realpath(link))
        if not (folder.is_dir() and folder.is_relative_to(project.root)) or _hides(ignore, link):
            continue
        found = (component for entry in _entries(folder, project.root) for component in _component(entry, ignore))
        yield from (component for component in found if component.type == row)


def _entries(folder: Path, root: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from (entry for entry in entries if not entry.is_symlink() or _leads_inside(entry, root))


def _leads_inside(entry: os.DirEntry[str], root: Path) -> bool:
    target = _real(entry)
    return target.is_relative_to(root) and target.exists()


def _real(entry: os.DirEntry[str]) -> Path:
    return Path(os.path.realpath(entry.path))


def _hides(ignore: ForceIgnore, folder: Path) -> bool:
    return ignore.ignores(folder, is_folder=True)


def _component(entry: os.DirEntry[str], ignore: ForceIgnore) -> Iterator[Component]:
    named = parse_file_name(entry.name)
    if named and entry.is_file() and not ignore.ignores(entry.path):
        yield Component(*named, Path(entry.path))
