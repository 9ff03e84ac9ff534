"""Lists of test cases as people write them: `3`, `1,4-7`, `Order_Desk:3` for one definition's, and labels."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from evalmeta import limits
from evalmeta.model.registry import metadata_type

__all__ = ["CaseList", "parse_case_list", "parse_shard"]

_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_LIST: Final = re.compile(r"[\d,\s-]+", re.ASCII)
_SHARD: Final = re.compile(r"(\d{1,4})/(\d{1,4})", re.ASCII)


class CaseList(NamedTuple):
    """Which cases are meant.

    Attributes:
        name: of the definition, `Type:Name` where two have it; empty for every definition.
        numbers: None for all of them.
        label: what the case, or `FILE:` and the case, is called; then the numbers are not known yet.
    """

    name: str
    numbers: frozenset[int] | None
    label: str = ""


def parse_case_list(text: str, *, is_named: bool = False, takes_labels: bool = False) -> CaseList:
    """Reads a list.

    Args:
        text: the list.
        is_named: whether a definition's name alone means all its cases.
        takes_labels: whether what is no list of numbers is the label of a case.

    Raises:
        ValueError: it is none; says what one looks like.
    """
    name, colon, numbers = text.strip().rpartition(":")
    if takes_labels and text.strip() and not _LIST.fullmatch(numbers):
        return CaseList("", None, text.strip())
    if is_named and not _RANGE.match(numbers) and (not colon or metadata_type(name)):
        return CaseList(text.strip(), None)
    if (colon and not name) or not numbers:
        raise ValueError(_wrong(text))
    return CaseList(name, frozenset(number for part in numbers.split(",") for number in _numbers(part, text)))


def parse_shard(text: str) -> tuple[int, int]:
    """Reads `2/5`, the second of five parts.

    Raises:
        ValueError: it is none, or there is no such part.
    """
    found = _SHARD.fullmatch(text.strip())
    part, parts = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= part <= parts <= limits.MAX_SHARDS:
        raise ValueError(f"{text!r} is no part such as 2/5, the second of five (at most {limits.MAX_SHARDS})")
    return part, parts


def _numbers(part: str, text: str) -> range:
    found = _RANGE.fullmatch(part.strip())
    if not found:
        raise ValueError(_wrong(text))
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first or last - first > limits.MAX_TEST_CASES:
        raise ValueError(_wrong(text))
    return range(first, last + 1)


def _wrong(text: str) -> str:
    return f"{text!r} is no list of cases such as 3, 1,4-7 or Order_Desk:3"
