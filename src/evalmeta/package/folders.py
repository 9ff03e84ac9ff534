"""The files in a folder that can be a project's own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from evalmeta.errors import ProjectError
from evalmeta.package.forceignore import ForceIgnore, read_forceignore
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_SKIPPED: Final = frozenset({"node_modules", "__pycache__"})
# Every virtual environment of Python has this file (PEP 405).
_VIRTUAL_ENVIRONMENT: Final = "pyvenv.cfg"


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files in a folder and its subfolders, in no particular order.

    Hidden files and folders, `node_modules`, `__pycache__`, virtual environments and what the project's `.forceignore`
    ignores are skipped, unless `folder` itself is one of them. Links to folders are not followed. Raise ProjectError if
    `.forceignore` is not valid.
    """
    root = os.path.realpath(folder)
    ignore = _ignore_of(folder)
    for where, folders, files in os.walk(root):
        if _VIRTUAL_ENVIRONMENT in files and where != root:
            folders.clear()
            continue
        folders[:] = [name for name in folders if not _is_skipped(ignore, where, name)]
        below = folder / where[len(root) :].lstrip(os.sep)
        visible = (file for file in files if not file.startswith("."))
        yield from (below / text for text in visible if not ignore.ignores(f"{where}{os.sep}{text}"))


def _is_skipped(ignore: ForceIgnore, where: str, folder: str) -> bool:
    if folder.startswith(".") or folder in _SKIPPED:
        return True
    return ignore.ignores(f"{where}{os.sep}{folder}", is_folder=True)


def _ignore_of(folder: Path) -> ForceIgnore:
    """Return the ignored files of the project around a folder; none if it has no project, or is ignored itself."""
    try:
        root = find_project(folder).root
    except ProjectError:
        return ForceIgnore(folder)
    ignore = read_forceignore(root)
    return ForceIgnore(root) if ignore.ignores(os.path.realpath(folder), is_folder=True) else ignore
