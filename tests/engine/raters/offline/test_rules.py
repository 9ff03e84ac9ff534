from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.raters.offline.pairs import PAIRS, split
from evalmeta import limits
from evalmeta.engine.raters.offline.rules import Rules, bind_rules, rate
from evalmeta.engine.raters.rater import Rating, Rubric
from evalmeta.model.run import Verdict
from evalmeta.model.settings import RulesRater

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.raters.calibration import Pair


def judge(pair: Pair) -> Rating:
    return rate(pair.expected, pair.actual, utterance=pair.utterance)


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if not pair.right], ids=str)
def test_no_wrong_answer_passes(pair: Pair) -> None:
    assert judge(pair).verdict is not Verdict.PASS


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair.rule], ids=str)
def test_a_rule_decides_its_pairs_and_names_itself(pair: Pair) -> None:
    rating = judge(pair)
    assert rating.verdict is (Verdict.PASS if pair.right else Verdict.FAILURE)
    assert rating.rule == pair.rule
    assert rating.explanation


@pytest.mark.parametrize(("name", "coverage"), [("calibration", 0.6), ("held-out", 0.7)])
def test_what_is_decided_is_right_and_enough_is(name: str, coverage: float) -> None:
    pairs = split(name)
    decided = [(pair, rating) for pair in pairs if (rating := judge(pair)).verdict is not Verdict.UNDECIDED]
    right = sum(pair.right == (rating.verdict is Verdict.PASS) for pair, rating in decided)
    assert len(decided) >= coverage * len(pairs)
    assert right >= 0.97 * len(decided)


def test_the_set_is_large_enough_to_say_something() -> None:
    assert len(PAIRS) >= 320
    assert len(split("held-out")) >= 100


def test_the_evidence_is_told() -> None:
    rating = rate("The total is 1250 dollars.", "The total is 12500 dollars.", utterance="What is the total?")
    assert rating == Rating(0.0, Verdict.FAILURE, "numbers differ: expected 1250, got 12500", "rules", "numbers")


def test_a_unit_is_told_where_it_makes_the_difference() -> None:
    assert "expected 75 EUR, got 75 USD" in rate("It costs €75.", "It costs $75.", utterance="").explanation


def test_a_number_from_the_question_need_not_be_repeated() -> None:
    rating = rate(
        "Order 1234 ships in 2 days.", "It ships in 2 days by carrier 99.", utterance="When does order 1234 ship?"
    )
    assert rating.verdict is not Verdict.FAILURE


@pytest.mark.parametrize("actual", ["Your refund was not approved.", "Your refund was not approved by Tom but by Ann."])
def test_a_negation_is_a_warning_and_never_a_failure(actual: str) -> None:
    rating = rate("Your refund was approved.", actual, utterance="")
    assert rating.verdict is Verdict.UNDECIDED
    assert "warning: one side has a negation" in rating.explanation


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("The order ships on Tuesday.", "I don't have access to live data, but the order ships on Tuesday."),
        ("The agent should decline to give legal advice", "Please contact a lawyer."),
        ("The agent cannot answer this", "I can't help with that, but here is what I found: Paris."),
        ("The agent refuses and offers to call a person", "I can't help with that."),
        ("The agent should decline", "Something went wrong."),
        ("The server has a problem.", "Something went wrong."),
        ("The bot refuses tax advice", "I can't reset your router."),
        ("There is no such case.", "I don't have access to cases."),
        ("The agent helps to find a hotel", "What is your budget?"),
        ("The agent asks for name and age", "What is your name?"),
        ("Wait for a human.", "One moment, please."),
        ("The agent lists 3 names at Initech", "Bill and Peter of Globex"),
        ("The sun rises early today.", "No clouds."),
        ("The sun rises early today.", "They like it here."),
    ],
)
def test_what_is_not_plain_is_undecided(expected: str, actual: str) -> None:
    assert rate(expected, actual, utterance="").verdict is Verdict.UNDECIDED


def test_other_languages_are_never_failed_by_words_or_names() -> None:
    rating = rate("Die Bestellung wurde geliefert", "Das Paket liegt beim Nachbarn", utterance="")
    assert rating.verdict is Verdict.UNDECIDED


def test_very_long_texts_are_undecided() -> None:
    assert rate("Short.", "x" * (limits.MAX_RATED_CHARS + 1), utterance="").verdict is Verdict.UNDECIDED


def test_texts_of_many_numbers_are_undecided() -> None:
    rating = rate("It is 1.", ", ".join(map(str, range(500))), utterance="")
    assert "more than 300 numbers" in rating.explanation


def test_only_responses_are_rated() -> None:
    rater = Rules()
    assert rater(Rubric("coherence", "", "Hello", expected="Hello")) is None
    rating = rater(Rubric("bot_response_rating", "", "It is so.", expected="It is so."))
    assert rating is not None
    assert rating.verdict is Verdict.PASS


def test_the_rater_holds_nothing_open() -> None:
    asyncio.run(Rules().close())


def test_the_projects_embeddings_take_the_place_of_letters(tmp_path: Path) -> None:
    (tmp_path / "vectors_of_mine.py").write_text("def embed(texts):\n    return [(1.0, 0.0) for _ in texts]\n")
    rater = bind_rules(RulesRater(adapter="rules", embed="vectors_of_mine:embed"), root=tmp_path)
    rating = rater(Rubric("bot_response_rating", "", "Sure, the shop sells tea.", expected="The store sells tea."))
    assert isinstance(rating, Rating)
    assert rating.score == 5.0
    assert isinstance(bind_rules(RulesRater(adapter="rules"), root=tmp_path), Rules)


@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=20))
def test_any_two_texts_get_a_rating_that_fits_its_score(expected: str, actual: str, utterance: str) -> None:
    rating = rate(expected, actual, utterance=utterance)
    assert (rating.score is None) == (rating.verdict is Verdict.UNDECIDED)
    assert bool(rating.rule) == (rating.score is not None)
    if rating.score is not None:
        assert 0 <= rating.score <= 5 + 1e-9
        assert (rating.score >= 3) == (rating.verdict is Verdict.PASS)
    assert rating.explanation


@given(st.sampled_from(PAIRS), st.sampled_from(PAIRS))
def test_any_two_realistic_texts_get_a_rating(one: Pair, other: Pair) -> None:
    assert rate(one.expected, other.actual, utterance=one.utterance).explanation


def test_a_likeness_below_the_threshold_decides_nothing() -> None:
    expected, actual = "The order ships on Tuesday.", "Good news: the order ships on Tuesday."
    rubric = Rubric("bot_response_rating", "", actual, expected)
    assert Rules()(rubric).verdict is Verdict.PASS
    rating = Rules()(replace(rubric, threshold=5.0))
    assert (rating.verdict, rating.score) == (Verdict.UNDECIDED, None)
    assert rating.explanation.startswith("below the threshold of 5; every word")
