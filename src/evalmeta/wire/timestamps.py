"""Times as Salesforce writes them: ISO 8601 in UTC with milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

__all__ = ["from_timestamp", "to_timestamp"]

# Year 10000, which no datetime holds; the last moments before it are rounded up to it.
_END: Final = 253_402_300_800.0


def to_timestamp(seconds: float) -> str:
    """Writes seconds since the epoch, such as `2026-11-20T15:08:45.000Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_timestamp(text: str) -> float | None:
    """Reads a time with any number of decimals and any offset, UTC without one; None when it is no time."""
    try:
        moment = datetime.fromisoformat(text)
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return None
    return seconds if seconds < _END else None
