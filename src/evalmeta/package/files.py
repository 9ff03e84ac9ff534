"""Reading and atomic writing of files, and paths for messages."""

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
    """Write a file of the project atomically.

    Raises:
        ProjectError: The file is outside the project, for example behind a link, or cannot be written.
    """
    write_below(project.root, path, content, called="the project")


def write_below(
    folder: Path, path: Path, content: bytes, *, called: str = "", durable: bool = True, mode: int | None = None
) -> None:
    """Write a file below a folder atomically; links that stay inside the folder are followed.

    Args:
        folder: The folder, as an absolute path without links.
        path: The file.
        content: Its new content.
        called: The folder's name in messages.
        durable: Whether to wait until the file is on disk; otherwise it may be lost if the machine stops.
        mode: The file's permissions; by default those of the existing file, or the usual ones.

    Raises:
        ProjectError: The file is outside the folder, or cannot be written.
    """
    target = target_below(folder, path, called=called)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, content, durable=durable, mode=mode)
    except OSError as error:
        raise ProjectError(f"{path}: cannot be written: {error.strerror}") from None


def target_below(folder: Path, path: Path, *, called: str = "") -> Path:
    """Return the file that `write_below` writes, with all links resolved.

    Raises:
        ProjectError: It is outside the folder, or the links form a loop.
    """
    # Path.resolve() would raise RuntimeError for loops of links.
    target = Path(os.path.realpath(path))
    if not target.is_relative_to(folder):
        raise ProjectError(f"{path}: a link leads out of {called or folder}; the file was not written")
    if target.is_symlink():
        raise ProjectError(f"{path}: cannot be written: its links form a loop")
    return target


def put_file(path: Path, content: bytes) -> FileState:
    """Write a file that a user named unless it already has the content; return what was done.

    Raises:
        ProjectError: The file cannot be read or written.
    """
    target = Path(os.path.realpath(path))
    state = state_of(target, content)
    if state != "Unchanged":
        write_below(target.parent, target, content)
    return state


def state_of(path: Path, content: bytes) -> FileState:
    """Return what writing the content would do to a file.

    Raises:
        ProjectError: The file cannot be read.
    """
    try:
        if not path.is_file():
            return "Created"
        same = path.stat().st_size == len(content) and read_file(path, max_bytes=len(content)) == content
    except OSError as error:
        raise ProjectError(f"{path}: cannot be read: {error.strerror}") from None
    return "Unchanged" if same else "Changed"


def read_file(path: Path, *, max_bytes: int = limits.MAX_XML_BYTES) -> bytes:
    """Return the content of a file.

    Raises:
        ProjectError: It cannot be read, or is larger than `max_bytes`.
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
    """Return a path for messages: relative to the current folder if it is inside."""
    here = os.getcwd().replace(os.sep, "/")  # noqa: PTH109 - ten times as fast as Path.cwd()
    return path.as_posix().removeprefix(f"{here}/")
