"""Texts as the checks of test specs compare them: without differences that a reader does not see."""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Literal

# Normalising a long run of combining marks takes quadratic time, so texts are normalised in pieces. A piece ends before
# a base character if there is one; the excluded characters would combine with the one before them.
_PIECE: Final = re.compile(r"(?s:.{1,1000}(?=[^\W\u1160-\u11ff\uff9e\uff9f\uffa0-\uffdc]|\s|\Z)|.{1,1000})")
_SIGNS: Final = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    }
)
_BLANKS: Final = re.compile(r"\s+")
# Letters and a symbol of Unicode that are drawn as nothing: Hangul fillers and the empty pattern of Braille.
_FILLERS: Final = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def normalised(text: str, form: Literal["NFC", "NFKC"]) -> str:
    """Return a text in a normal form of Unicode."""
    return "".join([unicodedata.normalize(form, piece) for piece in _PIECE.findall(text)])


def plain_text(text: str) -> str:
    """Return a text in NFC with straight quotes, hyphens for dashes, and one space for any white space."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text
    return _BLANKS.sub(" ", normalised(text, "NFC").translate(_SIGNS))


def has_variants(text: str) -> bool:
    """Return whether other texts can have the same `plain_text`, as all with blanks, quotes or hyphens do."""
    return not text.isascii() or any(sign in "'\"-" or sign.isspace() for sign in text)


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: white space, signs of no width, controls, and marks without a letter."""
    return not any(unicodedata.category(sign)[0] not in "CMZ" and sign not in _FILLERS for sign in text)
