"""Regular expressions that cannot hang a run.

The engine is the crate `regex` of Rust, which pydantic uses: its time is linear in the text, and the size of a compiled
pattern is limited (docs.rs/regex, "Untrusted input"). It has no look-around and no backreferences.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from evalmeta import limits

if TYPE_CHECKING:
    from pydantic_core import SchemaValidator


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
