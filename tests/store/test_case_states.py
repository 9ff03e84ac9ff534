"""Verdicts of cases over runs, read without the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.model.run import Verdict
from evalmeta.model.statistics import RunCounts
from evalmeta.store.case_states import contents_of, counts_of_cases, judging_runs, results_of_cases
from store.test_case_lists import case, save

if TYPE_CHECKING:
    from evalmeta.store.database import Database


def test_the_verdicts_of_each_case_are_counted_over_its_iterations(database: Database) -> None:
    failed = case(1, Verdict.FAILURE)._replace(iteration=2)
    run = save(database, case(1, Verdict.PASS), failed, case(2, Verdict.ERROR), case(3, Verdict.UNDECIDED))
    save(database, case(1, Verdict.PASS))

    assert counts_of_cases(database, run) == {1: RunCounts(1, 1), 2: RunCounts(errors=1), 3: RunCounts(undecided=1)}
    assert counts_of_cases(database, run, {2, 9}) == {2: RunCounts(errors=1)}
    assert counts_of_cases(database, run, set()) == {}
    assert [found.iteration for found in results_of_cases(database, run, {1})] == [1, 2]


def test_runs_judge_the_cases_that_passed_or_failed_there(database: Database) -> None:
    passed = save(database, case(1, Verdict.PASS), case(2, Verdict.ERROR))
    failed = save(database, case(1, Verdict.UNDECIDED), case(2, Verdict.FAILURE))
    broken = save(database, case(1, Verdict.ERROR), case(2, Verdict.UNDECIDED))
    runs = [passed, failed, broken]

    assert judging_runs(database, runs, {1}) == {passed}
    assert judging_runs(database, runs, range(2, 2_000)) == {failed}
    assert judging_runs(database, runs) == {passed, failed}
    assert judging_runs(database, [broken, failed], {1, 2}) == {failed}
    assert judging_runs(database, runs, ()) == judging_runs(database, []) == set()


def test_more_cases_than_a_query_has_parameters_are_read(database: Database) -> None:
    run = save(database, *(case(number, Verdict.PASS) for number in range(1, 2_002)))
    wanted = range(1, 2_001)
    assert len(counts_of_cases(database, run, wanted)) == len([*results_of_cases(database, run, wanted)]) == 2_000


def test_equal_contents_are_equal(database: Database) -> None:
    first, second = save(database, case(1, Verdict.PASS)), save(database, case(1, Verdict.PASS))
    contents = contents_of(database, [first, second])
    assert contents[first] == contents[second]
