"""A zip as a function of its names and contents: nothing else reaches the bytes."""

from __future__ import annotations

import stat
import zlib
from typing import TYPE_CHECKING, Final

from evalmeta.package.zipformat import CENTRAL, CENTRAL_MAGIC, DEFLATED, END, END_MAGIC, LOCAL, LOCAL_MAGIC, UTF8_FLAG

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["zip_chunks"]

# Level 6, the usual one, takes longer and makes definitions no smaller.
_LEVEL: Final = 5
_NEEDED: Final = 20
_MADE_ON_UNIX: Final = (3 << 8) | 20
_TIME: Final = 0
_DATE: Final = (1 << 5) | 1  # 1980-01-01
_ATTRIBUTES: Final = (stat.S_IFREG | 0o644) << 16


def zip_chunks(files: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """Writes a zip piece by piece, in the order of the files, and takes each file when its turn comes.

    Every entry is deflated, dated 1980-01-01 and has the permissions 0644. Names and
    sizes must be within the limits of `archive.build_zip`.
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
