"""How an explanation tells of what was judged one by one, so that tables can take it apart again."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["JudgedPart", "read_parts", "write_parts"]

# Of one rationale: there may be many of them.
_MOST_CHARS: Final = limits.MAX_ERROR_CHARS // 4
_LINE: Final = re.compile(r"\d+\. (yes|no), (.*?): (.*)")


class JudgedPart(NamedTuple):
    """One of the things that were judged one by one, such as a passage: yes or no, its name, and why."""

    label: str
    name: str
    rationale: str


def write_parts(parts: Sequence[JudgedPart], *, remark: str = "") -> str:
    """Gives the explanation: how many are a yes, then a line for each part."""
    yes = sum(each.label == "yes" for each in parts)
    lines = (f"{number}. {_line(part)}" for number, part in enumerate(parts, 1))
    return "\n".join((f"{yes} of {len(parts)}{remark}", *lines))


def read_parts(explanation: str) -> tuple[JudgedPart, ...]:
    """Reads what `write_parts` wrote, blanks made one and long rationales cut; none of any other text."""
    found = map(_LINE.fullmatch, explanation.split("\n")[1:])
    return tuple(JudgedPart(*match.groups()) for match in found if match)


def _line(part: JudgedPart) -> str:
    name, rationale = (" ".join(text.split()) for text in (part.name, part.rationale))
    cut = rationale if len(rationale) <= _MOST_CHARS else f"{rationale[: _MOST_CHARS - 1]}…"
    # A colon and a blank end the name.
    return f"{part.label}, {name.replace(': ', ':')}: {cut}"
