"""The bytes of files on disk."""

from __future__ import annotations

import stat
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.errors import NotFound
from evalmeta.formats.registry import ADK_CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


_CHUNK_BYTES: Final = 1_000_000


def read_bytes(path: Path, most: int = limits.MAX_JSON_BYTES) -> bytes:
    """Return the bytes of a file; of a longer one `most` and one more, so that its reader refuses it.

    Raises:
        NotFound: the file does not exist, or cannot be read.
    """
    return b"".join(_chunks(path, most + 1))


def digest_of(path: Path) -> str:
    """Return a hash of a file and of the criteria beside it: its cases change only with them.

    Raises:
        NotFound: the file does not exist, or cannot be read.
    """
    digest = sha256()
    for each in _chunks(path):
        digest.update(each)
    config = path.with_name(ADK_CONFIG)
    if config.is_file():
        digest.update(read_bytes(config))
    return digest.hexdigest()


def _chunks(path: Path, most: int | None = None) -> Iterator[bytes]:
    left = most
    try:
        if stat.S_ISFIFO(path.stat().st_mode):
            raise NotFound(f"{str(path)!r} is a pipe", actions=["Write it to a file first, and name that."])
        with path.open("rb") as file:
            while left is None or left > 0:
                chunk = file.read(_CHUNK_BYTES if left is None else min(_CHUNK_BYTES, left))
                if not chunk:
                    return
                left = None if left is None else left - len(chunk)
                yield chunk
    except FileNotFoundError:
        raise NotFound(f"there is no file {str(path)!r}") from None
    except OSError as error:
        raise NotFound(f"{str(path)!r} cannot be read: {error.strerror}") from None
