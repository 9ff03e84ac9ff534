"""Zips made byte by byte, so that every field can lie."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, field

__all__ = ["Entry", "deflated", "zip_of"]


def deflated(content: bytes) -> bytes:
    """Gives a raw deflate stream."""
    stream = zlib.compressobj(9, zlib.DEFLATED, -15)
    return stream.compress(content) + stream.flush()


@dataclass
class Entry:
    """One entry; a field that is None tells the truth."""

    name: bytes
    content: bytes = b"x"
    method: int = 0
    flags: int = 0x0800
    mode: int = 0o100644
    packed: bytes | None = None
    size: int | None = None
    packed_size: int | None = None
    crc: int | None = None
    local_name: bytes | None = None
    local_method: int | None = None
    local_sums: tuple[int, int, int] | None = None
    behind: bytes = b""
    local_magic: bytes = b"PK\x03\x04"
    offset: int | None = None
    central: bytes = field(default=b"", init=False)

    def local(self, offset: int) -> bytes:
        """Gives header and content for this offset, and keeps the directory's record."""
        packed = self.packed if self.packed is not None else deflated(self.content) if self.method else self.content
        packed_size = len(packed) if self.packed_size is None else self.packed_size
        size = len(self.content) if self.size is None else self.size
        crc = zlib.crc32(self.content) if self.crc is None else self.crc
        name = self.name if self.local_name is None else self.local_name
        method = self.method if self.local_method is None else self.local_method
        self.central = (
            struct.pack("<4s6H3L", b"PK\x01\x02", 0x0314, 20, self.flags, self.method, 0, 33, crc, packed_size, size)
            + struct.pack("<5H", len(self.name), 0, 0, 0, 0)
            + struct.pack("<2L", self.mode << 16, offset if self.offset is None else self.offset)
            + self.name
        )
        times = struct.pack("<2H", 0, 33)
        head = struct.pack("<4s3H", self.local_magic, 20, self.flags, method) + times
        sums = self.local_sums or (crc, packed_size, size)
        return head + struct.pack("<3L2H", *sums, len(name), 0) + name + packed + self.behind


def zip_of(
    *entries: Entry,
    count: int | None = None,
    here: int | None = None,
    disk: int = 0,
    shift: int = 0,
    comment: bytes = b"",
    padding: bytes = b"",
) -> bytes:
    """Gives the archive; `shift` and `padding` displace its directory."""
    files = b""
    for entry in entries:
        files += entry.local(len(files))
    directory = b"".join(entry.central for entry in entries) + padding
    total = len(entries) if count is None else count
    counts = (disk, disk, total if here is None else here, total)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", *counts, len(directory), len(files) + shift, len(comment))
    return files + directory + end + comment
