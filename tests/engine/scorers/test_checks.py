from __future__ import annotations

import asyncio
from inspect import isawaitable
from typing import TYPE_CHECKING

import pytest

from engine.builders import exchange
from evalmeta.engine.scorers.function_imports import check_function, functions_of
from evalmeta.engine.scorers.registry import score
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
        ("nothing", Verdict.ERROR, "it returned None. Return True or False, a number, or a mapping with passed,"),
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
