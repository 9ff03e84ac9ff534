"""Reading and atomic writing of files, paths for messages, and the file names of components in each format."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from evalmeta import limits
from evalmeta.errors import InvalidMetadata, ProjectError
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.component import Component
    from evalmeta.model.registry import MetadataType
    from evalmeta.package.project import Project


FileState = Literal["Created", "Changed", "Unchanged"]


def write_file(project: Project, path: Path, content: bytes) -> None:
    """Write a file of the project atomically; raise ProjectError if it is outside, for example behind a link."""
    write_below(project.root, path, content, called="the project")


def write_below(
    folder: Path,
    path: Path,
    content: bytes | Iterable[bytes],
    *,
    called: str = "",
    durable: bool = True,
    mode: int | None = None,
) -> None:
    """Write a file below a folder atomically; links that stay inside the folder are followed.

    The content may come in pieces. The folder is an absolute path without links; `called` is its name in messages. If
    not `durable`, the file may be lost if the machine stops. By default the permissions are those of the existing file,
    or the usual ones. Raise ProjectError if the file is outside the folder or cannot be written.
    """
    try:
        target = target_below(folder, path, called=called)
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, content, durable=durable, mode=mode)
    except OSError as error:
        raise ProjectError(f"{path}: cannot be written: {error.strerror}") from None


def target_below(folder: Path, path: Path, *, called: str = "") -> Path:
    """Return the file that `write_below` writes, with links resolved; raise ProjectError if it is outside."""
    # Path.resolve() would raise RuntimeError for loops of links.
    target = Path(os.path.realpath(path))
    if not target.is_relative_to(folder):
        raise ProjectError(f"{path}: a link leads out of {called or folder}; the file was not written")
    if target.is_symlink():
        raise ProjectError(f"{path}: cannot be written: its links form a loop")
    return target


def put_file(path: Path, content: bytes) -> FileState:
    """Write a file that a user named unless it already has the content; return what was done."""
    target = Path(os.path.realpath(path))
    state = state_of(target, content)
    if state != "Unchanged":
        write_below(target.parent, target, content)
    return state


def put_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file that a user named from pieces; it changes only when all of them have been written."""
    target = Path(os.path.realpath(path))
    write_below(target.parent, target, pieces)


def state_of(path: Path, content: bytes) -> FileState:
    """Return what writing the content would do to a file."""
    try:
        if not path.is_file():
            return "Created"
        same = path.stat().st_size == len(content) and read_file(path, max_bytes=len(content)) == content
    except OSError as error:
        raise ProjectError(f"{path}: cannot be read: {error.strerror}") from None
    return "Unchanged" if same else "Changed"


def read_file(path: Path, *, max_bytes: int = limits.MAX_XML_BYTES) -> bytes:
    """Return the content of a file; raise ProjectError if it cannot be read or is larger than `max_bytes`."""
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise ProjectError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > max_bytes:
        raise ProjectError(f"{path}: is larger than {max_bytes:,} bytes")
    return content


def _replace(path: Path, content: bytes | Iterable[bytes], *, durable: bool, mode: int | None) -> None:
    if mode is None:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
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


def slash_hint(path: Path) -> list[str]:
    """Return what to do about a path that does not exist, if it has the separators of Windows on another system."""
    name = str(path)
    if os.sep == "\\" or "\\" not in name:
        return []
    slashed = name.replace("\\", "/")
    return [f"Did you mean {slashed}?" if Path(slashed).exists() else f"Write / between folders: {slashed}"]


def shown(path: Path) -> str:
    """Return a path for messages: relative to the current folder if it is inside."""
    here = os.getcwd().replace(os.sep, "/")  # noqa: PTH109 - ten times as fast as Path.cwd()
    return path.as_posix().removeprefix(f"{here}/")


META_XML_SUFFIX: Final = "-meta.xml"
_BY_SUFFIX: Final = {row.suffix: row for row in TYPES}
# A safe file name on every system: no separator, drive, stream or control character, valid Unicode, not hidden.
_FULL_NAME: Final = re.compile(r"(?!\.)[^/\\:\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


def entry_name(component: Component) -> str:
    """Return the component's name in a zip: `aiEvaluationDefinitions/X.aiEvaluationDefinition`."""
    return f"{component.type.directory}/{component.full_name}.{component.type.suffix}"


def parse_safe_file_name(file_name: str) -> tuple[MetadataType, str] | None:
    """Return type and full name by a file name in source or metadata format; None for other, hidden or unsafe names."""
    named = parse_file_name(file_name)
    return named if named and is_safe_full_name(named[1]) else None


def is_safe_full_name(full_name: str) -> bool:
    """Return whether a full name is valid and can be a file name on every system."""
    return _FULL_NAME.fullmatch(full_name) is not None


def parse_file_name(file_name: str) -> tuple[MetadataType, str] | None:
    """Return type and full name like `parse_safe_file_name`, but also for unsafe full names."""
    full_name, _, suffix = file_name.removesuffix(META_XML_SUFFIX).rpartition(".")
    row = _BY_SUFFIX.get(suffix)
    return (row, full_name) if row and full_name and not full_name.startswith(".") else None


def parse_test_name(file_name: str) -> tuple[MetadataType, str] | None:
    """Return type and full name like `parse_file_name`, but only of definitions of tests."""
    named = parse_file_name(file_name)
    return named if named and named[0].is_test else None


def unsafe_name_problem(component: Component, label: str) -> Problem | None:
    """Return the problem of a component with an unsafe full name; None if the name is safe."""
    if is_safe_full_name(component.full_name):
        return None
    message = f"the full name {component.full_name!r} is not a valid name of a component"
    hint = "Rename the file; letters, digits and underscores are safe on every system."
    return Problem("full-name-unsafe", Severity.ERROR, Location(label), message, hint, component.key)


def target_path(project: Project, kind: MetadataType, full_name: str) -> Path:
    """Return the path of a component that the project does not have yet, always inside the project.

    In a DX project, it is in `main/default` of the default package directory. Raise InvalidMetadata if the full name
    is not a valid file name, such as `../X` (code `full-name-unsafe`).
    """
    if not _FULL_NAME.fullmatch(full_name):
        message = f"the full name {full_name!r} is not a valid file name"
        location = Location(f"{kind.directory}/{full_name}.{kind.suffix}")
        hint = "Rename the component in the org."
        problem = Problem("full-name-unsafe", Severity.ERROR, location, message, hint, f"{kind.name}:{full_name}")
        raise InvalidMetadata(message, problems=(problem,), actions=(hint,))
    file_name = f"{full_name}.{kind.suffix}"
    if project.is_dx:
        folder = project.package_directories[0] / "main" / "default" / kind.directory
        return folder / f"{file_name}{META_XML_SUFFIX}"
    return project.root / kind.directory / file_name
