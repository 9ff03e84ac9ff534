"""Writing files so that each is either as it was or as it should be.

Paths as messages show them.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from evalmeta import limits
from evalmeta.errors import ProjectError

if TYPE_CHECKING:
    from evalmeta.package.project import Project


FileState = Literal["Created", "Changed", "Unchanged"]


def write_file(project: Project, path: Path, content: bytes) -> None:
    """Write a file of the project in one step; a crash leaves the old one or the new one.

    Raises:
        ProjectError: the file lies outside the project, behind a link say, or cannot be written.
    """
    write_below(project.root, path, content, called="the project")


def write_below(
    folder: Path, path: Path, content: bytes, *, called: str = "", durable: bool = True, mode: int | None = None
) -> None:
    """Write a file somewhere in a folder in one step; the folder has an absolute path without links.

    Links that stay inside the folder are followed and stay links. Without `durable` it is
    quick, and a file may be lost when the machine stops. The file gets `mode` where it is
    given; otherwise it keeps the one it has, or gets the usual one.

    Raises:
        ProjectError: the file lies outside the folder (`called` so in the message), or cannot be written.
    """
    target = target_below(folder, path, called=called)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, content, durable=durable, mode=mode)
    except OSError as error:
        raise ProjectError(f"{path}: cannot be written: {error.strerror}") from None


def target_below(folder: Path, path: Path, *, called: str = "") -> Path:
    """Return the file that `write_below` writes: the path's own, or the one that its links lead to.

    Raises:
        ProjectError: it lies outside the folder, or there is none because links lead to each other.
    """
    # realpath, because Path.resolve() raises RuntimeError for links that lead to each other.
    target = Path(os.path.realpath(path))
    if not target.is_relative_to(folder):
        raise ProjectError(f"{path}: a link leads out of {called or folder}; the file was not written")
    if target.is_symlink():
        raise ProjectError(f"{path}: cannot be written: its links lead to each other")
    return target


def put_file(path: Path, content: bytes) -> FileState:
    """Write a file that a user named, links followed, unless it has the content already; says what that did.

    Raises:
        ProjectError: the file cannot be read or written.
    """
    target = Path(os.path.realpath(path))
    state = state_of(target, content)
    if state != "Unchanged":
        write_below(target.parent, target, content)
    return state


def state_of(path: Path, content: bytes) -> FileState:
    """Return what writing the content would do to a file.

    Raises:
        ProjectError: the file cannot be read.
    """
    try:
        if not path.is_file():
            return "Created"
        same = path.stat().st_size == len(content) and read_file(path, max_bytes=len(content)) == content
    except OSError as error:
        raise ProjectError(f"{path}: cannot be read: {error.strerror}") from None
    return "Unchanged" if same else "Changed"


def read_file(path: Path, *, max_bytes: int = limits.MAX_XML_BYTES) -> bytes:
    """Read a whole file.

    Raises:
        ProjectError: it cannot be read, or is larger than `max_bytes`.
    """
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise ProjectError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > max_bytes:
        raise ProjectError(f"{path}: is larger than {max_bytes:,} bytes")
    return content


def _replace(path: Path, content: bytes, *, durable: bool, mode: int | None) -> None:
    if mode is None:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if durable:
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


def shown(path: Path) -> str:
    """Return a path as messages show it: relative to the current folder when it is inside."""
    here = os.getcwd().replace(os.sep, "/")  # noqa: PTH109 - ten times as fast, once a file
    return path.as_posix().removeprefix(f"{here}/")
