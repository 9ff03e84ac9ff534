from __future__ import annotations

import asyncio
from inspect import isawaitable
from typing import TYPE_CHECKING

import pytest

from engine.builders import exchange
from evalmeta import limits
from evalmeta.engine.project_code import functions_of
from evalmeta.engine.scorers import score
from evalmeta.engine.scorers.functions import check_function
from evalmeta.errors import SettingsError
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.run import TestResult, Verdict

if TYPE_CHECKING:
    from pathlib import Path


CODE = """
def polite(answer):
    return "please" in answer

async def polite_later(answer):
    return "please" in answer

def asserts(answer):
    assert answer == "no", "the answer is not no"
    return True

def everything(answer, *, utterance, actions, context, history, topic, generated):
    return utterance == "Where is it?" and actions == [{"name": "Find", "input": {}, "output": None}] and not history

def number(answer):
    return 7

def scored(answer):
    return {"passed": False, "score": 0.25, "reason": "too short"}

def nothing(answer):
    pass

def broken(answer):
    raise KeyError("x")

def two(answer, other):
    return True
"""
ANSWER = GeneratedData("Yes, please.", actions=(Action("Find"),))


@pytest.fixture
def root(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    (tmp_path / f"checks_{abs(hash(request.node.nodeid))}.py").write_text(CODE)
    return tmp_path


def judge(root: Path, function: str) -> TestResult:
    name = f"{next(root.glob('checks_*.py')).stem}:{function}"
    expectation = Expectation("function", label=f"function {function}", terms={"function": name})

    async def judged() -> TestResult:
        with functions_of(root):
            result = score(expectation, exchange(ANSWER))
            return await result if isawaitable(result) else result

    return asyncio.run(judged())


@pytest.mark.parametrize("function", ["polite", "polite_later", "everything"])
def test_a_function_that_returns_true_passes(root: Path, function: str) -> None:
    assert judge(root, function).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("function", "verdict", "explanation"),
    [
        ("asserts", Verdict.FAILURE, "the answer is not no"),
        ("scored", Verdict.FAILURE, "too short"),
        ("number", Verdict.UNDECIDED, "returned 7.0; reported, not judged"),
        ("nothing", Verdict.ERROR, "it returned nothing (None). Return True or False, a number, evalmeta.Check("),
        ("broken", Verdict.ERROR, "KeyError: 'x'"),
    ],
)
def test_what_a_function_returns_or_raises_is_the_result(
    root: Path, function: str, verdict: Verdict, explanation: str
) -> None:
    result = judge(root, function)
    assert (result.verdict, explanation in result.explanation) == (verdict, True)


def test_a_score_of_a_failing_function_is_kept(root: Path) -> None:
    assert judge(root, "scored").score == 0.25


@pytest.mark.parametrize(
    ("function", "message"),
    [("two", "cannot be called: missing a required argument: 'other'"), ("no_such", "has no 'no_such'")],
)
def test_a_function_that_cannot_be_called_is_found_before_the_run(root: Path, function: str, message: str) -> None:
    module = next(root.glob("checks_*.py")).stem
    with pytest.raises(SettingsError, match=message):
        check_function(f"{module}:{function}", root=root)


TEXT = "The capital of France is Paris."


def judge_text(name: str, expected: str = "", answer: str = TEXT, **terms: object) -> TestResult:
    result = score(Expectation(name, expected, f"{name} x", terms=terms), exchange(GeneratedData(answer)))  # type: ignore[arg-type]
    assert isinstance(result, TestResult)
    return result


@pytest.mark.parametrize(
    ("name", "expected", "passed"),
    [
        ("contains", "Paris", True),
        ("contains", "paris", False),
        ("equals", TEXT, True),
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
    result = judge_text(name, expected)
    assert result.verdict is (Verdict.PASS if passed else Verdict.FAILURE)
    assert (result.score, result.actual, result.label) == (float(passed), TEXT, f"{name} x")


@pytest.mark.parametrize(
    ("name", "expected", "explanation"),
    [
        ("contains", "paris", 'the answer does not contain "paris"; only upper and lower case differ'),
        ("equals", f"{TEXT}\n", "; only blanks at the beginning or end differ"),
        ("equals", "The city", '"The city"; they differ from character 6 on'),
        ("equals", "The capital", "; they differ from character 12 on"),
        ("not_contains", "Paris", 'the answer contains "Paris"'),
        ("matches", "^Paris", "no part of the answer matches ^Paris"),
    ],
)
def test_a_failure_says_what_differs(name: str, expected: str, explanation: str) -> None:
    assert judge_text(name, expected).explanation.endswith(explanation)


def test_one_of_several_texts_is_enough() -> None:
    assert judge_text("contains_any", texts=["Rome", "Paris"]).verdict is Verdict.PASS
    failed = judge_text("contains_any", texts=["Rome", "Oslo"])
    assert (failed.verdict, failed.expected) == (Verdict.FAILURE, '"Rome" or "Oslo"')


def test_a_pattern_that_would_backtrack_for_ever_is_judged() -> None:
    assert judge_text("matches", "(a+)+$", "a" * 50_000 + "b").verdict is Verdict.FAILURE


def test_an_answer_too_long_to_search_is_undecided() -> None:
    result = judge_text("matches", "a", "a" * (limits.MAX_SEARCHED_CHARS + 1))
    assert (result.verdict, "at most 100,000 are searched" in result.explanation) == (Verdict.UNDECIDED, True)


def test_a_pattern_that_is_not_valid_is_an_error() -> None:
    result = judge_text("matches", "(a")
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
    assert judge_text(name, expected, FRENCH).verdict is Verdict.PASS
    exact = judge_text(name, expected, FRENCH, exact=True)
    assert (exact.verdict, exact.actual) == (Verdict.FAILURE, FRENCH)
    assert exact.explanation.endswith(
        "only quotes, dashes, white space or the encoding of letters differ (exact: true)"
    )
    assert judge_text("contains_any", "", FRENCH, texts=["L'\u00c9tat"]).verdict is Verdict.PASS
    assert judge_text("contains_any", "", FRENCH, texts=["L'\u00c9tat"], exact=True).verdict is Verdict.FAILURE


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
    assert judge_text("not_contains", unwanted, answer).verdict is Verdict.FAILURE
    assert judge_text("not_contains", unwanted, answer, exact=True).verdict is Verdict.PASS


def test_an_unwanted_text_in_another_case_says_so() -> None:
    assert (
        judge_text("not_contains", "paris").explanation == 'the answer contains "paris" in other upper and lower case'
    )
