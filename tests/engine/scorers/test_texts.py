from __future__ import annotations

import pytest

from engine.builders import exchange
from evalmeta import limits
from evalmeta.engine.scorers.registry import score
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import TestResult, Verdict

ANSWER = "The capital of France is Paris."


def judge(name: str, expected: str = "", answer: str = ANSWER, **terms: object) -> TestResult:
    result = score(Expectation(name, expected, f"{name} x", terms=terms), exchange(GeneratedData(answer)))  # type: ignore[arg-type]
    assert isinstance(result, TestResult)
    return result


@pytest.mark.parametrize(
    ("name", "expected", "passed"),
    [
        ("contains", "Paris", True),
        ("contains", "paris", False),
        ("equals", ANSWER, True),
        ("equals", "Paris", False),
        ("starts_with", "The", True),
        ("starts_with", "capital", False),
        ("ends_with", "Paris.", True),
        ("ends_with", "Paris", False),
        ("not_contains", "London", True),
        ("not_contains", "Paris", False),
        ("matches", r"(?i)\bparis\b", True),
        ("matches", r"^Paris", False),
    ],
)
def test_a_text_check_judges_the_answer(name: str, expected: str, *, passed: bool) -> None:
    result = judge(name, expected)
    assert result.verdict is (Verdict.PASS if passed else Verdict.FAILURE)
    assert (result.score, result.actual, result.label) == (float(passed), ANSWER, f"{name} x")


@pytest.mark.parametrize(
    ("name", "expected", "explanation"),
    [
        ("contains", "paris", 'the answer does not contain "paris"; only upper and lower case differ'),
        ("equals", f"{ANSWER}\n", "; only blanks at the beginning or end differ"),
        ("equals", "The city", '"The city"; they differ from character 6 on'),
        ("equals", "The capital", "; they differ from character 12 on"),
        ("not_contains", "Paris", 'the answer contains "Paris"'),
        ("matches", "^Paris", "no part of the answer matches ^Paris"),
    ],
)
def test_a_failure_says_what_differs(name: str, expected: str, explanation: str) -> None:
    assert judge(name, expected).explanation.endswith(explanation)


def test_one_of_several_texts_is_enough() -> None:
    assert judge("contains_any", texts=["Rome", "Paris"]).verdict is Verdict.PASS
    failed = judge("contains_any", texts=["Rome", "Oslo"])
    assert (failed.verdict, failed.expected) == (Verdict.FAILURE, '"Rome" or "Oslo"')


def test_a_pattern_that_would_backtrack_for_ever_is_judged() -> None:
    assert judge("matches", "(a+)+$", "a" * 50_000 + "b").verdict is Verdict.FAILURE


def test_an_answer_too_long_to_search_is_undecided() -> None:
    result = judge("matches", "a", "a" * (limits.MAX_SEARCHED_CHARS + 1))
    assert (result.verdict, "at most 100,000 are searched" in result.explanation) == (Verdict.UNDECIDED, True)


def test_a_pattern_that_is_not_valid_is_an_error() -> None:
    result = judge("matches", "(a")
    assert (result.verdict, result.error) == (Verdict.ERROR, "'(a' is not a valid regular expression: unclosed group")


FRENCH = "L\u2019\u00c9tat dit\u00a0: \u201cpas \u2013 du tout\u201d\n\n  et  re\u0301sume\u0301."


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("contains", "L'\u00c9tat"),
        ("contains", 'dit : "pas - du tout"'),
        ("ends_with", "et r\u00e9sum\u00e9."),
        ("starts_with", "L'E\u0301tat  dit"),
        ("equals", 'L\'\u00c9tat dit : "pas - du tout" et r\u00e9sum\u00e9.'),
    ],
)
def test_typographic_signs_and_white_space_do_not_matter_unless_the_check_is_exact(name: str, expected: str) -> None:
    assert judge(name, expected, FRENCH).verdict is Verdict.PASS
    exact = judge(name, expected, FRENCH, exact=True)
    assert (exact.verdict, exact.actual) == (Verdict.FAILURE, FRENCH)
    assert exact.explanation.endswith(
        "only quotes, dashes, white space or the encoding of letters differ (exact: true)"
    )
    assert judge("contains_any", "", FRENCH, texts=["L'\u00c9tat"]).verdict is Verdict.PASS
    assert judge("contains_any", "", FRENCH, texts=["L'\u00c9tat"], exact=True).verdict is Verdict.FAILURE


@pytest.mark.parametrize(
    ("unwanted", "answer"),
    [
        ("as an AI", "AS AN AI, I cannot."),
        ("I can't help", "Sorry, I can\u2019t\u00a0help."),
        ("CAF\u00c9", "Go to the cafe\u0301."),
        ("stra\u00dfe", "HAUPTSTRASSE 1"),
        ("e-mail", "Send an e\u2011mail"),
        ("as an AI", "As an\n  AI"),
    ],
)
def test_an_unwanted_text_is_found_however_it_is_written_unless_the_check_is_exact(unwanted: str, answer: str) -> None:
    assert judge("not_contains", unwanted, answer).verdict is Verdict.FAILURE
    assert judge("not_contains", unwanted, answer, exact=True).verdict is Verdict.PASS


def test_an_unwanted_text_in_another_case_says_so() -> None:
    assert judge("not_contains", "paris").explanation == 'the answer contains "paris" in other upper and lower case'
