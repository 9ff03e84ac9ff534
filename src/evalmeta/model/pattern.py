"""Regular expressions that cannot hang a run.

The engine is the crate `regex` of Rust, which pydantic uses: its time is linear in the text, and the size of a compiled
pattern is limited (docs.rs/regex, "Untrusted input"). It has no look-around and no backreferences.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

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
        self._validator = _validator(text)

    def is_in(self, text: str) -> bool:
        """Return whether a part of the text matches."""
        return self._validator.isinstance_python(text)


@lru_cache(maxsize=256)
def _validator(text: str) -> SchemaValidator:
    from pydantic_core import SchemaError, SchemaValidator, core_schema  # noqa: PLC0415 - few tests have patterns

    try:
        return SchemaValidator(core_schema.str_schema(pattern=text, regex_engine="rust-regex", strict=True))
    except SchemaError as error:
        *_, last = str(error).splitlines()
        raise PatternSyntax(last.strip().removeprefix("error: ").removeprefix("SchemaError: ")) from None
