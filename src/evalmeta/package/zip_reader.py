"""A strict reader of zip directories, which refuses everything that two readers could understand differently.

ZIP64 is refused, because archives within `limits` never need it. Numbers in comments are sections of the PKWARE
APPNOTE 6.3.10; all records are little-endian.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from struct import Struct
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import ArchiveError

if TYPE_CHECKING:
    from collections.abc import Sequence


# 4.3.7: magic, version needed, flags, method, time, date, CRC, sizes packed and unpacked, lengths of name and extra.
LOCAL: Final = Struct("<4s5H3L2H")
LOCAL_MAGIC: Final = b"PK\x03\x04"
# 4.3.12: magic, versions made by and needed, then as above from the flags, length of the comment, disk,
# internal and external attributes, offset of the local header.
CENTRAL: Final = Struct("<4s6H3L5H2L")
CENTRAL_MAGIC: Final = b"PK\x01\x02"
# 4.3.16: magic, this disk, the directory's disk, entries here and in all, the directory's size and offset,
# length of the comment.
END: Final = Struct("<4s4H2LH")
END_MAGIC: Final = b"PK\x05\x06"
# 4.4.5 and 4.4.4.
STORED: Final = 0
DEFLATED: Final = 8
UTF8_FLAG: Final = 0x0800
_MAX_COMMENT: Final = 0xFFFF
_ZIP64: Final = 0xFFFFFFFF
_ZIP64_COUNT: Final = 0xFFFF
_SHOWN_CHARS: Final = 200
# APPNOTE 4.4.4 (bit 3) and 4.3.9: CRC and sizes follow the content, with or without a magic, sizes in 4 or 8 bytes.
_STREAMED_FLAG: Final = 0x0008
_DESCRIPTORS: Final = (Struct("<3L"), Struct("<L2Q"))
_DESCRIPTOR_MAGIC: Final = b"PK\x07\x08"
_ACTIONS: Final = ("Build the archive again, or ask its sender for a complete one; nothing of it was used.",)


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """One entry as declared by the central directory; names that end in `/` are folders."""

    name: str
    flags: int
    method: int
    crc: int
    size: int
    mode: int  # the Unix mode, 0 if the archive has none
    offset: int  # the start of the local header
    start: int  # the start of the content, after the local header
    end: int  # the end of the content

    @property
    def is_folder(self) -> bool:
        """Return whether the entry is a folder."""
        return self.name.endswith("/")


def refused(name: str, why: str) -> ArchiveError:
    """Return the error for an archive with an entry that cannot be accepted."""
    shown = name if len(name) <= _SHOWN_CHARS else f"{name[:_SHOWN_CHARS]}..."
    return ArchiveError(f"The zip entry {shown!r} {why}.", actions=_ACTIONS)


def damaged(why: str) -> ArchiveError:
    """Return the error for an archive that cannot be read at all."""
    return ArchiveError(f"The zip is damaged: {why}.", actions=_ACTIONS)


def read_directory(data: bytes) -> tuple[ZipEntry, ...]:
    """Return the entries of a zip in the order of its directory; contents are not read.

    Raise ArchiveError if the directory is damaged, contradicts the local headers or the end record, has unused bytes
    before it, or has more than `limits.MAX_ZIP_ENTRIES` entries.
    """
    count, begin, end = _directory_span(data)
    entries = []
    at = begin
    for _ in range(count):
        entry, at = _read_entry(data, at, begin=begin, end=end)
        entries.append(entry)
    if at != end:
        raise damaged("its directory has more entries than its end record says")
    _check_gaps(data, sorted(entries, key=attrgetter("offset")), begin)
    return tuple(entries)


def content_of(data: bytes, entry: ZipEntry) -> bytes:
    """Return the content of an entry from `read_directory`, never more than its declared size.

    Raise ArchiveError if the content is damaged, or does not have the declared size and CRC.
    """
    packed = memoryview(data)[entry.start : entry.end]
    content = _inflate(packed, entry) if entry.method == DEFLATED else bytes(packed)
    if len(content) != entry.size:
        raise refused(entry.name, f"does not have the declared {entry.size:,} bytes")
    if zlib.crc32(content) != entry.crc:
        raise refused(entry.name, "is damaged: its CRC is wrong")
    return content


def _inflate(packed: memoryview, entry: ZipEntry) -> bytes:
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = stream.decompress(packed, entry.size + 1)
    except zlib.error as error:
        raise refused(entry.name, f"is damaged: {error}") from error
    if len(content) == entry.size and (stream.unused_data or not stream.eof):
        raise refused(entry.name, "is damaged: its content does not end where it should")
    return content


def _directory_span(data: bytes) -> tuple[int, int, int]:
    place = _end_record_place(data)
    _, disk, first_disk, here, count, size, begin, _ = END.unpack_from(data, place)
    if count == _ZIP64_COUNT or _ZIP64 in {size, begin}:
        raise damaged("it needs ZIP64, which is not supported")
    if disk or first_disk or here != count:
        raise damaged("it is one part of several")
    if count > limits.MAX_ZIP_ENTRIES:
        raise ArchiveError(
            f"The zip has {count:,} entries; {limits.MAX_ZIP_ENTRIES:,} are allowed.", actions=("Split the archive.",)
        )
    if begin + size != place:
        raise damaged("its directory is not where its end record says")
    return count, begin, place


def _end_record_place(data: bytes) -> int:
    floor = max(0, len(data) - END.size - _MAX_COMMENT)
    place = data.rfind(END_MAGIC, floor)
    while place >= 0:
        comment = place + END.size
        if comment <= len(data) and comment + int.from_bytes(data[comment - 2 : comment], "little") == len(data):
            return place
        place = data.rfind(END_MAGIC, floor, place + len(END_MAGIC) - 1)
    raise damaged("it has no end record; it is truncated or not a zip file")


def _read_entry(data: bytes, at: int, *, begin: int, end: int) -> tuple[ZipEntry, int]:
    if at + CENTRAL.size > end:
        raise damaged("its directory is truncated")
    fields = CENTRAL.unpack_from(data, at)
    magic, _, _, flags, method, _, _, crc, packed, size, name_size, extra, comment, _, _, attributes, offset = fields
    name_end = at + CENTRAL.size + name_size
    following = name_end + extra + comment
    if magic != CENTRAL_MAGIC or following > end:
        raise damaged("its directory is broken")
    encoded = data[name_end - name_size : name_end]
    name = _decoded(encoded, flags)
    if _ZIP64 in {packed, size, offset}:
        raise refused(name, "needs ZIP64, which is not supported")
    declared = (flags & _STREAMED_FLAG, method, crc, packed, size)
    start = _content_start(data, name, offset, encoded=encoded, declared=declared, end=begin)
    if start + packed > begin:
        raise refused(name, "overlaps the directory")
    return ZipEntry(name, flags, method, crc, size, attributes >> 16, offset, start, start + packed), following


def _decoded(encoded: bytes, flags: int) -> str:
    if not flags & UTF8_FLAG:
        return encoded.decode("cp437")
    try:
        return encoded.decode()
    except UnicodeDecodeError as error:
        raise refused(encoded.decode("cp437"), "has a name that is not UTF-8") from error


def _content_start(data: bytes, name: str, offset: int, *, encoded: bytes, declared: tuple[int, ...], end: int) -> int:
    if offset + LOCAL.size > end:
        raise refused(name, "begins outside the archive's files")
    magic, _, flags, method, _, _, crc, packed, size, name_size, extra = LOCAL.unpack_from(data, offset)
    name_start = offset + LOCAL.size
    if magic != LOCAL_MAGIC:
        raise refused(name, "has no local header")
    streamed = flags & _STREAMED_FLAG
    if not streamed and _ZIP64 in {packed, size}:
        raise refused(name, "needs ZIP64, which is not supported")
    # The header of a streamed entry has no CRC and sizes yet; `_check_gaps` compares those after the content.
    local = (streamed, method, *(declared[2:] if streamed else (crc, packed, size)))
    if data[name_start : name_start + name_size] != encoded or local != declared:
        raise refused(name, "is described in two different ways")
    return int(name_start + name_size + extra)


def _check_gaps(data: bytes, entries: Sequence[ZipEntry], end: int) -> None:
    """Refuse bytes that are not in the directory, because readers that go from entry to entry would read them."""
    if (entries[0].offset if entries else end) != 0:
        raise damaged("it does not begin with an entry of its directory")
    if any(after.offset < before.end for before, after in pairwise(entries)):
        return  # `archive.read_zip` refuses overlapping entries.
    ends = [*(entry.offset for entry in entries[1:]), end]
    for entry, following in zip(entries, ends, strict=False):
        gap = data[entry.end : following]
        if gap not in (_descriptors(entry) if entry.flags & _STREAMED_FLAG else {b""}):
            raise refused(entry.name, "is not followed by the next one")


def _descriptors(entry: ZipEntry) -> set[bytes]:
    packed = entry.end - entry.start
    plain = {descriptor.pack(entry.crc, packed, entry.size) for descriptor in _DESCRIPTORS}
    return plain | {_DESCRIPTOR_MAGIC + data for data in plain}
