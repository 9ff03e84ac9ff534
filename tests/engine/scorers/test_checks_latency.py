from __future__ import annotations

import pytest

from engine.builders import exchange
from evalmeta.engine.scorers.checks import latency_scorer, score_first_token
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import TestResult, Verdict


def judge(expected: str | None, latency_ms: float | None) -> TestResult:
    expectation = Expectation("output_latency_milliseconds", expected)
    return latency_scorer()(expectation, exchange(GeneratedData("", latency_ms=latency_ms)))


def test_without_a_threshold_a_latency_is_only_measured() -> None:
    result = judge(None, 1500.4)
    assert (result.verdict, result.is_measured, result.score) == (Verdict.UNDECIDED, True, 1500.4)
    assert result.explanation == "1500 ms; reported, not judged"


@pytest.mark.parametrize(("latency", "verdict"), [(100.0, Verdict.PASS), (100.1, Verdict.FAILURE)])
def test_a_threshold_decides(latency: float, verdict: Verdict) -> None:
    result = judge("100", latency)
    assert (result.verdict, result.expected) == (verdict, "100")
    assert "threshold of 100 ms" in result.explanation


def test_a_threshold_that_is_not_a_number_is_an_error() -> None:
    assert judge("fast", 1.0).verdict is Verdict.ERROR


def test_a_latency_that_nobody_measured_is_undecided() -> None:
    assert judge("100", None).verdict is Verdict.UNDECIDED
    assert not judge("100", None).is_measured
    assert judge(None, None).is_measured


@pytest.mark.parametrize("expected", [None, "100", "fast"])
def test_a_latency_that_is_not_judged_is_measured(expected: str | None) -> None:
    expectation = Expectation("output_latency_milliseconds", expected)
    result = latency_scorer(judges=False)(expectation, exchange(GeneratedData("", latency_ms=250.0)))
    assert (result.verdict, result.score, result.actual) == (Verdict.UNDECIDED, 250.0, "250")
    assert result.explanation == "250 ms; reported, not judged"


def test_a_threshold_of_a_fraction_is_reached_exactly() -> None:
    assert judge("0.1", 0.1).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("first_token_ms", "verdict", "words"),
    [
        (100.0, Verdict.PASS, "100 ms until the first token, within the threshold of 100 ms"),
        (101.0, Verdict.FAILURE, "101 ms until the first token, over the threshold of 100 ms"),
        (None, Verdict.UNDECIDED, "not streamed"),
    ],
)
def test_the_time_until_the_first_token_has_a_maximum(
    first_token_ms: float | None, verdict: Verdict, words: str
) -> None:
    given = exchange(GeneratedData("Yes.", latency_ms=1.0, first_token_ms=first_token_ms))
    result = score_first_token(Expectation("first_token_ms", "100"), given)
    assert result.verdict is verdict
    assert words in result.explanation
