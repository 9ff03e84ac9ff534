from __future__ import annotations

import pytest

from engine.builders import exchange
from evalmeta.engine.scorers.latency import score_latency
from evalmeta.model.definition import Expectation
from evalmeta.model.generated import GeneratedData
from evalmeta.model.run import TestResult, Verdict


def judge(expected: str | None, latency_ms: float | None) -> TestResult:
    expectation = Expectation("output_latency_milliseconds", expected)
    return score_latency(expectation, exchange(GeneratedData("", latency_ms=latency_ms)))


def test_without_a_threshold_a_latency_passes_and_says_so() -> None:
    result = judge(None, 1500.4)
    assert (result.verdict, result.score, result.actual) == (Verdict.PASS, 1500.4, "1500")
    assert result.explanation == "1500 ms, no threshold is set"


@pytest.mark.parametrize(("latency", "verdict"), [(100.0, Verdict.PASS), (100.1, Verdict.FAILURE)])
def test_a_threshold_decides(latency: float, verdict: Verdict) -> None:
    result = judge("100", latency)
    assert (result.verdict, result.expected) == (verdict, "100")
    assert "threshold of 100 ms" in result.explanation


def test_a_threshold_that_is_no_number_is_an_error() -> None:
    assert judge("fast", 1.0).verdict is Verdict.ERROR


def test_a_latency_that_nobody_measured_is_undecided() -> None:
    assert judge("100", None).verdict is Verdict.UNDECIDED
