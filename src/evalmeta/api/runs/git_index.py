"""Whether the tracked files are those of a commit, as gitformat-index(5) describes it; git itself is not started."""

from __future__ import annotations

import hashlib
import os
import stat
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_HEADER: Final = struct.Struct(">4sII")
_VERSIONS: Final = frozenset({2, 3})
# When a file changed, in seconds and nanoseconds, its mode and its size; what is between them is not needed.
_ENTRY: Final = struct.Struct(">8xII8xI8xI")
_EXTENDED, _STAGE = 0x4000, 0x3000
_EXTENSION: Final = struct.Struct(">4sI")
_SIZE_MASK: Final = 0xFFFF_FFFF
_SECOND: Final = 1_000_000_000
_ALGORITHMS: Final = {20: "sha1", 32: "sha256"}


class _Entry(NamedTuple):
    path: bytes
    changed: int  # in nanoseconds
    size: int
    name: bytes  # the hash of the content
    end: int  # where the next entry begins


class _Index(NamedTuple):
    """An index that was read.

    Attributes:
        state: the file, its size and its times, which tell whether it is still the same.
        written: when it was written, in nanoseconds.
        entries: its files.
        tree: the tree that a commit of the index would have; empty if it is not known.
    """

    state: tuple[int, ...]
    written: int
    entries: Sequence[_Entry]
    tree: str


# The last index of each folder: reading it takes longer than looking at the files, and programs evaluate often.
_read: dict[tuple[Path, int], _Index] = {}
_MOST_READ: Final = 4


def is_clean(git: Path, root: Path, tree: str) -> bool:
    """Return whether the tracked files are known to be those of a commit's tree, in the index and in the folder.

    It is False if this takes long to find out, such as for many files, or if git keeps the files in another way.
    """
    try:
        index = _index(git / "index", len(bytes.fromhex(tree)))
        left = limits.MAX_HASHED_BYTES
        folder = os.fsencode(root) + b"/"
        for entry in index.entries:
            found = os.lstat(folder + entry.path)
            # A file that changed when the index was written may have changed after it, too.
            if not (found.st_mtime_ns == entry.changed < index.written and found.st_size & _SIZE_MASK == entry.size):
                left -= _hashed_bytes(folder + entry.path, entry, found, left)
    except (OSError, ValueError, IndexError, KeyError, struct.error):
        return False
    return index.tree == tree


def _index(path: Path, name_size: int) -> _Index:
    """Return an index; it is read again only if it has changed."""
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        state = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
        known = _read.get((path, name_size))
        if known is not None and known.state == state:
            return known
        data = file.read(limits.MAX_INDEX_BYTES + 1)
    entries = [*_entries(data, name_size)]
    end = entries[-1].end if entries else _HEADER.size
    index = _Index(state, found.st_mtime_ns, entries, _root_tree(data[end:-name_size], name_size))
    for oldest in [*_read][: max(0, len(_read) - _MOST_READ + 1)]:
        _read.pop(oldest, None)
    _read[path, name_size] = index
    return index


def _entries(data: bytes, name_size: int) -> Iterator[_Entry]:
    """Yield the entries of an index; raise ValueError if one is not a file, or the index has another format."""
    signature, version, count = _HEADER.unpack_from(data)
    if signature != b"DIRC" or version not in _VERSIONS or len(data) > limits.MAX_INDEX_BYTES:
        raise ValueError("the index cannot be read")
    place, to_path = _HEADER.size, _ENTRY.size + name_size + 2
    for _ in range(count):
        seconds, nanoseconds, mode, size = _ENTRY.unpack_from(data, place)
        start = place + to_path
        # Conflicts and files that are not checked out have flags; submodules have another mode.
        if (data[start - 2] << 8) & (_STAGE | _EXTENDED) or not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            raise ValueError("an entry is not a file")
        end = data.index(0, start)
        name = data[start - 2 - name_size : start - 2]
        # The end is padded to a multiple of eight bytes.
        place += (end - place) // 8 * 8 + 8
        yield _Entry(data[start:end], seconds * _SECOND + nanoseconds, size, name, place)


def _hashed_bytes(path: bytes, entry: _Entry, found: os.stat_result, most: int) -> int:
    """Return how many bytes were hashed to see that a file has not changed; raise ValueError if it has."""
    if found.st_size & _SIZE_MASK != entry.size or not stat.S_ISREG(found.st_mode) or entry.size > most:
        raise ValueError("the file has changed")
    with Path(os.fsdecode(path)).open("rb") as file:
        content = file.read(entry.size + 1)
    blob = b"blob %d\0" % len(content) + content
    if hashlib.new(_ALGORITHMS[len(entry.name)], blob, usedforsecurity=False).digest() != entry.name:
        raise ValueError("the file has changed")
    return entry.size


def _root_tree(extensions: bytes, name_size: int) -> str:
    """Return the tree that a commit of the index would have; empty if it is not known."""
    place, tree = 0, ""
    while place < len(extensions):
        signature, size = _EXTENSION.unpack_from(extensions, place)
        place += _EXTENSION.size
        content = extensions[place : place + size]
        place += size
        if signature == b"link":
            # Other entries are in another file.
            return ""
        if signature == b"TREE":
            counts, _, names = content.removeprefix(b"\0").partition(b"\n")
            tree = "" if counts.startswith(b"-") else names[:name_size].hex()
    return tree if place == len(extensions) else ""
