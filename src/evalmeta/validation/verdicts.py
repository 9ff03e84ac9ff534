"""Files that were found to be without problems, so that the same bytes need not be checked twice by one process."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.registry import ApiVersion, MetadataType

__all__ = ["is_clean", "remember_clean", "verdict_key"]

_CLEAN: Final[set[bytes]] = set()


def verdict_key(kind: MetadataType, content: bytes, *, full_name: str, api_version: ApiVersion) -> bytes:
    """Gives what a verdict depends on, as a hash: nothing else changes what the rules find in a file."""
    head = f"{kind.name} {full_name} {api_version}\n".encode("utf-8", "surrogatepass")
    return sha256(head + content).digest()


def is_clean(key: bytes) -> bool:
    """Tells whether a file was found to be without problems, whatever the profile."""
    return key in _CLEAN


def remember_clean(keys: Iterable[bytes]) -> None:
    """Remembers files that all rules were applied to, and none found anything in."""
    if len(_CLEAN) > limits.MAX_VERDICTS:
        _CLEAN.clear()
    _CLEAN.update(keys)
