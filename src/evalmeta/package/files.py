"""Reading and atomic writing of files, names of paths and keys for messages, and the file names of components."""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from evalmeta import limits
from evalmeta.errors import NotFound, ProjectError, UsageError
from evalmeta.model.problem import Location, Problem, Severity
from evalmeta.model.registry import META_XML_SUFFIX, TYPES, Component, MetadataType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


FileState = Literal["Created", "Changed", "Unchanged"]


@dataclass(frozen=True, slots=True)
class ComponentFile:
    """What a command did to a component: its state, its full name (empty for a manifest), and its file."""

    state: FileState | Literal["Deleted"]
    full_name: str
    file: str


# What tempfile appends to the name of a file or folder that is being written.
_UNFINISHED: Final = re.compile(r"\.(.+)\.[a-z0-9_]{8}")
_UNLOCKED_SECONDS: Final = 3600.0


def write_files(root: Path, files: Iterable[tuple[Path, bytes]]) -> Iterator[Path]:
    """Write files of the project in a folder, each atomically, and yield their paths; folders are synced at the end.

    Raise ProjectError if a file is outside the project, for example behind a link.
    """
    folders: set[Path] = set()
    try:
        for path, content in files:
            write_below(root, path, content, called="the project", sync_folder=False)
            folders.add(path.parent)
            yield path
    finally:
        for folder in folders:
            sync_names(folder)


def write_below(
    folder: Path,
    path: Path,
    content: bytes | Iterable[bytes],
    *,
    called: str = "",
    durable: bool = True,
    sync_folder: bool = True,
    mode: int | None = None,
) -> None:
    """Write a file below a folder atomically; links that stay inside the folder are followed.

    The content may come in pieces. The folder is an absolute path without links; `called` is its name in messages. If
    not `durable`, the file may be lost if the machine stops, and without `sync_folder` its name. By default the
    permissions are those of the existing file, or the usual ones. Raise ProjectError if the file is outside the folder
    or cannot be written.
    """
    try:
        target = target_below(folder, path, called=called)
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, content, durable=durable, mode=mode)
        if durable and sync_folder:
            sync_names(target.parent)
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
    if is_stream(path):
        put_pieces(path, [content])
        return "Created"
    target = Path(os.path.realpath(path))
    state = state_of(target, content)
    if state != "Unchanged":
        write_below(target.parent, target, content)
    return state


def put_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file that a user named from pieces; it changes only when all of them have been written."""
    if is_stream(path):
        try:
            with path.open("wb", buffering=0) as stream:
                for piece in pieces:
                    stream.write(piece)
        except OSError as error:
            raise ProjectError(f"{path}: cannot be written: {error.strerror}") from None
        return
    target = Path(os.path.realpath(path))
    sweep_unfinished(target.parent, lambda name: name == target.name)
    write_below(target.parent, target, pieces)


def is_stream(path: Path) -> bool:
    """Return whether a path is a device, a pipe or a terminal, such as /dev/null: it is written to, never replaced."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def put_folder(folder: Path, entries: Mapping[str, bytes]) -> None:
    """Write files into a folder that a user named; a new folder appears with all of them, or not at all."""
    target = Path(os.path.realpath(folder))
    sweep_unfinished(target.parent, lambda name: name == target.name)
    if target.exists():
        for name, content in entries.items():
            write_below(target, target / name, content, durable=False)
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
        lock = _locked(unfinished)
        try:
            for name, content in entries.items():
                write_below(unfinished, unfinished / name, content, durable=False)
            unfinished.chmod(0o777 & ~_umask())
            unfinished.rename(target)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        finally:
            if lock is not None:
                os.close(lock)
    except OSError as error:
        raise ProjectError(f"{folder}: cannot be written: {error.strerror}") from None


def sweep_unfinished(folder: Path, is_ours: Callable[[str], bool]) -> None:
    """Delete the temporary files and folders of processes that were killed while they wrote something in a folder.

    `is_ours` is asked about the name of what was written.
    """
    with suppress(OSError):
        for entry in os.scandir(folder):
            named = _UNFINISHED.fullmatch(entry.name)
            if named and is_ours(named[1]) and _is_abandoned(folder / entry.name):
                with suppress(OSError):
                    (shutil.rmtree if entry.is_dir(follow_symlinks=False) else os.unlink)(entry.path)


def _is_abandoned(path: Path) -> bool:
    """Return whether no process writes a temporary file or folder any more.

    Then its lock is free, or it is old where there are no locks. A new one may not be locked yet.
    """
    age = time.time() - path.lstat().st_mtime
    if os.name != "posix":
        return age > _UNLOCKED_SECONDS
    lock = None if path.is_symlink() or age < 1 else _locked(path)
    if lock is not None:
        os.close(lock)
    return lock is not None


def _locked(path: Path) -> int | None:
    """Return an open descriptor that holds the lock of a file or folder; None if it cannot be locked."""
    if os.name != "posix":
        return None
    descriptor = os.open(path, os.O_RDONLY)
    if _lock(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def _lock(descriptor: int) -> bool:
    """Lock an open file until it is closed, and return whether that was possible."""
    if os.name == "posix":
        import fcntl

        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


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


def bytes_of(path: Path) -> bytes:
    """Read a file up to `limits.MAX_XML_BYTES` and one more byte."""
    try:
        if stat.S_ISFIFO(path.stat().st_mode):
            raise NotFound(f"{str(path)!r} is a pipe", actions=["Write its content to a file, and name that."])
        with path.open("rb") as file:
            return file.read(min(os.fstat(file.fileno()).st_size, limits.MAX_XML_BYTES) + 1)
    except FileNotFoundError:
        raise NotFound(f"the file {str(path)!r} cannot be found", actions=slash_hint(path)) from None
    except OSError as error:
        raise NotFound(f"{str(path)!r} cannot be read: {error.strerror}") from None


def _replace(path: Path, content: bytes | Iterable[bytes], *, durable: bool, mode: int | None) -> None:
    if mode is None:
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            _lock(descriptor)
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            if durable:
                sync_file(descriptor)
            Path(name).chmod(mode)
            # Where there are locks, the file has its name before it is unlocked; Windows renames closed files only.
            if os.name == "posix":
                Path(name).replace(path)
        if os.name != "posix":
            Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def sync_file(descriptor: int) -> None:
    """Wait until a file or folder is on the disk."""
    if os.name == "posix":
        import fcntl

        # On macOS, fsync leaves the data in the cache of the disk. Network disks may not have the other call.
        if full := getattr(fcntl, "F_FULLFSYNC", None):
            with suppress(OSError):
                fcntl.fcntl(descriptor, full)
                return
    os.fsync(descriptor)


def sync_names(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; some file systems cannot do that, and Windows has no call."""
    if os.name == "posix":
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                sync_file(descriptor)
            finally:
                os.close(descriptor)


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


def project_label(path: Path, root: Path) -> str:
    """Return the path of a project's file in messages: results have no folders of this machine."""
    return path.relative_to(root.resolve()).as_posix() if path.is_relative_to(root.resolve()) else path.name


def shown(path: Path) -> str:
    """Return a path for messages: relative to the current folder if it is inside."""
    here = os.getcwd().replace(os.sep, "/")  # noqa: PTH109 - ten times as fast as Path.cwd()
    return path.as_posix().removeprefix(f"{here}/")


_BY_SUFFIX: Final = {row.suffix: row for row in TYPES if not row.is_bundle}
# A safe file name on every system: no separator, drive, stream or control character, valid Unicode, not hidden.
_FULL_NAME: Final = re.compile(r"(?!\.)[^/\\:\x00-\x1f\x7f-\x9f\ud800-\udfff]+")


def parse_safe_file_name(file_name: str) -> tuple[MetadataType, str] | None:
    """Return type and full name by a file name in source or metadata format; None for other, hidden or unsafe names.

    The files of bundles are other files: they belong to the folder that they are in.
    """
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


_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


def read_text(path: Path, *, raises: type[UsageError], max_bytes: int = limits.MAX_SETTINGS_BYTES) -> str:
    """Return the text of a UTF-8 file of at most `max_bytes`; errors are of the class `raises`."""
    try:
        if not path.is_file():
            raise raises(f"{path}: the file does not exist.")
        with path.open("rb") as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise raises(f"{path}: cannot be read: {error.strerror}.") from error
    if len(data) > max_bytes:
        raise raises(f"{path}: is larger than {max_bytes:,} bytes.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise raises(f"{path}:{line}: is not UTF-8.", actions=("Save the file as UTF-8.",)) from error


def key_name(keys: Sequence[str | int]) -> str:
    """Return a dotted key: `run.concurrency`, `subjects."My Agent".adapter`, `packageDirectories[0].path`."""
    return "".join(_step(key) for key in keys).removeprefix(".")


def _step(key: str | int) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    return f".{key}" if _BARE_KEY.fullmatch(key) else f'."{key}"'
