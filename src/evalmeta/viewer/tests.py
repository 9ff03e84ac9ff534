"""The page of all tests: the last verdict, the trend, what is flaky or suspect, and where definitions stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.sync import states_in_own_org
from evalmeta.model.registry import TEST_TYPES, SyncState
from evalmeta.model.run import Verdict
from evalmeta.store.run_lists import ListedRun, recent_runs
from evalmeta.viewer.digests import changes_between, digest_of
from evalmeta.viewer.pages import Page, Query, Source, text_of
from evalmeta.viewer.runs import rank_of, state_of
from evalmeta.viewer.tables import Column, Table, layout_of, sorted_rows

if TYPE_CHECKING:
    from collections.abc import Sequence


class TestRow(NamedTuple):
    """A test.

    Attributes:
        runs: its latest runs, the oldest first; may be empty.
        state: how its definition in the project and in the org differ; None for tests in other files.
        flaky: the number of cases that passed and failed in the last run.
        suspect: the number of cases that passed in the run before and fail in the last one; chance may explain that.
        broken: the number of cases that became significantly worse.
        is_large: whether its runs have too many cases to compare them here.
    """

    name: str
    runs: Sequence[ListedRun]
    state: SyncState | None
    flaky: int = 0
    suspect: int = 0
    broken: int = 0
    is_large: bool = False

    @property
    def last(self) -> ListedRun | None:
        """Return the last run; None if the test was never run."""
        return self.runs[-1] if self.runs else None


TestRow.__test__ = False  # type: ignore[attr-defined] # pytest must not collect it


def _definition(test: TestRow) -> str:
    if test.state is None:
        return "in a file"
    return "deployed" if test.state is SyncState.SAME else test.state.value


def _marks(test: TestRow) -> str:
    numbers = {"broken": test.broken, "suspect": test.suspect, "flaky": test.flaky}
    marks = [f"{number} {mark}" for mark, number in numbers.items() if number]
    return ", ".join([*marks, *(["not compared"] if test.is_large else [])])


COLUMNS: Final[tuple[Column[TestRow], ...]] = (
    Column(
        "Last result",
        "test_state",
        lambda test: test,
        plain=lambda test: state_of(test.last) if test.last else "not run",
        rank=lambda test: rank_of(test.last) if test.last else None,
    ),
    Column("Test", "test_name", lambda test: test, plain=lambda test: test.name),
    Column(
        "Marks",
        "test_marks",
        lambda test: test,
        plain=_marks,
        rank=lambda test: test.broken + test.suspect + test.flaky,
    ),
    Column(
        "Pass rate",
        "test_rate",
        lambda test: test,
        "number",
        plain=lambda test: test.last.summary.pass_rate if test.last else None,
    ),
    Column("Trend", "sparkline", lambda test: test.runs),
    Column("Definition", "text", _definition),
    Column("Last run", "time", lambda test: test.last and test.last.started),
    Column("Runs", "test_runs", lambda test: test, "number", plain=lambda test: len(test.runs)),
)


def tests_page(source: Source, query: Query) -> Page:
    """Return the page of all tests."""
    values = {"tests": listed_tests(source, query), "text": text_of(query, "text")}
    return Page("tests.html.j2", "Tests", values, command="evalmeta test history", live=True)


def listed_tests(source: Source, query: Query) -> Table[TestRow]:
    """Return the tests whose name contains the text of a query."""
    recent = recent_runs(source.database, of_each=limits.VIEW_HISTORY, user=source.user, confirming=False)
    states: dict[str, SyncState] = {}
    for kind in TEST_TYPES:
        states |= states_in_own_org(source.project, source.database, kind, with_files=source.user.is_admin)
    spelled = {name.casefold(): name for name in (*states, *recent)}
    by_name = {name.casefold(): state for name, state in states.items()}
    wanted = text_of(query, "text")
    titles = {name.casefold(): runs[-1].title.casefold() for name, runs in recent.items()}
    names = sorted(
        (folded, name) for folded, name in spelled.items() if wanted.casefold() in f"{folded} {titles.get(folded, '')}"
    )
    rows = _rows(source, [(name, recent.get(name, ()), by_name.get(folded)) for folded, name in names])
    rows.sort(key=_rank)
    layout = layout_of(query, "tests", {"text": wanted} if wanted else {}, COLUMNS, sheet="tests.csv")
    return Table(COLUMNS, sorted_rows(rows, COLUMNS, layout), id_of=lambda test: test.name, layout=layout)


def _rank(row: TestRow) -> int:
    """Return the place of a test in the list: failing ones first, those that were never run last."""
    if row.last is None:
        return 2
    return int(row.last.verdict is Verdict.PASS)


def _rows(source: Source, tests: Sequence[tuple[str, Sequence[ListedRun], SyncState | None]]) -> list[TestRow]:
    """Return the rows of tests, of which the names, the latest runs and the states are known."""
    over = {
        name: [run for run in runs if run.status.is_over and not run.options.is_partial][-2:] for name, runs, _ in tests
    }
    pairs = {name: (both[0], both[1]) for name, both in over.items() if len(both) > 1}
    changes = dict(zip(pairs, changes_between(source, [*pairs.values()]), strict=True))
    return [
        TestRow(name, runs, state, _flaky(source, over[name][-1:]), *(known or (0, 0)), is_large=known is None)
        for name, runs, state in tests
        for known in [changes.get(name, (0, 0))]
    ]


def _flaky(source: Source, runs: Sequence[ListedRun]) -> int:
    """Return the number of cases that passed and failed in a run; 0 if it is not known."""
    # Without iterations, no case has two verdicts.
    digests = (digest_of(source, run, max_cases=limits.MAX_LIVE_CASES) for run in runs if run.options.is_repeated)
    return sum(len(digest["flaky"]) for digest in digests if digest)
