"""The one JSON object in a model's text, whatever else the model writes around it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, TypeVar

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalmeta.model.json_value import JsonValue


_END_OF_THOUGHTS: Final = "</think>"
"""What models that think aloud write before their answer."""
_CANDIDATES: Final = 100
_KEY: Final = re.compile(r'\{\s*"[^"]*"\s*:')

_T = TypeVar("_T")


def read_reply(text: str, check: Callable[[JsonValue], _T | None]) -> _T | None:
    """Finds what `check` makes of the JSON object in a model's text, with or without other words around it.

    None when there is none, when there are several that differ (one of them may be a
    quotation), when it stands behind the start of a broken object (it may be a quotation
    in that), or when the text is longer than `MAX_JUDGEMENT_CHARS`.
    """
    if len(text) > limits.MAX_JUDGEMENT_CHARS:
        return None
    found = [each for value in _objects(_without_thoughts(text)) if (each := check(value)) is not None]
    return found[0] if found and all(each == found[0] for each in found) else None


def _without_thoughts(text: str) -> str:
    """Cuts off what was thought aloud; a text that begins with JSON may quote the mark from the answer."""
    return text if text.lstrip().startswith(("{", "```")) else text.rpartition(_END_OF_THOUGHTS)[2]


def _objects(text: str) -> Iterator[JsonValue]:
    """Gives the JSON objects in a text, none that stands in another, and none after the start of a broken one."""
    decoder, at = json.JSONDecoder(), text.find("{")
    for _ in range(_CANDIDATES):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            if _KEY.match(text, at):
                return
            end = at + 1
        else:
            yield value
        at = text.find("{", end)
