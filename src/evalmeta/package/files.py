"""Writing a project's files so that each is either as it was or as it should be."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from evalmeta.errors import ProjectError

if TYPE_CHECKING:
    from evalmeta.package.project import Project

__all__ = ["write_file"]


def write_file(project: Project, path: Path, content: bytes) -> None:
    """Writes a file of the project in one step; a crash leaves the old one or the new one.

    Raises:
        ProjectError: the file lies outside the project, behind a link say, or cannot be written.
    """
    try:
        # realpath, because Path.resolve() raises RuntimeError for links that lead to each other.
        if path.is_symlink() or not Path(os.path.realpath(path.parent)).is_relative_to(project.root):
            raise ProjectError(f"{path}: a link leads out of the project; the file was not written")
        path.parent.mkdir(parents=True, exist_ok=True)
        _replace(path, content)
    except OSError as error:
        raise ProjectError(f"{path}: cannot be written: {error.strerror}") from None


def _replace(path: Path, content: bytes) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
