"""Texts as the checks of test specs compare them, without differences that a reader does not see, and their patterns.

Regular expressions cannot hang a run. The engine is the crate `regex` of Rust, which pydantic uses: its time is linear
in the text, and the size of a compiled pattern is limited (docs.rs/regex, "Untrusted input"). It has no look-around and
no backreferences.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from evalmeta import limits

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator


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


class PatternSyntax(ValueError):
    """The text is not a supported regular expression; the message says why."""


class Pattern:
    """A regular expression; raises PatternSyntax if the text is not a supported one."""

    def __init__(self, text: str) -> None:
        if len(text) > limits.MAX_PATTERN_CHARS:
            raise PatternSyntax(f"it has {len(text):,} characters; at most {limits.MAX_PATTERN_CHARS:,} are allowed")
        self._text = text
        self._validator = _validator(text)

    def is_in(self, text: str) -> bool:
        """Return whether a part of the text matches."""
        return self._validator.isinstance_python(text)

    @property
    def accepts_everything(self) -> bool:
        """Return whether no text is known that the pattern does not match; `.*`, `^` and `a|` are examples.

        It is tried with texts of many kinds, and with the pattern's own letters, so that `^[^#]*$` is not one.
        """
        letters = "".join(filter(str.isalnum, self._text))
        return all(map(self.is_in, (*_KINDS_OF_TEXTS, self._text, letters, letters * 2)))


_KINDS_OF_TEXTS: Final = (
    *("", " ", "\n", "a", "Z", "7", "a b", "a\n\nb"),
    "".join(map(chr, range(32, 127))),
    "\u00e9\u00df\u0416\u4e2d\u3042\u05d0\u0639\u0e01\U0001f600\u20ac",
    "x" * 20_000,
)


@lru_cache(maxsize=256)
def _validator(text: str) -> SchemaValidator:
    from pydantic_core import SchemaError, SchemaValidator, core_schema

    try:
        return SchemaValidator(core_schema.str_schema(pattern=text, regex_engine="rust-regex", strict=True))
    except SchemaError as error:
        *_, last = str(error).splitlines()
        raise PatternSyntax(last.strip().removeprefix("error: ").removeprefix("SchemaError: ")) from None
