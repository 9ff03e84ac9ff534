"""Zips of components: the same files always give the same bytes, and any zip is read as if a stranger had made it."""

from __future__ import annotations

import os
import stat
from itertools import islice, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import ArchiveError
from evalmeta.package.entrynames import check_names
from evalmeta.package.zipdirectory import content_of, read_directory, refused
from evalmeta.package.zipformat import DEFLATED, STORED
from evalmeta.package.zipwriter import zip_chunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from evalmeta.package.zipdirectory import ZipEntry

__all__ = ["build_zip", "read_zip"]

# Nearly identical test cases in one file compress 120 to 200 times. Only beyond the size
# of any file that evalmeta reads does such a ratio speak for a bomb.
_RATIO_FREE_BYTES: Final = limits.MAX_XML_BYTES
_ENCRYPTED: Final = 0x0001 | 0x0040 | 0x2000


def build_zip(entries: Iterable[tuple[str, bytes | Path]]) -> bytes:
    """Makes a zip of names and contents; the same input gives the same bytes (with the same zlib).

    Order of the input, clock, time zone, hash seed and system leave no trace: names are
    sorted, dates are 1980-01-01, permissions 0644. Names, count and sizes are checked
    before a file is read; then one file is in memory at a time.

    Raises:
        ArchiveError: a name is unsafe or not unique, a file cannot be read, or the
            archive goes beyond `limits` (entries, bytes unzipped, bytes zipped).
    """
    named = sorted(islice(entries, limits.MAX_ZIP_ENTRIES + 1), key=lambda entry: entry[0])
    if len(named) > limits.MAX_ZIP_ENTRIES:
        raise _beyond(f"more than {limits.MAX_ZIP_ENTRIES:,} entries")
    check_names(name for name, _ in named)
    sizes = [_size(name, content) for name, content in named]
    _check_unzipped(sum(sizes))
    return _zipped((name, _read(name, content, size)) for (name, content), size in zip(named, sizes, strict=True))


def read_zip(data: bytes) -> dict[str, bytes]:
    """Reads every file of a zip from an untrusted sender; folder entries are left out.

    Names, kinds and declared sizes are all judged before the first content is unpacked,
    and no content grows beyond its declared size.

    Raises:
        ArchiveError: for any other bytes. Refused are damaged, truncated, split,
            encrypted and ZIP64 archives; unsafe or repeated names; symlinks and
            devices; overlapping entries; counts, sizes and ratios beyond `limits`.
    """
    _check_zipped(len(data))
    entries = read_directory(data)
    check_names(entry.name for entry in entries)
    for entry in entries:
        _check_kind(entry)
    _check_unzipped(sum(entry.size for entry in entries))
    _check_ratios(entries, len(data))
    _check_overlaps(entries)
    return {entry.name: content_of(data, entry) for entry in entries if not entry.is_folder}


def _size(name: str, content: bytes | Path) -> int:
    if name.endswith("/"):
        raise refused(name, "has the name of a folder")
    if isinstance(content, bytes):
        return len(content)
    try:
        status = content.stat()
    except OSError as error:
        raise _unreadable(name, content, error.strerror) from error
    if not stat.S_ISREG(status.st_mode):
        raise _unreadable(name, content, "it is no plain file")
    return status.st_size


def _zipped(files: Iterable[tuple[str, bytes]]) -> bytes:
    chunks: list[bytes] = []
    size = 0
    for chunk in zip_chunks(files):
        size += len(chunk)
        _check_zipped(size)
        chunks.append(chunk)
    return b"".join(chunks)


def _read(name: str, content: bytes | Path, size: int) -> bytes:
    if isinstance(content, bytes):
        return content
    try:
        data = _read_at_once(content, size + 1)
    except OSError as error:
        raise _unreadable(name, content, error.strerror) from error
    if len(data) != size:
        raise _unreadable(name, content, "it changed while it was read")
    return data


def _read_at_once(path: Path, most: int) -> bytes:
    # A file object costs as much again as the reading of a small file.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        return os.read(descriptor, most)
    finally:
        os.close(descriptor)


def _check_kind(entry: ZipEntry) -> None:
    if entry.flags & _ENCRYPTED:
        raise refused(entry.name, "is encrypted")
    if entry.method not in {STORED, DEFLATED}:
        raise refused(entry.name, f"is compressed by method {entry.method}; only stored (0) and deflated (8) are read")
    kind = stat.S_IFMT(entry.mode)
    if kind == stat.S_IFLNK:
        raise refused(entry.name, "is a symlink")
    if kind not in {0, stat.S_IFDIR if entry.is_folder else stat.S_IFREG}:
        raise refused(entry.name, "is no plain file")


def _check_ratios(entries: Iterable[ZipEntry], zipped: int) -> None:
    for entry in entries:
        if _is_bomb(entry.size, entry.end - entry.start):
            raise refused(
                entry.name, f"unpacks to {entry.size:,} bytes, more than {limits.MAX_ZIP_RATIO} times its size"
            )
    total = sum(entry.size for entry in entries)
    if _is_bomb(total, zipped):
        raise _beyond(f"{total:,} bytes unzipped, more than {limits.MAX_ZIP_RATIO} times its size")


def _is_bomb(size: int, packed: int) -> bool:
    return size > _RATIO_FREE_BYTES and size > limits.MAX_ZIP_RATIO * packed


def _check_overlaps(entries: Sequence[ZipEntry]) -> None:
    for before, after in pairwise(sorted(entries, key=attrgetter("offset"))):
        if after.offset < before.end:
            raise refused(after.name, f"overlaps {before.name!r}")


def _check_unzipped(size: int) -> None:
    if size > limits.MAX_UNZIPPED_BYTES:
        raise _beyond(f"{size:,} bytes unzipped; {limits.MAX_UNZIPPED_BYTES:,} are allowed")


def _check_zipped(size: int) -> None:
    if size > limits.MAX_ZIP_BYTES:
        raise _beyond(f"{size:,} bytes zipped; {limits.MAX_ZIP_BYTES:,} are allowed")


def _beyond(figures: str) -> ArchiveError:
    return ArchiveError(f"The zip has {figures}.", actions=("Split it: name fewer members in the manifest.",))


def _unreadable(name: str, path: Path, why: str | None) -> ArchiveError:
    return ArchiveError(f"{path}: cannot be put into the zip as {name!r}: {why}.")
