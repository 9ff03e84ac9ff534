"""The lists of runs and of case results that pages show, in a large store."""

from __future__ import annotations

import statistics
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.model.run import Verdict
from evalmeta.store.case_lists import CaseFilter, Place, case_page, count_verdicts
from evalmeta.store.database import open_database
from evalmeta.store.run_lists import RunFilter, distinct_values, recent_runs, run_page
from large_store import open_large
from rows import Goal, Result, Row
from timing import of_work

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.package.project import Project
    from evalmeta.store.database import Database

    List = Callable[[Database, str], object]

ROUNDS = 15
SIZES = {"runs": 2_000, "results": 1_000_000, "largest": 100_000}
TINY = {"runs": 20, "results": 2_000, "largest": 1_000}
STORE = "{runs:,} runs with {results:,} results"
QUICK = Goal("at most", 200, " ms")
_open_stores = ExitStack()


@cache
def _large(runs: int, results: int, largest: int) -> tuple[Project, str]:
    """Fill a store once; all rows use it."""
    return _open_stores.enter_context(open_large(runs=runs, results=results, largest=largest))


def close() -> None:
    """Delete the store."""
    _large.cache_clear()
    _open_stores.close()


def _page_of_runs(database: Database, _: str) -> None:
    assert run_page(database, RunFilter(), limit=limits.VIEW_ROWS).runs
    assert all(distinct_values(database, column) for column in ("definition", "subject", "branch"))


def _failed_runs(database: Database, _: str) -> None:
    assert run_page(database, RunFilter(text="orders_7", outcome="failed"), limit=limits.VIEW_ROWS).runs


def _recent(database: Database, _: str) -> None:
    assert recent_runs(database, of_each=20)


def _first_cases(database: Database, run_id: str) -> None:
    assert count_verdicts(database, [run_id])
    assert case_page(database, [run_id], CaseFilter(), limit=limits.VIEW_ROWS).cases


def _deep_cases(database: Database, run_id: str) -> None:
    place = Place(verdict=3, number=count_verdicts(database, [run_id]).total() * 9 // 10)
    assert case_page(database, [run_id], CaseFilter(), limit=limits.VIEW_ROWS, after=place).cases


def _filtered_cases(database: Database, run_id: str) -> None:
    wanted = CaseFilter(Verdict.UNDECIDED, "output_validation")
    assert case_page(database, [run_id], wanted, limit=limits.VIEW_ROWS).cases


def _search(text: str) -> List:
    def search(database: Database, run_id: str) -> None:
        assert not case_page(database, [run_id], CaseFilter(text=text), limit=limits.VIEW_ROWS).cases

    return search


def _row(name: str, what: str, show: List) -> Row:
    def measure(*, runs: int, results: int, largest: int) -> Result:
        project, run_id = _large(runs, results, largest)

        def look() -> None:
            with open_database(project.state_dir) as database:
                show(database, run_id)

        taken = statistics.median(of_work(look).wall for _ in range(ROUNDS)) * 1_000
        return Result(f"{taken:.0f} ms", "-", taken)

    return Row(name, what, "a fixed time", measure, SIZES, TINY, QUICK, unit=" ms")


ROWS = (
    _row("list-runs", f"newest 50 of {STORE}, and the values of the filters", _page_of_runs),
    _row("list-runs-filtered", "of the same store, the newest failed runs of some tests", _failed_runs),
    _row("list-tests", "of the same store, the last 20 runs of each of 40 tests", _recent),
    _row("list-cases", "worst 50 of {largest:,} results of a run, and how many there are", _first_cases),
    _row("list-cases-deep", "of the same run, 50 results near the end", _deep_cases),
    _row("list-cases-filtered", "of the same run, 50 results with an undecided expectation", _filtered_cases),
    _row(
        "list-cases-search", "of the same run, a search for a text that no result has, until it stops", _search("Ada")
    ),
    _row("list-cases-search-worst", "the same with a text that only names of inputs contain", _search("question")),
)
