"""Action lists as definitions and results spell them: `['A', 'B']`."""

from __future__ import annotations

import html
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["is_action_list", "parse_actions", "render_actions"]

# What was matched is never given back: a list may have megabytes.
_ITEM: Final = r"""'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+\""""
_ITEMS: Final = re.compile(_ITEM, re.DOTALL)
_LIST: Final = re.compile(rf"\[\s*+(?:(?:{_ITEM})(?:\s*+,\s*+(?:{_ITEM}))*+\s*+(?:,\s*+)?)?\]", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


@lru_cache(maxsize=1_024)
def parse_actions(text: str) -> tuple[str, ...] | None:
    """Reads an action list; None when the text is none.

    Takes every spelling seen in files and results: single or double quotes, blanks
    and line breaks anywhere between the items, HTML-escaped quotes.
    """
    spelt = _spelt(text)
    if spelt is None:
        return None
    return tuple(_ESCAPED.sub(r"\1", item[0][1:-1]).strip() for item in _ITEMS.finditer(spelt))


def is_action_list(text: str) -> bool:
    """Tells whether `parse_actions` reads a text, and keeps nothing of it: files may hold lists of megabytes."""
    return _spelt(text) is not None


def render_actions(names: Iterable[str]) -> str:
    """Writes an action list the way the metadata reference does: `['A', 'B']`, `[]` for none."""
    return "[" + ", ".join(_quote(name) for name in names) + "]"


def _spelt(text: str) -> str | None:
    for spelling in (text, html.unescape(text)):
        stripped = spelling.strip()
        if _LIST.fullmatch(stripped):
            return stripped
    return None


def _quote(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
