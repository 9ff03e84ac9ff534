from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from engine.builders import criterion, exchange
from evalmeta.engine.interfaces import Rating
from evalmeta.engine.scorers import make_scorers, score
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import Action, GeneratedData, Passage, Tokens
from evalmeta.model.run import TestResult, Verdict
from evalmeta.model.run_options import Scoring
from evalmeta.rules_rater.rater import Rules

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evalmeta.engine.interfaces import Rubric, Scorer

ANSWERED = GeneratedData("x" * 50, actions=(), latency_ms=1.0)


def always_yes(_rubric: Rubric) -> Rating:
    return Rating(5.0, Verdict.PASS, "fine", "judge")


def judge(
    expectation: Expectation, generated: GeneratedData, scorers: Mapping[str, Scorer] | None = None
) -> TestResult:
    found = score(expectation, exchange(generated), scorers=scorers or make_scorers(Scoring(), always_yes))
    if isinstance(found, TestResult):
        return found

    async def awaited() -> TestResult:
        return await found

    return asyncio.run(awaited())


def reads(name: str, operator: str, actual: str, expected: str) -> Expectation:
    return criterion(name, operator, f"$.generatedData.{actual}", expected)


CHECKS = [
    Expectation("not_contains", "secret"),
    Expectation("equals", ""),
    Expectation("matches", r"^(?:[^#]*)$"),
    Expectation("action_sequence_match", "[]"),
    Expectation("action_sequence_match", "['A']", terms={"match": "subset"}),
    Expectation("output_latency_milliseconds", "500"),
    Expectation("tokens", "500"),
    Expectation("json", terms={"path": "$.generatedData.actionsSequence", "operator": "equals", "expected": "[]"}),
    Expectation("rubric", terms={"guidelines": ["The answer names no competitor."]}),
    Expectation("response/llm_judged/safety/rating"),
    Expectation("response/llm_judged/guideline_adherence/rating", terms={"guidelines": ["Is polite."]}),
    Expectation("conciseness"),
    Expectation("bot_response_rating", "The agent says nothing"),
    reads("string_comparison", "equals", "actionsSequence", "[]"),
    reads("string_comparison", "equals", "outcome", ""),
    reads("numeric_comparison", "less_than", "actionsSequence.length()", "3"),
]


@pytest.mark.parametrize("blank", ["", " ", "\n\t \u00a0", "\u200b\ufeff", "\u3164"])
@pytest.mark.parametrize("actions", [(), None])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.name} {check.expected_value}")
def test_an_agent_that_does_nothing_passes_no_check(
    check: Expectation, actions: tuple[Action, ...] | None, blank: str
) -> None:
    nothing = GeneratedData(blank, actions=actions, latency_ms=1.0, tokens=Tokens(1, 1))
    found = judge(check, nothing)
    assert found.verdict is not Verdict.PASS
    assert (found.verdict, found.score) == (Verdict.UNDECIDED, None) or found.verdict is Verdict.FAILURE


def test_the_reason_names_the_way_out() -> None:
    found = judge(CHECKS[0], GeneratedData("", actions=()))
    assert (found.verdict, found.score, found.expected) == (Verdict.UNDECIDED, None, 'an answer without "secret"')
    assert found.explanation.startswith(
        "the agent returned an empty answer and took no action, so nothing can be judged"
    )
    assert "empty: true" in found.explanation


@pytest.mark.parametrize(
    "something", [ANSWERED, GeneratedData("", actions=(Action("Open"),)), GeneratedData(".", actions=())]
)
def test_a_text_or_an_action_is_something(something: GeneratedData) -> None:
    assert judge(Expectation("not_contains", "secret"), something).verdict is Verdict.PASS


def test_a_case_can_say_that_an_empty_answer_is_valid() -> None:
    check = Expectation("not_contains", "secret", terms={"empty": True})
    assert judge(check, GeneratedData("")).verdict is Verdict.PASS
    none = Expectation("action_sequence_match", "[]", terms={"empty": True})
    assert judge(none, GeneratedData("", actions=())).verdict is Verdict.PASS


def test_a_failure_stays_a_failure() -> None:
    assert judge(Expectation("contains", "Paris"), GeneratedData("")).verdict is Verdict.FAILURE
    assert judge(Expectation("output_latency_milliseconds", "5"), GeneratedData("", latency_ms=9.0)).verdict is (
        Verdict.FAILURE
    )


@pytest.mark.parametrize(
    "check",
    [
        Expectation("topic_sequence_match", "Orders"),
        reads("string_comparison", "equals", "topic", "Orders"),
        Expectation("json", terms={"path": "$.generatedData.topic", "operator": "equals", "expected": "Orders"}),
        Expectation("retrieval/ground_truth/document_recall", terms={"uris": ["a"], "threshold": 1.0}),
    ],
)
def test_the_topic_and_the_passages_count_without_an_answer(check: Expectation) -> None:
    found = judge(check, GeneratedData("", topic="Orders", actions=(), retrieved=(Passage("a", "text"),)))
    assert found.verdict is Verdict.PASS


@pytest.mark.parametrize(
    "check", [check for check in CHECKS if "comparison" in check.name or check.name[:6] == "action"]
)
def test_the_profile_of_the_testing_center_grades_as_orgs_do(check: Expectation) -> None:
    scorers = make_scorers(Scoring(profile="testing-center"), Rules())
    assert judge(check, GeneratedData("", actions=()), scorers).verdict is Verdict.PASS
    assert judge(CHECKS[0], GeneratedData("", actions=()), scorers).verdict is Verdict.UNDECIDED


def test_metrics_of_adk_keep_its_rules() -> None:
    calls = Expectation("tool_trajectory_avg_score", terms={"calls": [], "threshold": 1.0})
    assert judge(calls, GeneratedData("", actions=())).verdict is Verdict.PASS
    safety = Expectation("safety_v1", terms={"threshold": 1.0})
    assert judge(safety, GeneratedData("", actions=())).verdict is Verdict.PASS


def test_a_function_of_the_project_that_accepts_silence_is_undecided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "silent_checks.py").write_text("def is_short(answer):\n    return len(answer) < 9\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    check = Expectation("function", terms={"function": "silent_checks:is_short"})
    assert judge(check, GeneratedData("")).verdict is Verdict.UNDECIDED
    assert judge(check, GeneratedData("short")).verdict is Verdict.PASS
