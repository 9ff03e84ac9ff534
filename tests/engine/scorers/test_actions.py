from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders import exchange
from evalmeta.engine.scorers.actions import common_length, score_actions, similarity
from evalmeta.model.definition import Expectation
from evalmeta.model.generated import Action, GeneratedData
from evalmeta.model.run import TestResult, Verdict

NAMES = st.lists(st.sampled_from("ABCD"), max_size=12)


def judge(expected: str | None, *taken: str) -> TestResult:
    generated = GeneratedData("", actions=tuple(map(Action, taken)))
    return score_actions(Expectation("action_sequence_match", expected), exchange(generated))


def test_the_same_actions_in_the_same_order_pass() -> None:
    result = judge("['A', \"B\"]", "A", "B")
    assert (result.verdict, result.score, result.detail) == (Verdict.PASS, 1.0, 1.0)
    assert result.expected == result.actual == "['A', 'B']"


def test_an_empty_list_means_that_none_were_taken() -> None:
    assert judge("[]").verdict is Verdict.PASS
    assert judge("[]", "A").verdict is Verdict.FAILURE


@pytest.mark.parametrize(
    ("taken", "explanation"),
    [
        (("A",), "missing: B, C"),
        (("A", "B", "C", "D"), "extra: D"),
        (("A", "B", "B", "C"), "extra: B"),
        (("C", "A", "D"), "missing: B; extra: D; order: C before A"),
        (("B", "A", "C"), "order: B before A"),
        ((), "missing: A, B, C"),
    ],
)
def test_a_difference_is_explained(taken: tuple[str, ...], explanation: str) -> None:
    result = judge("['A','B','C']", *taken)
    assert (result.verdict, result.score, result.explanation) == (Verdict.FAILURE, 0.0, explanation)


def test_the_detail_tells_a_partial_match() -> None:
    assert judge("['A','B','C']", "A", "C").detail == 0.8
    assert judge("['A']", "B").detail == 0.0


def test_a_list_that_cannot_be_read_is_an_error() -> None:
    result = judge("A, B", "A", "B")
    assert result.verdict is Verdict.ERROR
    assert "['A', 'B']" in result.explanation


def test_without_expected_actions_nothing_is_decided() -> None:
    result = judge(None, "A")
    assert (result.verdict, result.score, result.actual) == (Verdict.UNDECIDED, None, "['A']")


@given(NAMES, NAMES)
def test_every_difference_has_an_explanation(wanted: list[str], taken: list[str]) -> None:
    result = judge(repr(wanted), *taken)
    assert (result.verdict is Verdict.PASS) == (wanted == taken)
    assert result.explanation


def _table(left: list[str], right: list[str]) -> int:
    row = [0] * (len(right) + 1)
    for one in left:
        previous = row[:]
        for place, other in enumerate(right, 1):
            row[place] = previous[place - 1] + 1 if one == other else max(previous[place], row[place - 1])
    return row[-1]


@given(NAMES, NAMES)
def test_the_common_length_is_that_of_the_textbook(left: list[str], right: list[str]) -> None:
    assert common_length(left, right) == _table(left, right)


@given(NAMES, NAMES)
def test_similarity_is_symmetric_and_between_0_and_1(left: list[str], right: list[str]) -> None:
    assert 0 <= similarity(left, right) == similarity(right, left) <= 1
    assert (similarity(left, right) == 1) == (left == right)
