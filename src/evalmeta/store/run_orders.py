"""The orders of lists of runs as SQL, and the places in them at which the next page begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from evalmeta.store.sql import Value


_COUNT: Final = "SELECT count(*) FROM case_result WHERE run_id = listed_run.id"


def _number(place: int, verdict: str) -> str:
    """Return the SQL of a count: from the tally if there is one, else of the results so far."""
    return f"coalesce(CAST(json_extract(tally, '$[{place}]') AS INTEGER), ({_COUNT} AND verdict = '{verdict}'))"


# The numbers are the places of counts in `KeptTally.columns`.
_PARTLY: Final = "coalesce(CAST(json_extract(tally, '$[1]') AS INTEGER), 0)"
_FAILED: Final = _number(2, "FAILURE")
_HELD: Final = f"({_number(0, 'PASS')} + {_PARTLY})"
_TEXTS: Final = {"test": "lower(definition)", "agent": "lower(subject)", "branch": "lower(branch)"}
# A number that is not known is NULL.
_NUMBERS: Final = {
    "result": "CASE verdict WHEN 'FAILURE' THEN 0 WHEN 'ERROR' THEN 1 WHEN 'UNDECIDED' THEN 2 WHEN 'PASS' THEN 3 END",
    "pass-rate": f"1.0 * {_HELD} / nullif({_HELD} + {_FAILED}, 0)",
    "partly": _PARTLY,
    "failed": _FAILED,
    "errors": _number(3, "ERROR"),
    "undecided": _number(4, "UNDECIDED"),
    "started": "started",
    "took": "ended - started",
}
ORDERS: Final = frozenset({*_TEXTS, *_NUMBERS})
"""By what lists of runs can be sorted."""
# Beyond all numbers: what is not known comes last.
_LAST: Final = 9e18
_SEPARATOR: Final = "~"
_SELECT: Final = "SELECT {columns} FROM listed_run WHERE"


class RunOrder(NamedTuple):
    """How a list is sorted: by one of `ORDERS`, empty for the newest first; runs with the same value by their age."""

    by: str = ""
    is_descending: bool = False

    @property
    def value(self) -> str:
        """Return the SQL of the value by which runs are sorted; it is never NULL."""
        if self.by in _TEXTS:
            return _TEXTS[self.by]
        last = -_LAST if self.is_descending else _LAST
        return f"CAST(coalesce({_NUMBERS[self.by]}, {last}) AS DOUBLE PRECISION)"

    @property
    def select(self) -> str:
        """Return the SQL before the conditions; the value by which runs are sorted is the last column."""
        columns = f"*, {self.value}" if self.by else "*"
        return _SELECT.format(columns=columns)

    @property
    def sql(self) -> str:
        """Return the SQL behind `ORDER BY`."""
        if not self.by:
            return "started DESC, id DESC"
        return f"{self.value} {'DESC' if self.is_descending else 'ASC'}, started DESC, id DESC"


NEWEST: Final = RunOrder()


class RunPlace(NamedTuple):
    """The place of a run in a list; `value` is that by which the list is sorted, None if it is sorted by age."""

    started: float
    id: str
    value: str | float | None = None

    @classmethod
    def read(cls, text: str, order: RunOrder) -> RunPlace | None:
        """Return the place in an order that `text` wrote; None if it is not one."""
        started, _, rest = text.partition(_SEPARATOR)
        run_id, _, value = rest.partition(_SEPARATOR)
        try:
            number = None if not order.by or order.by in _TEXTS else float(value)
            return cls(float(started), run_id, value if order.by in _TEXTS else number) if run_id else None
        except ValueError:
            return None

    @property
    def text(self) -> str:
        """Return the place as the parameter of an address."""
        values = (self.started, self.id) if self.value is None else (self.started, self.id, self.value)
        return _SEPARATOR.join(map(str, values))

    def behind(self, order: RunOrder) -> tuple[str, tuple[Value, ...]]:
        """Return the condition for runs behind this place, and its values."""
        if not order.by:
            return "(started, id) < (?, ?)", (self.started, self.id)
        sign = "<" if order.is_descending else ">"
        condition = f"({order.value} {sign} ? OR ({order.value} = ? AND (started, id) < (?, ?)))"
        return condition, (self.value, self.value, self.started, self.id)
