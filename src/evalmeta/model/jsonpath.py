"""References: the JSONPath of a custom criterion, as steps.

The dialect is the documented one (Testing API Developer Guide, "Custom Evaluation Criteria", which refers to Jayway
JsonPath), without features that can hang a run, such as regular expressions, or that only one library has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue


REFERENCE_ROOT: Final = "generatedData"
"""The only member of `$` with which a reference may start."""

Operator = Literal["exists", "missing", "==", "!=", "<", "<=", ">", ">=", "in", "nin"]


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
class Descendants:
    """The value itself and every value inside it, parents first: `..`."""


@dataclass(frozen=True, slots=True)
class Length:
    """The number of items, members or characters: `.length()`, `.size()`."""


@dataclass(frozen=True, slots=True)
class Path:
    """Steps from the root (`$`) or from the node under test (`@`)."""

    steps: tuple[Step, ...]
    from_root: bool = True


@dataclass(frozen=True, slots=True)
class Comparison:
    """One test of a filter; `exists` and `missing` have no right operand, that of `in` and `nin` is a tuple."""

    left: Path
    operator: Operator
    right: Path | JsonValue | tuple[JsonValue, ...] = None


@dataclass(frozen=True, slots=True)
class Junction:
    """Tests joined by `&&` (every) or `||` (any)."""

    every: bool
    tests: tuple[Test, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """The nodes that pass a test: `[?(@.function.name == 'X')]`."""

    test: Test


Step: TypeAlias = Names | Positions | Range | Everything | Descendants | Length | Filter
Test: TypeAlias = Comparison | Junction


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed reference and its text."""

    text: str
    steps: tuple[Step, ...]

    @property
    def starts_at_generated_data(self) -> bool:
        """Return whether the first step is `generatedData`, the only member of `$`."""
        return self.steps[:1] == (Names((REFERENCE_ROOT,)),)
