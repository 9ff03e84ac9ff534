from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import StoreError
from evalmeta.model.aggregation import by_number
from evalmeta.model.evaluation import Case, Evaluation
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import CaseResult, RunContent, Verdict
from evalmeta.model.run_options import RunOptions
from evalmeta.store.database import delete_contents
from evalmeta.store.runs import Lease, RunJournal, Runs
from evalmeta.store.stored_cases import StoredCases, open_cases

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalmeta.store.database import Database

RUN_ID = "4KB000000000001GAA"
KEYS = [(iteration, number) for iteration, number in product((1, 2), (1, 2, 3))]


def result(iteration: int, number: int, *, chars: int) -> CaseResult:
    return CaseResult(number, iteration, "Where?", Verdict.PASS, 10.0, 11.5, (), GeneratedData("a" * chars))


def append(database: Database, results: Iterable[CaseResult]) -> None:
    RunJournal(database, RUN_ID, "w1").append(list(results))


def keys(cases: Iterable[CaseResult]) -> list[tuple[int, int]]:
    return [(case.iteration, case.number) for case in cases]


@pytest.fixture
def run(database: Database) -> Runs:
    runs, evaluation = Runs(database), Evaluation("Orders", "Desk", tuple(Case(number, ()) for number in (1, 2, 3)))
    runs.start(EVALUATION_DEFINITION, evaluation, RunContent(b"<xml/>"), RunOptions(iterations=2), total=6, now=100)
    runs.claim(RUN_ID, "w1", taken_from=Lease(None, None), until=115)
    return runs


@pytest.fixture
def large(database: Database, run: Runs) -> Sequence[CaseResult]:
    """The cases of a run whose results are too large to be kept in memory."""
    del run
    append(database, (result(*key, chars=limits.MAX_CASE_BYTES_IN_MEMORY // 3) for key in KEYS))
    return open_cases(database, RUN_ID)


def test_a_run_without_results_has_no_cases(database: Database, run: Runs) -> None:
    del run
    assert list(open_cases(database, RUN_ID)) == []
    assert list(StoredCases(database, RUN_ID)) == []


@pytest.mark.sqlite
def test_the_results_of_a_small_run_do_not_need_the_database(database: Database, run: Runs) -> None:
    del run
    append(database, (result(*key, chars=10) for key in KEYS))
    cases = open_cases(database, RUN_ID)
    database.close()
    Path(database.name).unlink()
    assert keys(cases) == KEYS


def test_the_results_of_a_large_run_stay_in_the_database(run: Runs, large: Sequence[CaseResult]) -> None:
    assert isinstance(large, StoredCases)
    assert (len(large), tuple(large)) == (6, run.cases(RUN_ID))


def test_stored_results_can_be_read_again_by_position_and_by_number(large: Sequence[CaseResult]) -> None:
    assert keys(large) == keys(large) == KEYS
    assert keys([large[0], large[-1]]) == [(1, 1), (2, 3)]
    assert keys(large[1:5:2]) == [(1, 2), (2, 1)]
    assert keys(by_number(large)) == [(1, 1), (2, 1), (1, 2), (2, 2), (1, 3), (2, 3)]
    with pytest.raises(IndexError):
        large[6]


def test_results_in_memory_have_the_same_order_by_number(large: Sequence[CaseResult]) -> None:
    assert keys(by_number(tuple(large))) == keys(by_number(large))


def test_two_readers_do_not_disturb_each_other(large: Sequence[CaseResult]) -> None:
    assert [first == second for first, second in zip(large, large, strict=True)] == [True] * 6


def test_results_that_are_added_later_are_left_out(database: Database, run: Runs) -> None:
    del run
    append(database, (result(*key, chars=40_000) for key in KEYS[1::2]))
    cases = open_cases(database, RUN_ID)
    read = iter(cases)
    first = next(read)
    append(database, (result(*key, chars=40_000) for key in KEYS[::2]))
    assert keys([first, *read]) == keys(cases) == KEYS[1::2]
    assert keys(by_number(cases)) == [(2, 1), (1, 2), (2, 3)]
    assert keys(open_cases(database, RUN_ID)) == KEYS


def test_each_result_is_changed_when_it_is_read(database: Database, large: Sequence[CaseResult]) -> None:
    del large
    cases = open_cases(database, RUN_ID, change=lambda case: case._replace(label=f"case {case.number}"))
    assert {each.label for each in (*cases, cases[0], *by_number(cases))} == {"case 1", "case 2", "case 3"}


def test_deleted_results_are_an_error(database: Database, large: Sequence[CaseResult]) -> None:
    delete_contents(database, is_ours=lambda _: False)
    for read in (list, lambda cases: cases[0], lambda cases: list(by_number(cases))):
        with pytest.raises(StoreError, match=f"the results of run {RUN_ID} are no longer in "):
            read(large)


@pytest.mark.sqlite
def test_a_deleted_database_is_not_created_again(database: Database, large: Sequence[CaseResult]) -> None:
    database.close()
    Path(database.name).unlink()
    with pytest.raises(StoreError, match=f"the results of run {RUN_ID} are no longer in "):
        list(large)
    assert not database.path.exists()
