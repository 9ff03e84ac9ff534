"""The page with the results of the cases of a test in its latest runs: rows are cases, columns are runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, cast

from evalmeta import limits
from evalmeta.api.runs.comparisons import find_run, known_test
from evalmeta.errors import StoreError
from evalmeta.model.run import Verdict
from evalmeta.report.details import all_utterances
from evalmeta.report.html import time_text
from evalmeta.report.report import STATE_WORDS
from evalmeta.store.case_states import contents_of, counts_of_cases, results_of_cases
from evalmeta.store.kept_numbers import find_digest, keep_digest
from evalmeta.store.run_lists import distinct_values, recent_runs
from evalmeta.viewer.digests import stamp_of
from evalmeta.viewer.memory import Memory
from evalmeta.viewer.pages import Page, Query, Source, number_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.store.run_lists import ListedRun


CaseCount: TypeAlias = tuple[int, str, int, int, int, int]
"""A case of a run: its number, its utterance, and how often it passed, failed, ended in an error or was undecided."""
_UTTERANCE_CHARS: Final = 200


class Cell(NamedTuple):
    """A case in a run: its number there, its worst verdict, and in how many of its iterations it has it."""

    number: int
    verdict: Verdict
    alike: int
    total: int

    @property
    def is_mixed(self) -> bool:
        """Return whether its iterations have different verdicts."""
        return self.alike < self.total

    def words(self, run: ListedRun) -> str:
        """Return what the cell says."""
        of_all = f" in {self.alike} of {self.total} iterations" if self.total > 1 else ""
        return f"{STATE_WORDS[self.verdict]}{of_all}, {time_text(run.started)}, run {run.id}"


class GridRow(NamedTuple):
    """A case with its cells by the position of their runs, the newest first; runs that did not ask it have none.

    Attributes:
        changes: how often its verdict changed from run to run, or between the iterations of a run.
        not_passed: in how many runs it did not pass.
    """

    utterance: str
    cells: Mapping[int, Cell]
    changes: int
    not_passed: int

    @classmethod
    def of(cls, utterance: str, by_position: Mapping[int, Cell]) -> GridRow:
        """Return the row of a case."""
        cells = [by_position[position] for position in sorted(by_position)]
        changes = sum(cell.verdict is not other.verdict for cell, other in pairwise(cells))
        changes += sum(cell.is_mixed for cell in cells)
        return cls(utterance, by_position, changes, sum(cell.verdict is not Verdict.PASS for cell in cells))

    @property
    def newest(self) -> tuple[int, Cell]:
        """Return its cell in the newest run that asked it, with the position of the run."""
        position = min(self.cells)
        return position, self.cells[position]


class Grid(NamedTuple):
    """All rows that are shown, and how many cases passed in all runs and are left out."""

    rows: Sequence[GridRow]
    left_out: int


class NamedRow(NamedTuple):
    """A row with the utterance of its case, and its label if it has one."""

    row: GridRow
    utterance: str
    label: str


# The orders of rows by the word in the address.
ORDERS: Final[Mapping[str, tuple[str, Callable[[GridRow], tuple[float, ...]]]]] = {
    "": ("most changes first", lambda row: (-row.changes, -row.not_passed, row.newest[1].number)),
    "failures": ("most failures first", lambda row: (-row.not_passed, -row.changes, row.newest[1].number)),
    "number": ("by number", lambda row: (row.newest[1].number,)),
}
_GRIDS: Final[Memory[Grid]] = Memory(limits.KEPT_COMPARISONS)


def grid_page(source: Source, query: Query) -> Page:
    """Return the cases of a test with their results in its latest runs; of the first test without a choice."""
    tests = distinct_values(source.database, "definition", user=source.user)
    test = text_of(query, "test") or next(iter(tests), "")
    recent = recent_runs(source.database, of_each=limits.VIEW_GRID_RUNS, test=test, user=source.user, confirming=False)
    runs = [run for run in reversed(recent.get(test, [])) if run.status.is_over]
    key = source.database.name, tuple((run.org_url, run.id, stamp_of(run)) for run in runs)
    grid = _GRIDS.find(key, lambda: _grid(source, runs))
    order = text_of(query, "sort") if text_of(query, "sort") in ORDERS else ""
    start = min(number_of(query, "after", otherwise=0), len(grid.rows))
    end = start + limits.VIEW_ROWS
    rows = sorted(grid.rows, key=ORDERS[order][1])
    values = {
        "tests": tests,
        "test": test,
        "runs": runs,
        "rows": [*_named(source, runs, rows[start:end])],
        "orders": {word: title for word, (title, _) in ORDERS.items()},
        "order": order,
        "left_out": grid.left_out,
        "total": len(rows),
        "start": start,
        "after": end if end < len(rows) else None,
    }
    command = f"evalmeta test history {test}" if test else "evalmeta test history"
    return Page("grid.html.j2", f"Cases of {test}" if test else "Cases", values, command=command)


def _grid(source: Source, runs: Sequence[ListedRun]) -> Grid:
    known = [{key: case for key, case in cases if any(case[2:])} for cases in _all_counts(source, runs)]
    keys = dict.fromkeys(key for cases in known for key in cases)
    # Most cases passed in all runs: making their rows would take most of the time of a large grid.
    is_small = len(keys) <= limits.VIEW_ROWS
    shown = keys if is_small else dict.fromkeys(key for cases in known for key, case in cases.items() if any(case[3:]))
    rows = [
        GridRow.of(key[0], {position: _cell(cases[key]) for position, cases in enumerate(known) if key in cases})
        for key in shown
    ]
    return Grid(rows, len(keys) - len(shown))


def _all_counts(source: Source, runs: Sequence[ListedRun]) -> Iterator[Iterator[tuple[tuple[str, int], CaseCount]]]:
    """Yield the cases of each run, each with what makes it the same in all runs.

    In runs of the same content, that is its number; in others its utterance, unless a run is too large to read it.
    """
    own = [run.id for run in runs if not run.org_url]
    is_same = len(own) == len(runs) and len({*contents_of(source.database, own).values()}) == 1
    if not is_same and all(run.done <= limits.MAX_LIVE_CASES for run in runs):
        for run in runs:
            yield _by_utterance(_read_counts(source, run))
        return
    for run in runs:
        known = {} if run.org_url else counts_of_cases(source.database, run.id)
        yield ((("", number), (number, "", *counts)) for number, counts in known.items())


def _by_utterance(cases: Sequence[CaseCount]) -> Iterator[tuple[tuple[str, int], CaseCount]]:
    seen: Counter[str] = Counter()
    for case in cases:
        seen[case[1]] += 1
        yield (case[1], seen[case[1]]), case


def _read_counts(source: Source, run: ListedRun) -> Sequence[CaseCount]:
    """Return the verdicts of all cases of a run with their utterances; they are kept if it is over."""
    kept_as, stamp = f"{run.id} cases", stamp_of(run)
    if kept := find_digest(source.database, kept_as, stamp, org_url=run.org_url):
        return cast("list[CaseCount]", kept["cases"])
    known = known_test(find_run(source.project, run.id, org_url=run.org_url)).cases
    cases = [
        (case.number, case.utterance[:_UTTERANCE_CHARS], case.passed, case.failed, case.errors, case.undecided)
        for case in known
    ]
    # Another program may be writing; the results are then read again for the next page.
    with suppress(StoreError):
        keep_digest(source.database, kept_as, stamp, cast("JsonObject", {"cases": cases}), org_url=run.org_url)
    return cases


def _cell(case: CaseCount) -> Cell:
    """Return the cell of a case."""
    number, _, passed, failed, errors, undecided = case
    worst = ((Verdict.FAILURE, failed), (Verdict.ERROR, errors), (Verdict.UNDECIDED, undecided))
    total = passed + failed + errors + undecided
    verdict, alike = next((pair for pair in worst if pair[1]), (Verdict.PASS, passed))
    return Cell(number, verdict, alike, total)


def _named(source: Source, runs: Sequence[ListedRun], rows: Sequence[GridRow]) -> Iterator[NamedRow]:
    """Yield rows with the utterances of their cases, of the newest run that asked them."""
    wanted: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        position, cell = row.newest
        if not runs[position].org_url:
            wanted[position].append(cell.number)
    texts = {
        (position, case.number): (all_utterances(case), case.label)
        for position, numbers in wanted.items()
        for case in results_of_cases(source.database, runs[position].id, numbers)
    }
    for row in rows:
        position, cell = row.newest
        yield NamedRow(row, *texts.get((position, cell.number), (row.utterance, "")))
