"""Times as Salesforce writes them: ISO 8601 in UTC with milliseconds."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["from_timestamp", "to_timestamp"]


def to_timestamp(seconds: float) -> str:
    """Writes seconds since the epoch, such as `2026-11-20T15:08:45.000Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_timestamp(text: str) -> float | None:
    """Reads a time with any number of decimals and any offset, UTC without one; None when it is no time."""
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return None
