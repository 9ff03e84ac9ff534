from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from engine.builders import TOPIC, exchange
from evalmeta.engine.scorer import SCORERS, score
from evalmeta.model.definition import Expectation
from evalmeta.model.expectations import expectation_kind, known_names, scorer_names
from evalmeta.model.generated import GeneratedData
from evalmeta.model.run import TestResult, Verdict

if TYPE_CHECKING:
    from evalmeta.engine.scorer import Exchange

EXCHANGE = exchange(GeneratedData("Shipped.", "Orders"))


def broken_scorer(_expectation: Expectation, _exchange: Exchange) -> TestResult:
    raise ValueError("no such thing")


def nan_scorer(expectation: Expectation, _exchange: Exchange) -> TestResult:
    return TestResult(expectation.name, Verdict.PASS, score=float("nan"))


async def slow_scorer(expectation: Expectation, _exchange: Exchange) -> TestResult:
    await asyncio.sleep(0)
    return TestResult(expectation.name, Verdict.PASS)


async def slow_broken_scorer(_expectation: Expectation, _exchange: Exchange) -> TestResult:
    raise ValueError("no such thing")


def test_there_is_a_scorer_for_every_expectation() -> None:
    expected = {expectation_kind(name).name for name in known_names()}
    assert set(SCORERS) == {*expected, *scorer_names("AGENT"), *scorer_names("PROMPT")}


@pytest.mark.parametrize("name", known_names())
def test_every_name_is_judged_and_kept_as_it_is_spelt(name: str) -> None:
    result = score(Expectation(name, label="L"), EXCHANGE)
    assert isinstance(result, TestResult)
    assert (result.name, result.label) == (name, "L")
    assert result.explanation


def test_a_scorer_that_breaks_gives_an_error_with_the_reason() -> None:
    result = score(TOPIC, EXCHANGE, scorers={TOPIC.name: broken_scorer})
    assert result.verdict is Verdict.ERROR
    assert result.error == "the scorer broke: ValueError: no such thing"


def test_a_score_that_is_no_number_is_an_error_and_never_a_pass() -> None:
    assert score(TOPIC, EXCHANGE, scorers={TOPIC.name: nan_scorer}).verdict is Verdict.ERROR


def test_a_scorer_may_wait() -> None:
    async def judge() -> TestResult:
        return await score(TOPIC, EXCHANGE, scorers={TOPIC.name: slow_scorer})

    assert asyncio.run(judge()).verdict is Verdict.PASS


def test_a_scorer_that_breaks_while_it_waits_gives_an_error() -> None:
    async def judge() -> TestResult:
        return await score(TOPIC, EXCHANGE, scorers={TOPIC.name: slow_broken_scorer})

    assert asyncio.run(judge()).error == "the scorer broke: ValueError: no such thing"


def test_an_unknown_expectation_is_an_error_that_names_the_nearest() -> None:
    result = score(Expectation("topic_sequence_mach"), EXCHANGE)
    assert result.verdict is Verdict.ERROR
    assert "topic_sequence_match" in result.explanation


def test_a_scorer_of_the_orgs_own_is_undecided_and_named() -> None:
    result = score(Expectation("Courtesy", scorer_type="Custom"), EXCHANGE)
    assert (result.name, result.verdict) == ("Courtesy", Verdict.UNDECIDED)
    assert result.explanation == "'Courtesy' is a scorer of the org's own; nothing here can judge by it"
