"""Record ids as Salesforce makes them: 15 characters that count up, and 3 that check their case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from evalmeta.store.database import Database

__all__ = ["checked_id", "next_ids", "whole_id"]

_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
_SHORT_CHARS: Final = 15
_CHUNK: Final = 5


def next_ids(database: Database, prefix: str, count: int = 1) -> list[str]:
    """Takes the next ids of a kind; call it inside the transaction that uses them."""
    sql = "INSERT INTO counter VALUES (?, ?) ON CONFLICT (prefix) DO UPDATE SET last = last + ? RETURNING last"
    [(last,)] = database.query(sql, (prefix, count, count))
    return [checked_id(f"{prefix}{number:012d}") for number in range(last - count + 1, last + 1)]


def whole_id(record_id: str) -> str:
    """Gives an id of 15 characters with all 18, as orgs take both; any other text stays as it is."""
    return checked_id(record_id) if len(record_id) == _SHORT_CHARS else record_id


def checked_id(id15: str) -> str:
    """Adds the three characters that tell which of the fifteen are capitals, for readers that ignore case."""
    chunks = (id15[start : start + _CHUNK] for start in range(0, len(id15), _CHUNK))
    return id15 + "".join(
        _ALPHABET[sum(1 << place for place, char in enumerate(chunk) if char.isupper())] for chunk in chunks
    )
