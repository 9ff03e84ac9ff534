"""Objects of a repository, read from its files as gitformat-pack(5) describes them; git is not started."""

from __future__ import annotations

import mmap
import os
import re
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_INDEX: Final = b"\xfftOc\x00\x00\x00\x02"
_FANOUT: Final = len(_INDEX)
_NAMES: Final = _FANOUT + 4 * 256
_FAR: Final = 0x8000_0000
_COMMIT, _TREE_KIND, _BLOB, _OFFSET_DELTA, _NAMED_DELTA = 1, 2, 3, 6, 7
_WORDS: Final = ((b"commit", _COMMIT), (b"tree", _TREE_KIND), (b"blob", _BLOB))
# More than "commit", a space, the size and a zero byte before the content of a loose object.
_HEADER_BYTES: Final = 64
_PARENT: Final = re.compile(rb"^parent ([0-9a-f]+)$", re.MULTILINE)
_TREE: Final = re.compile(rb"^tree ([0-9a-f]+)$", re.MULTILINE)
_ENCODING: Final = re.compile(rb"^encoding (\S+)$", re.MULTILINE)
_MAX_DELTAS: Final = 60
_MAX_STORES: Final = 6


class Commit(NamedTuple):
    """What a commit says: the first line of its message, its first parent, empty for the first commit, and its tree."""

    subject: str
    parent: str
    tree: str


def read_commit(git: Path, name: str) -> Commit | None:
    """Return a commit of a repository by its full name; None if the repository does not have it, as a shallow one."""
    data = _content(git, name, b"commit", _COMMIT)
    try:
        return None if data is None else _commit(data)
    except (ValueError, IndexError):
        return None


def read_tree(git: Path, name: str) -> dict[str, str] | None:
    """Return the names of the objects in a tree, by the names of its files and folders; None if it cannot be read."""
    data = _content(git, name, b"tree", _TREE_KIND)
    # The rest of a larger one was not read.
    if data is None or len(data) > limits.MAX_COMMIT_BYTES - _HEADER_BYTES:
        return None
    objects: dict[str, str] = {}
    place, size = 0, len(name) // 2
    while place < len(data):
        start, end = data.find(b" ", place), data.find(b"\0", place)
        if start < 0 or end < start or end + size >= len(data):
            return None
        objects[os.fsdecode(data[start + 1 : end])] = data[end + 1 : end + 1 + size].hex()
        place = end + 1 + size
    return objects


def read_blob(git: Path, name: str) -> bytes | None:
    """Return the content of a file by the name of its object; None if it cannot be read. Long contents are cut."""
    return _content(git, name, b"blob", _BLOB)


def _content(git: Path, name: str, word: bytes, kind: int) -> bytes | None:
    """Return the content of an object; None if the repository does not have it, or it is of another kind."""
    try:
        stores = _stores(git)
        return next(filter(None, (_loose(store, name, word) or _packed(store, name, kind) for store in stores)), None)
    except (OSError, ValueError, IndexError, RecursionError, zlib.error):
        return None


def _commit(data: bytes) -> Commit:
    head, _, message = data.partition(b"\n\n")
    parent, tree, encoding = (pattern.search(head) for pattern in (_PARENT, _TREE, _ENCODING))
    try:
        text = message.decode(encoding[1].decode() if encoding else "utf-8", "replace")
    except LookupError:
        text = message.decode("utf-8", "replace")
    subject = " ".join(text.strip().partition("\n\n")[0].split())
    return Commit(subject, *(found[1].decode() if found else "" for found in (parent, tree)))


def _stores(git: Path) -> Iterator[Path]:
    """Yield the folders with a repository's objects: its own, and those that it borrows from."""
    waiting = [git / "objects"]
    for _ in range(_MAX_STORES):
        if not waiting:
            return
        store = waiting.pop(0)
        yield store
        alternates = store / "info" / "alternates"
        if alternates.is_file():
            lines = alternates.read_text(encoding="utf-8")[: limits.MAX_JSON_BYTES].splitlines()
            waiting += [store / line for line in lines if line and not line.startswith("#")]


def _loose(store: Path, name: str, word: bytes) -> bytes | None:
    path = store / name[:2] / name[2:]
    if not path.is_file():
        return None
    with path.open("rb") as file:
        head, _, body = _inflated(file.read(limits.MAX_COMMIT_BYTES)).partition(b"\0")
    return body if head.startswith(word + b" ") else None


def _packed(store: Path, name: str, wanted_kind: int) -> bytes | None:
    wanted = bytes.fromhex(name)
    for index in sorted((store / "pack").glob("pack-*.idx")):
        with index.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            offset = _offset(data, wanted)
        if offset is None:
            continue
        with (
            index.with_suffix(".pack").open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pack,
        ):
            kind, body = _object(store, pack, offset, len(wanted))
        return body if kind == wanted_kind else None
    return None


def _offset(index: mmap.mmap, wanted: bytes) -> int | None:
    """Return where a pack has an object; None if it does not have it, or its index has another format."""
    if index[: len(_INDEX)] != _INDEX:
        return None
    size, total = len(wanted), _number(index, _FANOUT + 4 * 255)
    low = _number(index, _FANOUT + 4 * (wanted[0] - 1)) if wanted[0] else 0
    high = _number(index, _FANOUT + 4 * wanted[0])
    while low < high:
        middle = (low + high) // 2
        name = index[_NAMES + size * middle : _NAMES + size * (middle + 1)]
        if name == wanted:
            # Behind the names are their checksums, then their offsets, and then those that need eight bytes.
            offsets = _NAMES + (size + 4) * total
            offset = _number(index, offsets + 4 * middle)
            if offset < _FAR:
                return offset
            place = offsets + 4 * total + 8 * (offset - _FAR)
            return int.from_bytes(index[place : place + 8])
        low, high = (middle + 1, high) if name < wanted else (low, middle)
    return None


def _number(data: mmap.mmap, place: int) -> int:
    return int.from_bytes(data[place : place + 4])


def _object(store: Path, pack: mmap.mmap, offset: int, name_size: int) -> tuple[int, bytes]:
    """Return the kind and the content of an object of a pack; deltas are applied to the objects that they change."""
    deltas: list[bytes] = []
    while len(deltas) <= _MAX_DELTAS:
        start, place = offset, offset + 1
        kind, more = pack[offset] >> 4 & 7, pack[offset] & 0x80
        while more:
            more, place = pack[place] & 0x80, place + 1
        if kind not in {_OFFSET_DELTA, _NAMED_DELTA}:
            content = _inflated(pack[place : place + limits.MAX_COMMIT_BYTES])
            for delta in reversed(deltas):
                content = _applied(delta, content)
            return kind, content
        if kind == _NAMED_DELTA:
            name, place = pack[place : place + name_size], place + name_size
            deltas.append(_inflated(pack[place : place + limits.MAX_COMMIT_BYTES]))
            known = _named(store, name.hex())
            if known is not None:
                kind, content = known
                for delta in reversed(deltas):
                    content = _applied(delta, content)
                return kind, content
            break
        back, place = pack[place] & 0x7F, place + 1
        while pack[place - 1] & 0x80:
            back, place = (back + 1) << 7 | pack[place] & 0x7F, place + 1
        deltas.append(_inflated(pack[place : place + limits.MAX_COMMIT_BYTES]))
        offset = start - back
        if offset < 0 or offset >= start:
            break
    raise ValueError("the pack cannot be read")


def _named(store: Path, name: str) -> tuple[int, bytes] | None:
    """Return the kind and the content of an object; None if the store does not have it."""
    for word, kind in _WORDS:
        content = _loose(store, name, word) or _packed(store, name, kind)
        if content is not None:
            return kind, content
    return None


def _inflated(data: bytes) -> bytes:
    return zlib.decompressobj().decompress(data, limits.MAX_COMMIT_BYTES)


def _applied(delta: bytes, base: bytes) -> bytes:
    """Return a base with a delta: copies of parts of the base, and new bytes, in order."""
    place = _after_size(delta, _after_size(delta, 0))
    parts: list[bytes] = []
    size = 0
    while place < len(delta) and size <= limits.MAX_COMMIT_BYTES:
        code, place = delta[place], place + 1
        if code & 0x80:
            numbers = [0] * 7
            for bit in range(7):
                if code >> bit & 1:
                    numbers[bit], place = delta[place], place + 1
            start, length = int.from_bytes(numbers[:4], "little"), int.from_bytes(numbers[4:], "little")
            parts.append(base[start : start + (length or 0x10000)])
        else:
            parts.append(delta[place : place + code])
            place += code
        size += len(parts[-1])
    return b"".join(parts)


def _after_size(delta: bytes, place: int) -> int:
    while delta[place] & 0x80:
        place += 1
    return place + 1
