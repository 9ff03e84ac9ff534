from __future__ import annotations

import pytest

from engine.builders import exchange
from evalmeta.engine.scorers.actions import plain_topic, topic_scorer
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import TestResult, Verdict


def judge(expected: str | None, topic: str | None) -> TestResult:
    return topic_scorer()(Expectation("topic_assertion", expected), exchange(GeneratedData("", topic)))


def test_the_expected_topic_passes() -> None:
    result = judge(" Orders\n", "Orders")
    assert (result.verdict, result.score, result.expected, result.actual) == (Verdict.PASS, 1.0, "Orders", "Orders")


@pytest.mark.parametrize("topic", ["orders", "Orders_2", ""])
def test_another_topic_fails(topic: str) -> None:
    assert judge("Orders", topic).verdict is Verdict.FAILURE


def test_a_topic_that_the_agent_does_not_report_is_undecided() -> None:
    result = judge("Orders", None)
    assert (result.verdict, result.explanation) == (Verdict.UNDECIDED, "the agent does not report its topic")


def test_an_expectation_can_have_its_own_rule() -> None:
    part = Expectation("topic_sequence_match", "Ord", terms={"match": "contains"})
    assert topic_scorer("exact")(part, exchange(GeneratedData("", "Orders"))).verdict is Verdict.PASS


def test_a_promoted_topic_means_its_own_name() -> None:
    promoted = "p_16jPl000000GwEX_Order_Status_16j8eeef13560aa"
    assert plain_topic(promoted) == "Order_Status"
    assert judge("Order_Status", promoted).verdict is Verdict.PASS
    assert judge(promoted, "Order_Status").verdict is Verdict.PASS


@pytest.mark.parametrize("name", ["p_Orders", "p_16jX_Orders", "Orders_16j8eeef13560aa"])
def test_other_names_mean_themselves(name: str) -> None:
    assert plain_topic(name) == name


@pytest.mark.parametrize("expected", [None, "", "  "])
def test_without_an_expected_topic_nothing_is_decided(expected: str | None) -> None:
    result = judge(expected, "Orders")
    assert (result.verdict, result.score, result.actual) == (Verdict.UNDECIDED, None, "Orders")
    assert "expectedValue" in result.explanation


PROMOTED = "p_16jPl000000GwEX_Order_Status_16j8eeef13560aa"


@pytest.mark.parametrize(
    ("expected", "topic", "passed"),
    [("Order", "Order_Status", True), ("Status", PROMOTED, True), ("16j", PROMOTED, False), ("order", "Orders", False)],
)
def test_contains_accepts_a_part_of_the_name(expected: str, topic: str, *, passed: bool) -> None:
    result = topic_scorer("contains")(Expectation("topic_assertion", expected), exchange(GeneratedData("", topic)))
    assert result.verdict is (Verdict.PASS if passed else Verdict.FAILURE)
    assert passed or result.explanation.startswith(f"expected a topic that contains {expected}, got ")


def test_without_aliases_a_promoted_topic_has_its_long_name_only() -> None:
    scorer, made = topic_scorer(aliases=False), exchange(GeneratedData("", PROMOTED))
    assert scorer(Expectation("topic_assertion", f"{PROMOTED} "), made).verdict is Verdict.PASS
    assert scorer(Expectation("topic_assertion", "Order_Status"), made).verdict is Verdict.FAILURE
