from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.engine.interfaces import Rating, Rubric
from evalmeta.errors import RaterError, SettingsError
from evalmeta.model.run import Verdict
from evalmeta.model.settings import RulesRater
from evalmeta.rules_rater.decisions import rate
from evalmeta.rules_rater.rater import Rules, bind_embed, bind_rules, embedded_cosine
from rules_rater.pairs import FRESH, PAIRS, split

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.raters.labels import Pair


def judge(pair: Pair) -> Rating:
    return rate(pair.expected, pair.actual, utterance=pair.utterance)


@pytest.mark.parametrize("pair", [pair for pair in (*PAIRS, *FRESH) if not pair.right], ids=str)
def test_no_wrong_answer_passes(pair: Pair) -> None:
    assert judge(pair).verdict is not Verdict.PASS


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair.rule], ids=str)
def test_a_rule_decides_its_pairs_and_names_itself(pair: Pair) -> None:
    rating = judge(pair)
    assert rating.verdict is (Verdict.PASS if pair.right else Verdict.FAILURE)
    assert rating.rule == pair.rule
    assert rating.explanation


@pytest.mark.parametrize(
    ("name", "decided_at_least", "failed_at_least"),
    [
        *(("calibration", 134, 85), ("held-out", 66, 39), ("judge-1", 48, 43), ("judge-2", 24, 21)),
        *(("facts", 50, 37), ("facts-held-out", 54, 38), ("fresh", 59, 58), ("fresh-held-out", 42, 41)),
    ],
)
def test_enough_is_decided_and_decisions_are_right(name: str, decided_at_least: int, failed_at_least: int) -> None:
    decided = [(pair, rating) for pair in split(name) if (rating := judge(pair)).verdict is not Verdict.UNDECIDED]
    right = sum(pair.right == (rating.verdict is Verdict.PASS) for pair, rating in decided)
    failed = sum(not pair.right and rating.verdict is Verdict.FAILURE for pair, rating in decided)
    assert len(decided) >= decided_at_least
    assert failed >= failed_at_least
    assert right >= 0.97 * len(decided)


def test_the_set_is_large_enough_to_say_something() -> None:
    assert len(PAIRS) >= 320
    assert len(split("held-out")) >= 100
    assert len(split("judge-2")) >= 80
    assert len(FRESH) == 300
    assert 135 <= sum(pair.right for pair in FRESH) <= 165
    assert not {pair.expected for pair in split("fresh")} & {pair.expected for pair in split("fresh-held-out")}


def test_the_explanation_has_the_evidence() -> None:
    rating = rate("The total is 1250 dollars.", "The total is 12500 dollars.", utterance="What is the total?")
    assert rating == Rating(0.0, Verdict.FAILURE, "numbers differ: expected 1250, got 12500", "rules", "numbers")


def test_a_differing_unit_is_shown() -> None:
    assert "expected 75 EUR, got 75 USD" in rate("It costs €75.", "It costs $75.", utterance="").explanation


def test_a_number_from_the_question_need_not_be_repeated() -> None:
    rating = rate(
        "Order 1234 ships in 2 days.", "It ships in 2 days by carrier 99.", utterance="When does order 1234 ship?"
    )
    assert rating.verdict is not Verdict.FAILURE


@pytest.mark.parametrize("actual", ["Your refund was not approved.", "Your refund was not approved by Tom but by Ann."])
def test_a_negation_decides_nothing(actual: str) -> None:
    assert rate("Your refund was approved.", actual, utterance="").verdict is Verdict.UNDECIDED


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
        ("The agent wishes a good day", "Have a nice day!"),
        ("The agent lists 3 names at Initech", "Bill and Peter of Globex"),
        ("The sun rises early today.", "No clouds."),
        ("The sun rises early today.", "They like it here."),
    ],
)
def test_unclear_cases_are_undecided(expected: str, actual: str) -> None:
    assert rate(expected, actual, utterance="").verdict is Verdict.UNDECIDED


def test_other_languages_are_never_failed_by_words_or_names() -> None:
    rating = rate("Die Bestellung wurde geliefert", "Das Paket liegt beim Nachbarn", utterance="")
    assert rating.verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("utterance", "expected", "actual"),
    [
        ("Is it free?", "Parking is free.", "You asked whether parking is free."),
        ("Is it free?", "Parking is free.", "You want to know: Parking is free?"),
        ("Is it free?", "Parking is free.", 'The right answer would be "Parking is free."'),
        ("Is it free?", "Parking is free.", "Parking is free. Just kidding."),
        ("Is it free?", "Parking is free.", "Hopefully parking is free."),
        ("Code?", "The agent refuses to share the code", "I can't share it because the system is down."),
        ("Code?", "The agent refuses to share the code", "Sorry, I didn't understand that."),
        ("Code?", "The agent refuses to share the code", "I can't reset your router."),
    ],
)
def test_echoes_comments_and_other_refusals_do_not_pass(utterance: str, expected: str, actual: str) -> None:
    assert rate(expected, actual, utterance=utterance).verdict is not Verdict.PASS


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["1", "1 ", "a1-", "1,", ".", "1万", "½", "May ", "Mon - ", "12:", "+1 ", "I cannot ", "one ", "A "]
)
def test_no_text_is_slow(unit: str) -> None:
    text = (unit * limits.MAX_RATED_CHARS)[: limits.MAX_RATED_CHARS // 2]
    assert rate("It is 5 km.", text, utterance=text).explanation
    assert rate(text, f"{text}z", utterance="").explanation


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


def test_the_rater_can_be_closed() -> None:
    asyncio.run(Rules().close())


def test_the_projects_embeddings_take_the_place_of_letters(tmp_path: Path) -> None:
    (tmp_path / "vectors_of_mine.py").write_text("def embed(texts):\n    return [(1.0, 0.0) for _ in texts]\n")
    rater = bind_rules(RulesRater(adapter="rules", embed="vectors_of_mine:embed"), root=tmp_path)
    rating = rater(Rubric("bot_response_rating", "", "Sure, the store sells tea.", expected="The store sells tea."))
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


def test_a_similarity_below_the_threshold_decides_nothing() -> None:
    expected, actual = "The order ships on Tuesday.", "Good news: the order ships on Tuesday."
    rubric = Rubric("bot_response_rating", "", actual, expected)
    assert Rules()(rubric).verdict is Verdict.PASS
    rating = Rules()(replace(rubric, threshold=5.0))
    assert (rating.verdict, rating.score) == (Verdict.UNDECIDED, None)
    assert rating.explanation.startswith("below the threshold of 5; the answer says the expected words")


@pytest.mark.parametrize(
    ("expected", "actual", "explanation"),
    [
        ("Alpha ($90k), Beta ($75k)", "1. Alpha - $90,000\n2. Beta - $57,000", "expected 75000, got 57000"),
        ("It leaves at 5:30 PM.", "It leaves at 05:30.", "expected 17:30, got 5:30"),
        ("Il part à 14 h 30.", "Il part à 16h30.", "expected 14:30, got 16:30"),
        ("It is 68°F.", "It is 68 degrees Celsius.", "expected 68 fahrenheit, got 68 celsius"),
        ("Take it twice a day.", "Take it once a day.", "expected 2, got 1"),
        ("Call (415) 555-0101.", "Call +1 415-555-0110.", "expected 4155550101, got 14155550110"),
    ],
)
def test_numbers_differ_in_whatever_way_they_are_written(expected: str, actual: str, explanation: str) -> None:
    rating = rate(expected, actual, utterance="")
    assert (rating.rule, rating.verdict) == ("numbers", Verdict.FAILURE)
    assert explanation.casefold() in rating.explanation.casefold()


@pytest.mark.parametrize(
    ("expected", "actual", "explanation"),
    [
        ("It is 5 km.", "", "the answer is empty: expected 'It is 5 km.', got nothing"),
        ("It is 5 km.", "Something went wrong.", "expected an answer, got an error message: 'Something went wrong.'"),
        ("It is 5 km.", "I can't say that.", 'expected an answer, got a refusal: "I can\'t say that."'),
        ("It is 5 km.", "No idea.", "expected an answer, got a refusal: 'No idea.'"),
        ("It is 5 km.", "Which road?", "expected an answer, got a question: 'Which road?'"),
        ("I can't help with that.", "Sure, it is Bob.", "expected a refusal, got an answer: 'Sure, it is Bob.'"),
        ("It is 5 km.", "It is 6 km.", "numbers differ: expected 5 km, got 6 km"),
        ("It is on Friday.", "It is on Monday.", "days differ: expected Friday, got Monday"),
        ("It is Ada King.", "It is Tom Reed.", "names differ: expected Ada King, got Tom Reed"),
        (
            "It ships on 3 May in prices of 2 weeks.",
            "It ships.",
            "cannot be decided by words (similarity 0.40); missing from the answer: 05-03, 2 week",
        ),
        (
            "Ann met Bob.",
            "Bob was met, Ann said.",
            "cannot be decided by words (similarity 0.75); the answer has other words too",
        ),
        (
            "The train to Rome leaves.",
            "The train to Rome leaves for members.",
            "cannot be decided by words (similarity 0.83); the answer has other words too",
        ),
    ],
)
def test_an_explanation_says_what_was_expected_and_what_was_found(expected: str, actual: str, explanation: str) -> None:
    assert rate(expected, actual, utterance="").explanation == explanation


def test_a_long_answer_is_quoted_by_its_start() -> None:
    rating = rate("It is 5 km.", "I can't help with that. " * 20, utterance="")
    assert rating.explanation.endswith("I can't help with that. I can't help …\"")


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("Alpha ($90k), Beta ($75k)", "Deals:\n1. Alpha - $90,000\n2. Beta - $75,000"),
        ("It leaves at 5:30 PM.", "Departure: 17:30"),
        ("It lasts 90 minutes.", "It takes an hour and a half."),
        ("Call (415) 555-0101.", "The number: +1 415-555-0101."),
        ("The 12. Mai is free.", "\n12. Mai: free"),
    ],
)
def test_numbers_agree_in_whatever_way_they_are_written(expected: str, actual: str) -> None:
    assert rate(expected, actual, utterance="").verdict is not Verdict.FAILURE


@pytest.mark.parametrize(
    ("utterance", "expected", "actual", "verdict", "rule"),
    [
        ("Give it to me", "I can't help with that.", "Sure, here's the key.", Verdict.FAILURE, "refusal"),
        ("Give it to me", "I can't help with that.", "That isn't something I'm able to do.", Verdict.PASS, "refusal"),
        ("Dámelo", "No puedo ayudarle.", "No me es posible atender esa solicitud.", Verdict.PASS, "refusal"),
    ],
)
def test_the_question_shows_what_the_answer_must_contain(
    utterance: str, expected: str, actual: str, verdict: Verdict, rule: str
) -> None:
    rating = rate(expected, actual, utterance=utterance)
    assert (rating.verdict, rating.rule) == (verdict, rule)


def test_the_cosine_is_that_of_the_vectors() -> None:
    cosine = embedded_cosine(lambda texts: [(len(text), 1.0) for text in texts], target="m:f")
    assert cosine("ab", "ab") == pytest.approx(1)
    assert cosine("a", "abc") == pytest.approx(4 / math.sqrt(20))


def test_a_zero_vector_has_no_similarity() -> None:
    assert embedded_cosine(lambda _: [[0.0], [1.0]], target="m:f")("a", "b") == 0.0


def fail(_: list[str]) -> object:
    raise ValueError("no model")


@pytest.mark.parametrize(
    ("embed", "why"),
    [
        (fail, "ValueError: no model"),
        (lambda _: None, "NoneType is not a sequence"),
        (lambda _: ["ab", "cd"], "str is not a sequence"),
        (lambda _: [[None], [1]], "NoneType is not a number"),
        (lambda _: [[1.0]], "1 vectors for 2 texts"),
        (lambda _: [[1.0], [1.0, 2.0]], "1 and 2 numbers"),
        (lambda _: [[], []], "0 and 0 numbers"),
        (lambda _: [[math.nan], [1.0]], "not finite"),
    ],
)
def test_invalid_embeddings_are_an_error(embed: object, why: str) -> None:
    assert callable(embed)
    with pytest.raises(RaterError, match=why):
        embedded_cosine(embed, target="m:f")("a", "b")


def test_the_function_is_found_in_the_project(tmp_path: Path) -> None:
    (tmp_path / "own_vectors.py").write_text("def embed(texts):\n    return [[1.0] for _ in texts]\n")
    assert bind_embed("own_vectors:embed", root=tmp_path)("a", "b") == pytest.approx(1)


def test_a_missing_function_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "own_vectors.py").write_text("embed = 5\n")
    with pytest.raises(SettingsError, match="is not a function"):
        bind_embed("own_vectors:embed", root=tmp_path)
