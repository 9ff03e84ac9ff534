"""Tables of pages: their columns, which of them are shown, how the rows are sorted and grouped, and the rows as CSV."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from evalmeta.protocol.json_fields import to_timestamp
from evalmeta.report.csv import lines, safe_cell
from evalmeta.viewer.pages import Query, Source, text_of

Row = TypeVar("Row")
Outer = TypeVar("Outer")
Plain: TypeAlias = str | float | None
"""What a cell says without its look: a text, a number, or None if it is not known."""

_UNSAFE: Final = re.compile(r"\W+")
_SEPARATOR: Final = "."
_DESCENDING: Final = "-"
# Cells whose value is all that they say.
_PLAIN_CELLS: Final = frozenset({"text", "path", "long_text", "number", "time", "milliseconds"})
_UNITS: Final = {"milliseconds": " (ms)"}
LAYOUT: Final = ("sort", "group", "columns")
"""The parameters of an address that say how a table is shown."""


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column of a table; tables on pages, their headings and the labels of narrow screens follow from their columns.

    Attributes:
        title: the heading.
        cell: the macro in `templates/cells.html.j2` that writes a cell.
        value: what the macro gets of a row.
        look: the classes of its cells: `number`, `wide`, `bars`, `dim`.
        plain: what CSV files have of a row; None if that is the value, or if the cell has nothing but a picture.
        rank: by what rows are sorted; None for the plain value.
        is_extra: whether pages show it only if it is chosen; CSV files have it.
    """

    title: str
    cell: str
    value: Callable[[Row], object]
    look: str = ""
    plain: Callable[[Row], Plain] | None = None
    rank: Callable[[Row], Plain] | None = None
    is_extra: bool = False

    @property
    def name(self) -> str:
        """Return its name in addresses."""
        return _UNSAFE.sub("-", self.title.casefold())

    @property
    def is_plain(self) -> bool:
        """Return whether its cells say something without their look."""
        return self.plain is not None or self.cell in _PLAIN_CELLS

    def plain_of(self, row: Row) -> Plain:
        """Return what a cell says."""
        value = (self.plain or self.value)(row)
        return value if isinstance(value, str | int | float) else None

    def rank_of(self, row: Row) -> Plain:
        """Return by what a row is sorted."""
        return self.rank(row) if self.rank else self.plain_of(row)

    def of(self, inner: Callable[[Outer], Row]) -> Column[Outer]:
        """Return the column for rows that contain the rows of this one."""
        plain, rank = self.plain, self.rank
        return Column(
            self.title,
            self.cell,
            lambda outer: self.value(inner(outer)),
            self.look,
            None if plain is None else lambda outer: plain(inner(outer)),
            None if rank is None else lambda outer: rank(inner(outer)),
            self.is_extra,
        )


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table is shown, as the address of its page says.

    Attributes:
        page: the page with the table.
        given: the other parameters of its address: the filters, and what the page is about.
        sort: the name of the column by which the rows are sorted; empty for the order of the page.
        is_descending: whether the largest values come first.
        columns: the names of the columns that are shown; empty for those that are not extra.
        group: by what the rows are grouped; empty if they are not.
        sortable: the names of the columns by which rows can be sorted.
        groups: by what rows can be grouped, with titles.
        sheet: the page that has all rows as CSV; empty if there is none.
        prefix: what the names of the parameters begin with, if the page has another table too.
        orders: the orders that are not those of a column, by their words in addresses, with titles.
    """

    page: str
    given: Mapping[str, object]
    sort: str
    is_descending: bool
    columns: tuple[str, ...]
    group: str
    sortable: Collection[str]
    groups: Mapping[str, str]
    sheet: str
    prefix: str = ""
    orders: Mapping[str, str] = field(default_factory=dict)

    @property
    def chosen(self) -> dict[str, str]:
        """Return the parameters that say this, without those of the page."""
        return self._parameters(self.sort, is_descending=self.is_descending)

    def address(self, **changes: object) -> dict[str, object]:
        """Return all parameters of the page, with some changed ones."""
        return {**self.given, **self.chosen, **changes}

    def sorted_by(self, column: Column[Row]) -> dict[str, object]:
        """Return all parameters of the page sorted by a column, in the other direction if it already is."""
        is_descending = not self.is_descending if self.sort == column.name else "number" in column.look
        return {**self.given, **self._parameters(column.name, is_descending=is_descending)}

    def direction_of(self, column: Column[Row]) -> str:
        """Return how the table is sorted by a column, as browsers say it; empty if it is not."""
        if self.sort != column.name:
            return ""
        return "descending" if self.is_descending else "ascending"

    def _parameters(self, sort: str, *, is_descending: bool) -> dict[str, str]:
        sign = _DESCENDING if is_descending else ""
        named = {"sort": f"{sign}{sort}", "group": self.group, "columns": _SEPARATOR.join(self.columns)}
        return {f"{self.prefix}{name}": value for name, value in named.items() if value}


@dataclass(frozen=True, slots=True)
class Table(Generic[Row]):
    """Rows as a table.

    Attributes:
        columns: all columns that it can have.
        rows: the rows of one page.
        id_of: returns the id of a row, by which live pages find it again.
        is_here: returns whether a row is what the page is about.
        has_keys: whether the keys `j` and `k` go through the rows.
        layout: how it is shown; None if nobody can choose that.
        after: where the next page begins; empty after the last one.
        is_whole: whether the search looked at all rows; False if it stopped at its limit.
        group_of: returns the heading above a row; rows with the same one are next to each other.
    """

    columns: Sequence[Column[Row]]
    rows: Sequence[Row]
    id_of: Callable[[Row], str] = lambda _: ""
    is_here: Callable[[Row], bool] = lambda _: False
    has_keys: bool = True
    layout: Layout | None = None
    after: str = ""
    is_whole: bool = True
    group_of: Callable[[Row], str] = lambda _: ""

    @property
    def shown(self) -> Sequence[Column[Row]]:
        """Return the columns that are shown."""
        names = self.layout.columns if self.layout else ()
        return [column for column in self.columns if (column.name in names if names else not column.is_extra)]

    @property
    def written(self) -> Sequence[Column[Row]]:
        """Return the columns of CSV files: without a choice all, but none that is only a picture."""
        shown = self.shown if self.layout and self.layout.columns else self.columns
        return [column for column in shown if column.is_plain]

    def csv(self, *, has_heading: bool) -> str:
        """Return the rows as CSV."""
        heading = [f"{column.title}{_UNITS.get(column.cell, '')}" for column in self.written]
        rows = [[_cell(column, column.plain_of(row)) for column in self.written] for row in self.rows]
        return lines([heading, *rows] if has_heading else rows)

    def grouped(self) -> Iterator[tuple[str, Sequence[Row]]]:
        """Yield the headings with their rows; one without a text if the rows are not grouped."""
        start = 0
        headings = [*map(self.group_of, self.rows)]
        for at in range(1, len(headings) + 1):
            if at == len(headings) or headings[at] != headings[start]:
                yield headings[start], self.rows[start:at]
                start = at


class Sheet(Protocol):
    """A part of a table as CSV files have it."""

    @property
    def after(self) -> str:
        """Return where the next part begins; empty after the last one."""

    def csv(self, *, has_heading: bool) -> str:
        """Return the rows as CSV."""


MakeSheet: TypeAlias = Callable[[Source, Query, int], Sheet]
"""Returns the part of a table that begins at the parameter `after`, with at most so many rows."""


def layout_of(
    query: Query,
    page: str,
    given: Mapping[str, object],
    columns: Sequence[Column[Row]],
    *,
    sheet: str = "",
    sortable: Collection[str] | None = None,
    groups: Mapping[str, str] | None = None,
) -> Layout:
    """Return how an address shows a table; what the table does not have is ignored.

    Without `sortable`, the rows can be sorted by all columns that say something.
    """
    names = [column.name for column in columns]
    can_sort = [column.name for column in columns if column.is_plain] if sortable is None else sortable
    word, group, listed = (text_of(query, name) for name in LAYOUT)
    sort = word.removeprefix(_DESCENDING)
    is_sorted = sort in can_sort and sort in names
    chosen = tuple(name for name in names if name in listed.split(_SEPARATOR))
    return Layout(
        page,
        given,
        sort if is_sorted else "",
        is_sorted and word.startswith(_DESCENDING),
        () if chosen == tuple(column.name for column in columns if not column.is_extra) else chosen,
        group if group in (groups or {}) else "",
        can_sort,
        groups or {},
        sheet,
    )


def second_layout(
    query: Query, page: str, given: Mapping[str, object], columns: Sequence[Column[Row]], *, prefix: str
) -> Layout:
    """Return how an address shows the second table of a page, whose parameters begin with a prefix."""
    own = {name.removeprefix(prefix): value for name, value in query.items() if name.startswith(prefix)}
    return replace(layout_of(own, page, given, columns), prefix=prefix)


def sorted_rows(rows: Sequence[Row], columns: Sequence[Column[Row]], layout: Layout) -> list[Row]:
    """Return rows in the order of a layout; rows whose value is not known come last."""
    column = next((column for column in columns if column.name == layout.sort), None)
    if column is None:
        return [*rows]
    return by_rank([(column.rank_of(row), row) for row in rows], is_descending=layout.is_descending)


def by_rank(pairs: Iterable[tuple[Plain, Row]], *, is_descending: bool) -> list[Row]:
    """Return what has a rank in the order of the ranks, ignoring case; what has none comes last."""
    texts: list[tuple[str, Row]] = []
    numbers: list[tuple[float, Row]] = []
    unknown: list[Row] = []
    for rank, row in pairs:
        if rank is None:
            unknown.append(row)
        elif isinstance(rank, str):
            texts.append((rank.casefold(), row))
        else:
            numbers.append((rank, row))
    texts.sort(key=lambda pair: pair[0], reverse=is_descending)
    numbers.sort(key=lambda pair: pair[0], reverse=is_descending)
    return [*(row for _, row in numbers), *(row for _, row in texts), *unknown]


def joined(values: Sequence[str]) -> str:
    """Return the values of check boxes as one parameter."""
    return _SEPARATOR.join(values)


def _cell(column: Column[Row], value: Plain) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return safe_cell(value)
    return to_timestamp(value) if column.cell == "time" else f"{value:.10g}"
