from __future__ import annotations

import pytest

from engine.builders import exchange
from evalmeta.engine.scorers import score
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import GeneratedData, Tokens
from evalmeta.model.run import TestResult, Verdict

ALL = GeneratedData("", actions=(), latency_ms=1_234.5, tokens=Tokens(1_200_000, 34))


def judge(name: str, generated: GeneratedData) -> TestResult:
    result = score(Expectation(name, label="L"), exchange(generated))
    assert isinstance(result, TestResult)
    return result


def test_the_calls_of_an_agent_that_does_not_report_them_are_unknown() -> None:
    result = judge("tool_call_count_v1", GeneratedData("Sent."))
    assert (result.score, result.explanation) == (None, "the agent did not report it")


@pytest.mark.parametrize(
    ("name", "number", "actual", "unit"),
    [
        ("agent/total_token_count", 1_200_034, "1200034", "tokens"),
        ("agent/input_token_count", 1_200_000, "1200000", "tokens"),
        ("agent/output_token_count", 34, "34", "tokens"),
        ("agent/latency_seconds", 1.2345, "1.234", "s"),
        ("token_usage_v1", 1_200_034, "1200034", "tokens"),
        ("tool_call_count_v1", 0, "0", "calls"),
        ("invocation_duration_v1", 1.2345, "1.234", "s"),
    ],
)
def test_a_number_is_reported_and_not_judged(name: str, number: float, actual: str, unit: str) -> None:
    result = judge(name, ALL)
    assert (result.is_measured, result.score, result.actual) == (True, number, actual)
    assert result.explanation == f"{actual} {unit}; reported, not judged"
    assert result.label == "L"


@pytest.mark.parametrize(
    ("name", "generated"),
    [
        ("agent/total_token_count", GeneratedData("")),
        ("agent/total_token_count", GeneratedData("", tokens=Tokens(1))),
        ("agent/input_token_count", GeneratedData("", tokens=Tokens(output=1))),
        ("agent/output_token_count", GeneratedData("")),
        ("agent/latency_seconds", GeneratedData("")),
    ],
)
def test_an_unreported_number_has_no_score(name: str, generated: GeneratedData) -> None:
    result = judge(name, generated)
    assert (result.verdict, result.score, result.explanation) == (
        Verdict.UNDECIDED,
        None,
        "the agent did not report it",
    )
