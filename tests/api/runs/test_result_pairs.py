from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from api.runs.test_comparisons import FAILURE, PASS, run
from evalmeta.api.runs.comparisons import compare_runs
from evalmeta.api.runs.result_pairs import explain_with, result_pairs

if TYPE_CHECKING:
    from evalmeta.model.run import Run


def moved(known: Run, **numbers: int) -> Run:
    """Return a run whose cases have other numbers, by their places."""
    return replace(known, cases=tuple(case._replace(number=numbers[f"n{case.number}"]) for case in known.cases))


def test_iterations_that_show_the_change_are_chosen() -> None:
    before, after = run(1, PASS), run(2, FAILURE)
    again = after.cases[0]._replace(verdict=PASS, iteration=1), after.cases[0]._replace(iteration=2)
    after = replace(after, cases=again)

    [pair] = result_pairs(compare_runs(before, replace(after, cases=again[1:])).cases, before, after)

    assert (pair.before, pair.after) == (before.cases[0], again[1])


def test_cases_with_another_number_before_are_paired() -> None:
    before, after = moved(run(1, PASS, PASS), n1=7, n2=8), run(2, FAILURE, PASS)

    pairs = result_pairs(compare_runs(before, after).cases, before, after)

    assert [(pair.before and pair.before.number, pair.after and pair.after.number) for pair in pairs] == [
        (7, 1),
        (8, 2),
    ]


def test_runs_before_and_after_with_the_same_id_are_not_mixed_up() -> None:
    """As two stores can have them."""
    before = run(1, PASS)
    broken = run(1, FAILURE).cases[0]._replace(error="boom")
    after = replace(run(1), started=9.0, total=1, cases=(broken,))
    comparison = compare_runs(before, after)

    assert explain_with([before], [after])(comparison) == {1: ("error now: boom",)}
    assert explain_with([before], [])(comparison) == {}


def test_a_baseline_without_results_leaves_the_reasons_of_the_run_now() -> None:
    before, after = run(1, PASS), run(2, FAILURE)

    assert explain_with([], [after])(compare_runs(before, after)) == {1: ("the case has no expectations",)}
