"""References: the JSONPath of a custom criterion, as steps.

The dialect is the documented one (Testing API Developer Guide, "Custom Evaluation Criteria", which refers to Jayway
JsonPath), without features that can hang the engine or that only one library has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue


REFERENCE_ROOT: Final = "generatedData"
"""The only member of `$` with which a reference may start."""

Operator = Literal["exists", "missing", "==", "!=", "<", "<=", ">", ">="]


class ReferenceSyntax(ValueError):
    """The text is not a supported reference; the message says why."""


@dataclass(frozen=True, slots=True)
class Names:
    """Members of an object: `.a`, `['a']`, `['a','b']`."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Positions:
    """Items of a list, from 0, or from -1 at the end: `[0]`, `[-1]`, `[0,2]`."""

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
    """One test of a filter; `exists` and `missing` have no right operand."""

    left: Path
    operator: Operator
    right: Path | JsonValue = None


@dataclass(frozen=True, slots=True)
class Junction:
    """Tests joined by `&&` (every) or `||` (any)."""

    every: bool
    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """The nodes that pass a test: `[?(@.function.name == 'X')]`."""

    test: Test


Step: TypeAlias = Names | Positions | Range | Everything | Filter
Test: TypeAlias = Comparison | Junction


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed reference and its text."""

    text: str
    steps: tuple[Step, ...]
