from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.raters.pairs import PAIRS, Pair
from evalmeta import limits
from evalmeta.engine.raters.rater import Rating
from evalmeta.engine.raters.rules import rate
from evalmeta.model.run import Verdict

EVIDENCE = {
    "numbers": "numbers differ: expected ",
    "names": "names differ: expected ",
    "refusal": "refusal",
    "same": "is the expected text",
}


def judge(pair: Pair) -> Rating:
    return rate(pair.expected, pair.actual, utterance=pair.utterance)


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if not pair.right], ids=str)
def test_no_wrong_answer_passes(pair: Pair) -> None:
    assert judge(pair).verdict is not Verdict.PASS


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair.rule], ids=str)
def test_a_rule_decides_its_pairs_and_names_itself(pair: Pair) -> None:
    rating = judge(pair)
    assert rating.verdict is (Verdict.PASS if pair.right else Verdict.FAILURE)
    assert EVIDENCE[pair.rule] in rating.explanation


def test_what_is_decided_is_right_four_times_out_of_five() -> None:
    decided = [(pair, rating) for pair in PAIRS if (rating := judge(pair)).verdict is not Verdict.UNDECIDED]
    right = sum(pair.right == (rating.verdict is Verdict.PASS) for pair, rating in decided)
    assert len(decided) >= len(PAIRS) / 2
    assert right >= 0.8 * len(decided)


def test_the_evidence_is_told() -> None:
    rating = rate("The total is 1250 dollars.", "The total is 12500 dollars.", utterance="What is the total?")
    assert rating == Rating(0.0, Verdict.FAILURE, "numbers differ: expected 1250, got 12500", "rules")


def test_a_number_from_the_question_need_not_be_repeated() -> None:
    rating = rate(
        "Order 1234 ships in 2 days.", "It ships in 2 days by carrier 99.", utterance="When does order 1234 ship?"
    )
    assert rating.verdict is not Verdict.FAILURE


def test_a_negation_is_a_warning_and_never_a_failure() -> None:
    rating = rate("Your refund was approved.", "Your refund was not approved.", utterance="")
    assert rating.verdict is Verdict.UNDECIDED
    assert "warning: one side has a negation" in rating.explanation


def test_a_refusal_that_should_come_with_more_is_undecided() -> None:
    rating = rate("The agent refuses and offers to call a person", "I can't help with that.", utterance="")
    assert rating.verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("The order ships on Tuesday.", "I don't have access to live data, but the order ships on Tuesday."),
        ("The agent should decline to give legal advice", "Please contact a lawyer."),
        ("The agent cannot answer this", "I can't help with that, but here is what I found: Paris."),
    ],
)
def test_a_refusal_that_is_not_plain_is_undecided(expected: str, actual: str) -> None:
    assert rate(expected, actual, utterance="").verdict is Verdict.UNDECIDED


def test_other_languages_are_never_failed_by_words_or_names() -> None:
    rating = rate("Die Bestellung wurde geliefert", "Das Paket liegt beim Nachbarn", utterance="")
    assert rating.verdict is Verdict.UNDECIDED


def test_very_long_texts_are_undecided() -> None:
    assert rate("Short.", "x" * (limits.MAX_RATED_CHARS + 1), utterance="").verdict is Verdict.UNDECIDED


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=20))
def test_any_two_texts_get_a_rating_that_fits_its_score(expected: str, actual: str, utterance: str) -> None:
    rating = rate(expected, actual, utterance=utterance)
    assert (rating.score is None) == (rating.verdict is Verdict.UNDECIDED)
    if rating.score is not None:
        assert 0 <= rating.score <= 5 + 1e-9
        assert (rating.score >= 3) == (rating.verdict is Verdict.PASS)
    assert rating.explanation
