"""References: the JSONPath that a custom criterion may use, as a value.

The dialect is the documented one (Testing API Developer Guide, "Custom Evaluation
Criteria", which points to Jayway JsonPath) without what can hang an engine or is
known to one library only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from evalmeta import limits

if TYPE_CHECKING:
    from evalmeta.model.jsonvalue import JsonValue

__all__ = [
    "REFERENCE_ROOT",
    "Comparison",
    "Everything",
    "Filter",
    "Junction",
    "Names",
    "Operator",
    "Path",
    "Positions",
    "Range",
    "Reference",
    "ReferenceSyntax",
    "Step",
    "Test",
    "check_reference",
    "parse_reference",
    "starts_at_generated_data",
]

REFERENCE_ROOT: Final = "generatedData"
"""The one member of `$` that a reference may start with."""

Operator = Literal["exists", "missing", "==", "!=", "<", "<=", ">", ">="]


class ReferenceSyntax(ValueError):
    """The text is no reference that evalmeta follows; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Names:
    """Members of an object: `.a`, `['a']`, `['a','b']`."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Positions:
    """Items of a list, counted from 0, or from -1 at the end: `[0]`, `[-1]`, `[0,2]`."""

    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """A slice of a list: `[start:end:step]`."""

    start: int | None
    end: int | None
    step: int | None


@dataclass(frozen=True, slots=True)
class Everything:
    """All items of a list or all values of an object: `[*]`, `.*`."""


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from the root (`$`) or from the node under test (`@`)."""

    steps: tuple[Step, ...]
    from_root: bool = True


@dataclass(frozen=True, slots=True)
class Comparison:
    """One test of a filter; `exists` and `missing` have no right side."""

    left: Path
    operator: Operator
    right: Path | JsonValue = None


@dataclass(frozen=True, slots=True)
class Junction:
    """Tests joined by `&&` (every one) or `||` (any one)."""

    every: bool
    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """The nodes that pass a test: `[?(@.function.name == 'X')]`."""

    test: Test


Test: TypeAlias = Comparison | Junction
Step: TypeAlias = Names | Positions | Range | Everything | Filter


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference ready to be followed, and the text it was written as."""

    text: str
    steps: tuple[Step, ...]


_QUOTED: Final = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_TOKENS: Final = re.compile(rf"({_QUOTED})|\s+", re.DOTALL)
_STRINGS: Final = re.compile(_QUOTED, re.DOTALL)
_MAX_PARENTHESES: Final = 20
_FORBIDDEN: Final = (
    (re.compile(r"\.\."), "descends without bound (`..`); name every step"),
    (re.compile(r"=~"), "uses a regular expression (`=~`); compare with `==`"),
    (re.compile(r"`"), "uses a function in backquotes"),
    (re.compile(r"\b(?:where|wherenot)\b(?=\s)"), "uses `where`; use a filter `[?(...)]`"),
    (re.compile(r"(?<!&)&(?!&)"), "uses a single `&`; write `&&`"),
    (re.compile(r"(?<!\|)\|(?!\|)"), "uses a single `|`; write `||`"),
    (re.compile(r"(?<![=!<>])=(?!=)"), "uses a single `=`; write `==`"),
    (
        re.compile(r"[=<>]\s*(?!(?:true|false|null)\b)[A-Za-z_]"),
        "compares with a word without quotes; write it in single quotes",
    ),
)


def parse_reference(text: str) -> Reference:
    """Reads a reference; blanks and line breaks between its parts do not matter.

    Raises:
        ReferenceSyntax: it is no JSONPath, too long, or uses what is not allowed
            (`..`, `=~`, functions, arithmetic, sorting, filters inside filters).
    """
    complaint = _complaint_before_parsing(text)
    if complaint:
        raise ReferenceSyntax(complaint)
    # The parser's library is loaded only when there is a reference to read.
    from evalmeta.model.reference_parser import parse_steps  # noqa: PLC0415

    return Reference(text, parse_steps(_normalised(text)))


def starts_at_generated_data(reference: Reference) -> bool:
    """Tells whether a reference's first step is `generatedData`, the one member of `$`."""
    return reference.steps[:1] == (Names((REFERENCE_ROOT,)),)


def check_reference(text: str) -> str | None:
    """Gives what is wrong with a reference in one sentence, or None when it can be followed."""
    try:
        parse_reference(text)
    except ReferenceSyntax as error:
        return str(error)
    return None


def _complaint_before_parsing(text: str) -> str | None:
    if len(text) > limits.MAX_REFERENCE_CHARS:
        return f"the reference is {len(text)} characters long; at most {limits.MAX_REFERENCE_CHARS} are followed"
    if not text.lstrip().startswith("$"):
        return "the reference does not start with `$`"
    bare = _STRINGS.sub("''", text)
    if bare.count("(") > _MAX_PARENTHESES:
        return f"the reference has more than {_MAX_PARENTHESES} parentheses"
    return next((f"the reference {what}" for pattern, what in _FORBIDDEN if pattern.search(bare)), None)


def _normalised(text: str) -> str:
    return _TOKENS.sub(lambda token: token[1] or " ", text.strip())
