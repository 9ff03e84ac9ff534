"""Zips for the Metadata API: written reproducibly, and read strictly because their senders are not trusted."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
import zlib
from itertools import islice, pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import ArchiveError
from evalmeta.model.registry import PACKAGE_FILE, Manifest, ManifestTypes, merge_types, names_by_type
from evalmeta.package.components import entries_of
from evalmeta.package.zip_reader import (
    CENTRAL,
    CENTRAL_MAGIC,
    DEFLATED,
    END,
    END_MAGIC,
    LOCAL,
    LOCAL_MAGIC,
    STORED,
    UTF8_FLAG,
    content_of,
    read_directory,
    refused,
)
from evalmeta.xmlio.definitions import write_manifest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from evalmeta.model.registry import ApiVersion, Component, ComponentSet
    from evalmeta.package.zip_reader import ZipEntry


# Files with nearly identical test cases have compression ratios of 120 to 200. Such a ratio is suspicious only for
# files that are larger than any that evalmeta reads.
_RATIO_FREE_BYTES: Final = limits.MAX_XML_BYTES
_ENCRYPTED: Final = 0x0001 | 0x0040 | 0x2000
# The sf CLI warns from this share of a limit, too.
_NEAR: Final = 0.8
_FAULTS: Final = (
    (re.compile(r"\A\Z"), "has no name"),
    (re.compile(r"(?s)\A.{1001}"), "has a name of more than 1,000 characters"),
    (re.compile(r"[\x00-\x1f\x7f-\x9f]"), "has a control character in its name"),
    (re.compile(r"[\ud800-\udfff]"), "has a name that is not valid Unicode"),
    (re.compile(r"\\"), "has a backslash in its name"),
    (re.compile(r"\A/"), "has an absolute name"),
    (re.compile(r"\A.:"), "has a drive in its name"),
    (re.compile(r"(?:\A|/)\.\.?(?:/|\Z)"), "has a `.` or `..` segment in its name"),
    (re.compile(r"//"), "has an empty segment in its name"),
)
_PLAIN: Final = re.compile(r"(?:\w[\w-]*/)*\w[\w-]*(?:\.\w+)?", re.ASCII)
_PLAIN_CHARS: Final = 255
# The default level 6 takes longer and does not make definitions smaller.
_LEVEL: Final = 5
_NEEDED: Final = 20
_MADE_ON_UNIX: Final = (3 << 8) | 20
_TIME: Final = 0
_DATE: Final = (1 << 5) | 1  # 1980-01-01
_ATTRIBUTES: Final = (stat.S_IFREG | 0o644) << 16


def build_zip(entries: Iterable[tuple[str, bytes | Path]]) -> bytes:
    """Return a zip of names and contents; the same input gives the same bytes with the same zlib.

    Names are sorted, dates are 1980-01-01 and permissions 0644. Names, count and sizes are checked before files are
    read; then one file is in memory at a time. An ArchiveError reports an unsafe or repeated name, a file that cannot
    be read, or an archive that exceeds `limits`.
    """
    named = sorted(islice(entries, limits.MAX_ZIP_ENTRIES + 1), key=lambda entry: entry[0])
    if len(named) > limits.MAX_ZIP_ENTRIES:
        raise _beyond(f"more than {limits.MAX_ZIP_ENTRIES:,} entries")
    check_names(name for name, _ in named)
    sizes = [_size(name, content) for name, content in named]
    _check_unzipped(sum(sizes))
    chunks: list[bytes] = []
    zipped = 0
    for chunk in zip_chunks((name, _read(name, path, size)) for (name, path), size in zip(named, sizes, strict=True)):
        zipped += len(chunk)
        _check_zipped(zipped)
        chunks.append(chunk)
    return b"".join(chunks)


def read_zip(data: bytes) -> dict[str, bytes]:
    """Return the files of a zip from an untrusted sender; folder entries are left out.

    Names, kinds and declared sizes are checked before the first content is unpacked, and no content can exceed its
    declared size. An ArchiveError refuses damaged, truncated, split, encrypted and ZIP64 archives, unsafe or repeated
    names, symlinks and devices, overlapping entries, and counts, sizes and ratios beyond `limits`.
    """
    _check_zipped(len(data))
    entries = read_directory(data)
    check_names(entry.name for entry in entries)
    for entry in entries:
        _check_kind(entry)
    _check_unzipped(sum(entry.size for entry in entries))
    _check_ratios(entries, len(data))
    for before, after in pairwise(sorted(entries, key=attrgetter("offset"))):
        if after.offset < before.end:
            raise refused(after.name, f"overlaps {before.name!r}")
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
        raise _unreadable(name, content, "it is not a regular file")
    return status.st_size


def _read(name: str, content: bytes | Path, size: int) -> bytes:
    if isinstance(content, bytes):
        return content
    try:
        # A file object would double the time for small files.
        descriptor = os.open(content, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            data = os.read(descriptor, size + 1)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unreadable(name, content, error.strerror) from error
    if len(data) != size:
        raise _unreadable(name, content, "it changed while it was read")
    return data


def _check_kind(entry: ZipEntry) -> None:
    if entry.flags & _ENCRYPTED:
        raise refused(entry.name, "is encrypted")
    if entry.method not in {STORED, DEFLATED}:
        raise refused(
            entry.name, f"is compressed by method {entry.method}; only stored (0) and deflated (8) are supported"
        )
    kind = stat.S_IFMT(entry.mode)
    if kind == stat.S_IFLNK:
        raise refused(entry.name, "is a symlink")
    if kind not in {0, stat.S_IFDIR if entry.is_folder else stat.S_IFREG}:
        raise refused(entry.name, "is not a regular file")


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


def _check_unzipped(size: int) -> None:
    if size > limits.MAX_UNZIPPED_BYTES:
        raise _beyond(f"{size:,} bytes unzipped; {limits.MAX_UNZIPPED_BYTES:,} are allowed")


def _check_zipped(size: int) -> None:
    if size > limits.MAX_ZIP_BYTES:
        raise _beyond(f"{size:,} bytes zipped; {limits.MAX_ZIP_BYTES:,} are allowed")


def _beyond(figures: str) -> ArchiveError:
    return ArchiveError(f"The zip has {figures}.", actions=("Split it: list fewer members in the manifest.",))


def _unreadable(name: str, path: Path, why: str | None) -> ArchiveError:
    return ArchiveError(f"{path}: cannot be put into the zip as {name!r}: {why}.")


def manifest_of(components: Iterable[Component], api_version: ApiVersion) -> Manifest:
    """Return a manifest of the components, in the canonical form of `merge_types`."""
    blocks = tuple(ManifestTypes(name, tuple(members)) for name, members in names_by_type(components).items())
    return Manifest(merge_types(blocks), str(api_version))


def package_entries(
    components: ComponentSet, destructive: Mapping[str, bytes] | None = None
) -> Iterator[tuple[str, bytes | Path]]:
    """Yield names and contents for `build_zip`: package.xml, destructive changes by file name, and the components."""
    yield PACKAGE_FILE, write_manifest(manifest_of(components.components, components.api_version))
    yield from (destructive or {}).items()
    for component in components.components:
        yield from entries_of(component)


def near_limits(*, zipped: int, entries: int) -> tuple[str, ...]:
    """Return warnings for a zip that has at least 80 percent of the bytes or files that the Metadata API allows."""
    used = ((zipped, limits.MAX_ZIP_BYTES, "bytes zipped"), (entries, limits.MAX_ZIP_ENTRIES, "files"))
    return tuple(
        f"the package has {count:,} {unit}, {count / most:.0%} of the {most:,} that an org accepts"
        for count, most, unit in used
        if count >= _NEAR * most
    )


def check_names(names: Iterable[str]) -> None:
    """Check that names are safe, and differ on systems that ignore case or Unicode normalization.

    Names that end in `/` are folders; only folders may be repeated.
    """
    files: set[str] = set()
    folders: set[str] = set()
    for name in names:
        if len(name) > _PLAIN_CHARS or not _PLAIN.fullmatch(name):
            for pattern, why in _FAULTS:
                if pattern.search(name):
                    raise refused(name, why)
        key = name.removesuffix("/")
        key = key.lower() if key.isascii() else unicodedata.normalize("NFC", key).casefold()
        if key in files or (key in folders and not name.endswith("/")):
            raise refused(name, "occurs twice, at least on systems that ignore case")
        (folders if name.endswith("/") else files).add(key)


def zip_chunks(files: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """Yield the bytes of a zip in chunks, in the order of the files; each file is read when it is needed.

    Every entry is deflated, dated 1980-01-01 and has the permissions 0644. Names and sizes must be within the limits
    of `build_zip`.
    """
    directory: list[bytes] = []
    offset = 0
    for name, content in files:
        encoded = name.encode()
        packed = zlib.compress(content, _LEVEL, -zlib.MAX_WBITS)
        flags = 0 if name.isascii() else UTF8_FLAG
        sizes = (len(packed), len(content), len(encoded), 0)
        shared = (_NEEDED, flags, DEFLATED, _TIME, _DATE, zlib.crc32(content), *sizes)
        record = CENTRAL.pack(CENTRAL_MAGIC, _MADE_ON_UNIX, *shared, 0, 0, 0, _ATTRIBUTES, offset)
        directory.append(record + encoded)
        entry = LOCAL.pack(LOCAL_MAGIC, *shared) + encoded + packed
        offset += len(entry)
        yield entry
    size = sum(map(len, directory))
    yield b"".join(directory)
    yield END.pack(END_MAGIC, 0, 0, len(directory), len(directory), size, offset, 0)
