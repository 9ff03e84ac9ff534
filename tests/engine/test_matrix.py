from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.test_gate import side
from evalmeta.engine.matrix import matrix_cases, pairs_of
from evalmeta.engine.significance import Table, permutation_worse
from evalmeta.model.statistics import CaseCounts


def test_a_pair_is_tested_in_both_directions() -> None:
    one, other = side(*[5] * 4, of=5), side(*[2] * 4, of=5)
    [fell] = pairs_of({"a": {"Desk": one}, "b": {"Desk": other}})
    [rose] = pairs_of({"b": {"Desk": other}, "a": {"Desk": one}})
    assert (fell.labels, fell.rates, fell.cases) == (("a", "b"), (1.0, 0.4), 4)
    assert (rose.labels, rose.rates) == (("b", "a"), (0.4, 1.0))
    expected = 2 * permutation_worse([Table(5, 0, 2, 3)] * 4)
    assert [fell.p_value, rose.p_value] == pytest.approx([expected, expected])
    assert fell.is_significant


def test_pairs_are_corrected_for_their_number_in_steps() -> None:
    best, middle, worst = side(*[5] * 3, of=5), side(*[4] * 3, of=5), side(*[1] * 3, of=5)
    alone = {
        pair: pairs_of({"1": {"Desk": one}, "2": {"Desk": other}})[0].p_value
        for pair, one, other in (("ab", best, middle), ("ac", best, worst), ("bc", middle, worst))
    }
    found = pairs_of({"a": {"Desk": best}, "b": {"Desk": middle}, "c": {"Desk": worst}})
    corrected = {"".join(pair.labels): pair.p_value for pair in found}
    smallest, second, largest = sorted(alone, key=lambda pair: alone[pair] or 0)
    assert corrected[smallest] == pytest.approx(3 * (alone[smallest] or 0))
    assert corrected[second] == pytest.approx(2 * (alone[second] or 0))
    assert corrected[largest] == pytest.approx(alone[largest])


def test_agents_without_decided_cases_in_common_have_no_difference() -> None:
    undecided = [CaseCounts(1, "1", undecided=1)]
    [pair] = pairs_of({"a": {"Desk": side(1, of=1)}, "b": {"Desk": undecided}})
    assert (pair.cases, pair.rates, pair.p_value, pair.is_significant) == (0, None, None, False)
    [pair] = pairs_of({"a": {"Desk": side(1, of=1)}, "b": {"Other": side(1, of=1)}})
    assert pair.cases == 0


def test_the_cases_that_differ_have_the_counts_of_every_agent() -> None:
    broken = [CaseCounts(1, "Where?", 1), CaseCounts(2, "When?", errors=1)]
    cells = {"a": {"Desk": [CaseCounts(1, "Where?", 1), CaseCounts(2, "When?", 1)]}, "b": {"Desk": broken}, "c": {}}
    _, case = matrix_cases(cells)
    assert (case.differs, case.spread) == (True, 1.0)
    assert (case.test, case.number, case.utterance) == ("Desk", 2, "When?")
    assert [counts and (counts.passed, counts.errors) for counts in case.counts] == [(1, 0), (0, 1), None]


def test_a_case_that_asks_something_else_is_another_case() -> None:
    """Cases have other numbers after one was inserted, and a new one may have the number of another."""
    cells = {
        "a": {"Desk": [CaseCounts(1, "Where?", 1), CaseCounts(2, "When?", 1)]},
        "b": {"Desk": [CaseCounts(1, "Hello?", 1), CaseCounts(2, "Where?", 0, 1), CaseCounts(3, "When?", 1)]},
        "c": {"Desk": [CaseCounts(1, "Bye?", 1), CaseCounts(2, "Hello?", 1)]},
    }
    found = {
        case.utterance: [counts.number if counts else None for counts in case.counts] for case in matrix_cases(cells)
    }
    assert found == {"Where?": [1, 2, None], "When?": [2, 3, None], "Hello?": [None, 1, 2], "Bye?": [None, None, 1]}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6))
def test_the_order_of_agents_does_not_matter(rows: list[tuple[int, int]]) -> None:
    one, other = (side(*passed, of=3) for passed in (zip(*rows, strict=True) if rows else ((), ())))
    [there] = pairs_of({"a": {"Desk": one}, "b": {"Desk": other}})
    [back] = pairs_of({"b": {"Desk": other}, "a": {"Desk": one}})
    assert (there.p_value or 0) == pytest.approx(back.p_value or 0)
    assert there.rates == (back.rates and back.rates[::-1])
