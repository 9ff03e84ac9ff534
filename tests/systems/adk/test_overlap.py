from __future__ import annotations

import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer
from rouge_score.rouge_scorer import RougeScorer

from engine.builders import exchange
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import TestResult, Verdict
from evalmeta.systems.adk.overlap import overlap, score_response_match, stem

PARTS = (
    "Order",
    "orders",
    "ordering",
    "ship",
    "shipped",
    "SHIPPING",
    "the",
    "a",
    "flies",
    "22",
    "C",
    "naturally",
    "yes",
)
JOINTS = (" ", ", ", "-", "'", "\n", ". ", "_", "", "\t", "  ")


@cache
def peer() -> RougeScorer:
    return RougeScorer(["rouge1"], use_stemmer=True)


def assert_same_as_the_peer(reference: str, answer: str, tokens: str = "unicode") -> None:
    theirs = peer().score(reference, answer)["rouge1"]
    expected = (theirs.precision, theirs.recall, theirs.fmeasure)
    assert overlap(reference, answer, tokens=tokens) == pytest.approx(expected, rel=0, abs=1e-9)


def judge(reference: str | None, answer: str, **terms: object) -> TestResult:
    expectation = Expectation("response_match_score", reference, terms={"threshold": 0.8, **terms})
    return score_response_match(expectation, exchange(GeneratedData(answer)))


@pytest.mark.parametrize("pairs", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_pairs_of_texts_score_as_rouge_score_says(pairs: int) -> None:
    draw = random.Random(2004)  # noqa: S311 - the same texts every time

    def text() -> str:
        words = ("".join(draw.choices("abdeginorstyz", k=draw.randint(1, 9))) for _ in range(draw.randint(0, 12)))
        return "".join(draw.choice((word, draw.choice(PARTS))) + draw.choice(JOINTS) for word in words)

    for _ in range(pairs):
        assert_same_as_the_peer(text(), text())


@given(st.text(st.characters(max_codepoint=127)), st.text(st.characters(max_codepoint=127)))
def test_texts_in_ascii_score_as_rouge_score_says(reference: str, answer: str) -> None:
    assert_same_as_the_peer(reference, answer)


@given(st.text(), st.text())
def test_ascii_words_of_any_texts_score_as_rouge_score_says(reference: str, answer: str) -> None:
    assert_same_as_the_peer(reference, answer, "ascii")


@given(st.text(), st.text(), st.sampled_from(["unicode", "ascii", "typescript"]))
def test_a_score_is_a_share_and_the_same_either_way(reference: str, answer: str, tokens: str) -> None:
    there, back = overlap(reference, answer, tokens=tokens), overlap(answer, reference, tokens=tokens)
    assert 0 <= there.score <= 1
    assert (there.precision, there.recall) == (back.recall, back.precision)


@pytest.mark.parametrize(
    ("reference", "answer", "score"),
    [
        ("The weather in London", "The weather in London is sunny, 22°C.", 2 / 3),
        ("", "anything", 0.0),
        ("the the the", "the", 0.5),
        ("今日は晴れ", "今日は雨", 6 / 9),
        ("서울 날씨", "서울 날짜", 3 / 4),
        ("ที่นี่", "ที่นั่น", 2 / 5),
        ("Über Größe", "über größe", 1.0),
        ("\uff46\uff55\uff4c\uff4c width", "full width", 1.0),
        ("e\u0301tude", "étude", 1.0),
        ("مرحبا بالعالم", "مرحبا", 2 / 3),
        ("привет, мир", "мир!", 2 / 3),
        ("naïves", "naïve", 0.0),
    ],
)
def test_words_of_all_scripts_count(reference: str, answer: str, score: float) -> None:
    assert overlap(reference, answer).score == pytest.approx(score)


@pytest.mark.parametrize(
    ("reference", "answer", "score"),
    [
        ("the the cat", "the cat", 1.0),
        ("orders", "order", 0.0),
        ("snake_case", "snake case", 0.0),
        ("  ", "x", 0.0),
        ("déjà vu", "d j vu", 1.0),
    ],
)
def test_the_typescript_way_counts_each_word_once_as_it_is(reference: str, answer: str, score: float) -> None:
    assert overlap(reference, answer, tokens="typescript").score == score


def test_long_runs_of_combining_marks_are_fast() -> None:
    marks = "\u0301" * 400_000 + "\u0316" * 400_000
    assert overlap(f"a{marks} order", "order").recall == 0.5


@pytest.mark.parametrize(
    ("parts", "whole"), [("e\u0301", "\xe9"), ("\uff76\uff9e", "\u30ac"), ("\u1100\u1161", "\uac00")]
)
def test_a_letter_keeps_its_parts_wherever_a_long_text_is_cut(parts: str, whole: str) -> None:
    for before in range(995, 1005):
        assert overlap("x" * before + parts, "x" * before + whole).score == 1


def test_a_threshold_that_is_reached_passes_and_belongs_to_a_mean() -> None:
    result = judge("Your order has shipped", "Your orders have shipped")
    assert (result.verdict, result.score, result.threshold) == (Verdict.FAILURE, 0.75, 0.8)
    assert result.explanation == "ROUGE-1 is 0.750: precision 0.750, recall 0.750; missing: has"
    assert judge("Your order", "your Orders!").verdict is Verdict.PASS
    assert judge("a b c d", "a b c x", threshold=0.75).verdict is Verdict.PASS


def test_without_a_threshold_the_score_is_measured() -> None:
    result = judge("Shipped.", "shipped", threshold=None)
    assert (result.is_measured, result.score, result.threshold) == (True, 1.0, None)


def test_only_some_missing_words_are_shown() -> None:
    reference = " ".join(f"w{number}" for number in range(30)) + " " + "x" * 1_000
    explanation = judge(reference, "no").explanation
    assert "w9 and 21 more" in explanation
    assert len(explanation) < 200


def test_without_a_reference_nothing_is_decided() -> None:
    result = judge(None, "anything")
    assert (result.verdict, result.score, result.threshold) == (Verdict.UNDECIDED, None, None)
    assert result.explanation == "the turn does not say which answer is expected"


def test_a_missing_reference_counts_as_0_where_the_terms_say_so() -> None:
    result = judge(None, "anything", missing="zero")
    assert (result.verdict, result.score) == (Verdict.FAILURE, 0.0)
    assert "no expected answer" in result.explanation


@pytest.mark.parametrize("tokens", ["latin", 3, None])
def test_words_that_nobody_knows_are_an_error(tokens: object) -> None:
    result = judge("a", "a", tokens=tokens)
    assert result.verdict is Verdict.ERROR
    assert "unicode, ascii, typescript" in result.explanation


ENDINGS = (
    "", "al", "alism", "aliti", "alize", "alli", "ance", "ation", "ational", "bli", "ed", "eed", "eli", "ement",
    "ence", "ful", "fulli", "fulness", "ible", "icate", "ied", "ies", "ing", "ion", "iviti", "ization", "ll", "logi",
    "ly", "ness", "ousli", "s", "sses", "tional", "y", "yy", "e",
)  # fmt: skip


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("ties", "tie"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("hopping", "hop"),
        ("filing", "file"),
        ("died", "die"),
        ("spied", "spi"),
        ("enjoy", "enjoy"),
        ("happy", "happi"),
        ("relational", "relat"),
        ("rationally", "ration"),
        ("geologi", "geolog"),
        ("adoption", "adopt"),
        ("probate", "probat"),
        ("controlling", "control"),
        ("skies", "sky"),
        ("is", "is"),
        ("2nd", "2nd"),
    ],
)
def test_words_have_their_known_stems(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize("words", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_random_words_have_the_stems_of_nltk(words: int) -> None:
    draw, theirs = random.Random(1980), PorterStemmer()  # noqa: S311 - the same words every time
    for _ in range(words):
        letters = "".join(draw.choices("aeiouyybcdlnstzwx9", k=draw.randint(1, 6)))
        word = letters + "".join(draw.choices(ENDINGS, k=draw.randint(0, 3)))
        assert stem(word) == theirs.stem(word), word


@given(st.text("aeiouybcdlst0", min_size=1, max_size=60))
def test_no_word_loses_all_of_its_letters(word: str) -> None:
    assert 0 < len(stem(word)) <= len(word) + 1
