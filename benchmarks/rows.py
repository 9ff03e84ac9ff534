"""The rows that `make bench` prints: what is measured, with what it is compared, and the goal."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from timing import Pair

Clock = Literal["wall", "CPU", "-"]
Sizes = Mapping[str, int | float | str | bool]

WITHOUT_GOAL, HOLDS, MISSED, FAILED = "-", "holds", "**missed**", "**failed**"


class Result(NamedTuple):
    """What one row measured: the two amounts, and the number that is held against the goal."""

    ours: str
    other: str
    value: float
    note: str = ""


class Goal(NamedTuple):
    """A limit for the value of a row; `unit` is what follows the number."""

    word: Literal["at most", "at least", "exactly"]
    limit: float
    unit: str = "x"

    def holds(self, value: float) -> bool:
        """Return whether a value meets the goal as it is printed, with two decimals."""
        shown = round(value, 2)
        return {"at most": shown <= self.limit, "at least": shown >= self.limit, "exactly": shown == self.limit}[
            self.word
        ]

    def __str__(self) -> str:
        return f"{self.word} {self.limit:g}{self.unit}"


class Row(NamedTuple):
    """One line of the table.

    `what` and `against` may name the row's sizes in braces. `tiny` sizes only show that the row still works.
    """

    name: str
    what: str
    against: str
    measure: Callable[..., Result]
    sizes: Sizes = MappingProxyType({})
    tiny: Sizes = MappingProxyType({})
    goal: Goal | None = None
    unit: str = "x"
    clock: Clock = "wall"
    is_possible: Callable[[], bool] = lambda: True

    def run(self, *, tiny: bool = False) -> str:
        """Measure, and return the line of the table."""
        sizes = {**self.sizes, **(self.tiny if tiny else {})}
        what, against = self.what.format(**sizes), self.against.format(**sizes)
        if not self.is_possible():
            return _line(f"`{self.name}`", what, against, *(WITHOUT_GOAL,) * 5, "not measured: not installed")
        result = self.measure(**sizes)
        if result.note:
            what = f"{what} ({result.note})"
        judged = self._judged(result.value)
        return _line(f"`{self.name}`", what, against, self.clock, result.ours, result.other, *judged)

    def _judged(self, value: float) -> tuple[str, str, str]:
        verdict = WITHOUT_GOAL if self.goal is None else HOLDS if self.goal.holds(value) else MISSED
        return f"{value:.2f}{self.unit}", str(self.goal or WITHOUT_GOAL), verdict


class Section(NamedTuple):
    """The rows of one table; `key` selects all of them. One that `is_apart` is measured only if it is named."""

    key: str
    title: str
    rows: tuple[Row, ...]
    is_apart: bool = False

    def select(self, words: list[str]) -> list[Row]:
        """Return the rows whose names contain one of the words, or all if the key is one of them."""
        if not words and self.is_apart:
            return []
        return [row for row in self.rows if not words or self.key in words or any(word in row.name for word in words)]


def seconds(pair: Pair) -> Result:
    """Return two times on the wall clock and their ratio, with the ratio of processor times as a note."""
    note = f"CPU time {pair.ratio.cpu:.1f}x"
    return Result(f"{pair.ours.wall:.3f} s", f"{pair.other.wall:.3f} s", pair.ratio.wall, note)


def heading() -> str:
    """Return the first two lines of a table."""
    names = ("row", "what", "compared with", "clock", "evalmeta", "other", "result", "goal", "verdict")
    return f"{_line(*names)}\n{_line(*('---',) * len(names))}"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
