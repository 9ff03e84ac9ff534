"""The content of a bundle, which has several files, as one value that can be stored, hashed and compared.

It is a line of JSON with names and sizes of the files, in the order of the names, followed by the bytes of all files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping


def join_files(files: Mapping[str, bytes]) -> bytes:
    """Return the content of a bundle by its files; names are relative to its folder, with forward slashes."""
    ordered = sorted(files.items())
    names = orjson.dumps([(name, len(content)) for name, content in ordered])
    return b"".join((names, b"\n", *(content for _, content in ordered)))


def split_files(content: bytes) -> dict[str, bytes]:
    """Return the files of a bundle by its content from `join_files`."""
    names, _, rest = content.partition(b"\n")
    files: dict[str, bytes] = {}
    start = 0
    for name, size in orjson.loads(names):
        files[name] = rest[start : start + size]
        start += size
    return files
