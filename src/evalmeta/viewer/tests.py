"""The page of all tests: the last verdict, the trend, what is flaky or suspect, and where definitions stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.sync import states_in_own_org
from evalmeta.model.registry import TEST_TYPES, SyncState
from evalmeta.model.run import Verdict
from evalmeta.store.run_lists import ListedRun, recent_runs
from evalmeta.viewer.digests import changes_between, digest_of
from evalmeta.viewer.pages import Column, Page, Query, Source, Table, text_of

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
    """

    name: str
    runs: Sequence[ListedRun]
    state: SyncState | None
    flaky: int = 0
    suspect: int = 0
    broken: int = 0

    @property
    def last(self) -> ListedRun | None:
        """Return the last run; None if the test was never run."""
        return self.runs[-1] if self.runs else None


TestRow.__test__ = False  # type: ignore[attr-defined] # pytest must not collect it


def _definition(test: TestRow) -> str:
    if test.state is None:
        return "in a file"
    return "deployed" if test.state is SyncState.SAME else test.state.value


COLUMNS: Final[tuple[Column[TestRow], ...]] = (
    Column("Last result", "test_state", lambda test: test),
    Column("Test", "test_name", lambda test: test),
    Column("Marks", "test_marks", lambda test: test),
    Column("Pass rate", "test_rate", lambda test: test, "number"),
    Column("Trend", "sparkline", lambda test: test.runs),
    Column("Definition", "text", _definition),
    Column("Last run", "time", lambda test: test.last and test.last.started),
    Column("Runs", "test_runs", lambda test: test, "number"),
)


def tests_page(source: Source, query: Query) -> Page:
    """Return the page of all tests."""
    recent = recent_runs(source.database, of_each=limits.VIEW_HISTORY, user=source.user)
    states: dict[str, SyncState] = {}
    for kind in TEST_TYPES:
        states |= states_in_own_org(source.project, source.database, kind, with_files=source.user.is_admin)
    spelled = {name.casefold(): name for name in (*states, *recent)}
    by_name = {name.casefold(): state for name, state in states.items()}
    wanted = text_of(query, "text")
    names = sorted((folded, name) for folded, name in spelled.items() if wanted.casefold() in folded)
    rows = [_row(source, name, recent.get(name, ()), by_name.get(folded)) for folded, name in names]
    rows.sort(key=_rank)
    values = {"tests": Table(COLUMNS, rows, id_of=lambda test: test.name), "text": wanted}
    return Page("tests.html.j2", "Tests", values, command="evalmeta test history", live=True)


def _rank(row: TestRow) -> int:
    """Return the place of a test in the list: failing ones first, those that were never run last."""
    if row.last is None:
        return 2
    return int(row.last.verdict is Verdict.PASS)


def _row(source: Source, name: str, runs: Sequence[ListedRun], state: SyncState | None) -> TestRow:
    over = [run for run in runs if run.status.is_over and not run.options.is_partial][-2:]
    digest = digest_of(source, over[-1], max_cases=limits.MAX_LIVE_CASES) if over else None
    if digest is None:
        return TestRow(name, runs, state)
    suspect, broken = changes_between(source, *over) if len(over) > 1 else (0, 0)
    return TestRow(name, runs, state, len(digest["flaky"]), suspect, broken)
