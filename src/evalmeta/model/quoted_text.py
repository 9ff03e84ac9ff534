"""Quoted text with backslash escapes, as JSON, Python and JSONPath write it."""

from __future__ import annotations

import re
from typing import Final

_ESCAPE: Final = re.compile(
    r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4})|(.))", re.DOTALL
)
_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_CONTROLS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def unquote(source: str) -> str:
    """Return the text inside single or double quotes, with its escapes decoded.

    The escapes are those of JSON (RFC 8259, section 7), and `\\xHH` and `\\UHHHHHHHH` of Python; a backslash before any
    other character is removed.
    """
    text = source[1:-1]
    if "\\" not in text:
        return text
    return _PAIR.sub(_joined, _ESCAPE.sub(_decoded, text))


def _decoded(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2] or escape[3]
    return chr(int(code, 16)) if code else _CONTROLS.get(escape[4], escape[4])


def _joined(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")
