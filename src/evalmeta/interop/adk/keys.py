"""The keys of ADK's files, which come in camelCase (TypeScript) and in snake_case (Python)."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from evalmeta.interop.findings import did_you_mean

if TYPE_CHECKING:
    from evalmeta.interop.jsonrecords import JsonRecord

__all__ = ["Keys", "both", "snake"]

_HUMP: Final = re.compile("[A-Z]")


def snake(name: str) -> str:
    """Gives a name in camelCase as Python spells it: `evalSetId` is `eval_set_id`."""
    return _HUMP.sub(lambda found: f"_{found[0].lower()}", name)


@cache
def both(name: str) -> tuple[str, ...]:
    """Gives both spellings of a name in camelCase; one when they are the same."""
    other = snake(name)
    return (name,) if other == name else (name, other)


@cache
def _spellings(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(spelling for name in names for spelling in both(name))


class Keys:
    """Warns of keys that a kind of object does not have, of each of them once in a file; refuses doubled ones."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def check(self, record: JsonRecord, *names: str) -> None:
        """Warns of every key that is none of `names` in either spelling; what is null counts as left out.

        A key that is there in both spellings is a problem: only one of them would be read.
        """
        known = _spellings(names)
        for name in names:
            if name != (other := snake(name)) and record.has(name) and record.has(other):
                message = f"{record.called} has {name!r} and {other!r}, which are one key"
                record.refuse("adk-key", message, other, hint="Keep one of them.")
        for key, value in record.values.items():
            place = (record.called, key)
            if key in known or value is None or place in self._told:
                continue
            self._told.add(place)
            nearest = did_you_mean(key, [snake(name) for name in names] if "_" in key else names)
            record.note("json-key", f"{record.called} has no key {key!r}; it is passed over", key, hint=nearest)
