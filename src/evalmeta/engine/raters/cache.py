"""Where a rater keeps what a model said, so that the same question costs only once."""

from __future__ import annotations

from typing import Protocol

__all__ = ["RatingCache"]


class RatingCache(Protocol):
    """Keeps texts by key; the key stands for everything that a text depends on."""

    def find(self, key: str) -> str | None:
        """Gives the text that is kept under a key; None when there is none."""
        ...

    def keep(self, key: str, body: str) -> None:
        """Keeps a text under a key, in place of what was there."""
        ...
