from __future__ import annotations

import pytest

from evalmeta.model.definition import Expectation
from systems.run_eval.payloads import read_expectation

LAST = "{gs.response.planner_response.lastExecution.%s}"


def compared(name: str, **keys: object) -> list[tuple[str, bool | None]]:
    found = read_expectation(name, **keys)
    assert found.name in {"string_comparison", "numeric_comparison"}
    return [(parameter.value, parameter.is_reference) for parameter in found.parameters]


@pytest.mark.parametrize(("operator", "match"), [("equals", "exact"), ("contains", "contains")])
def test_a_topic_assertion_expects_a_topic(operator: str, match: str) -> None:
    found = read_expectation("planner_topic_assertion", actual=LAST % "topic", expected="Orders", operator=operator)
    assert found == Expectation("topic_sequence_match", "Orders", "check", terms={"match": match})


@pytest.mark.parametrize(
    ("name", "operator", "match"),
    [
        ("planner_actions_assertion", "includes_items", "superset"),
        ("planner_actions_assertion", "equals", "exact"),
        ("list_assertion", "contains", "superset"),
    ],
)
def test_an_actions_assertion_expects_actions(name: str, operator: str, match: str) -> None:
    found = read_expectation(name, actual=LAST % "invokedActions", expected=["A", "B"], operator=operator)
    assert found == Expectation("action_sequence_match", "['A', 'B']", "check", terms={"match": match})


def test_a_rating_has_its_own_threshold() -> None:
    found = read_expectation("bot_response_rating", expected="Hello", threshold=4)
    assert found == Expectation("bot_response_rating", "Hello", "check", terms={"threshold": 4.0})


@pytest.mark.parametrize(
    ("actual", "reference"),
    [
        ("{sm.response}", "$.generatedData.outcome"),
        ("$.outputs[1].response", "$.generatedData.outcome"),
        ("{sm.response.messages[0].message}", "$.generatedData.outcome"),
        ("{cs.session_id}", "$.generatedData.sessionId"),
        (LAST % "message.message", "$.generatedData.outcome"),
        ("{gs.planner_state.topic}", "$.generatedData.topic"),
        ("$.outputs[?(@.id == 'gs')].response.planner_response.lastExecution.topic", "$.generatedData.topic"),
        (LAST % "invokedActions[0][0].function.name", "$.generatedData.invokedActions[0][0].function.name"),
        ("$.generatedData.topic", "$.generatedData.topic"),
    ],
)
def test_references_become_references_of_definitions(actual: str, reference: str) -> None:
    assert compared("string_assertion", actual=actual, expected="a") == [
        ("equals", False),
        (reference, True),
        ("a", False),
    ]


def test_numbers_and_literals_are_compared() -> None:
    assert compared("numeric_assertion", actual="3", expected=3, operator="LESS_THAN") == [
        ("less_than", False),
        ("3", False),
        ("3", False),
    ]


def test_a_latency_is_judged_as_latency() -> None:
    found = read_expectation("numeric_assertion", actual=LAST % "latency", operator="less_than_or_equal", expected=5000)
    assert found == Expectation("output_latency_milliseconds", "5000", "check")


def test_a_json_assertion_reads_a_path_of_the_answer() -> None:
    found = read_expectation("json_assertion", json_path="$.order.id", expected=7)
    assert found.terms == {"path": "$.order.id", "operator": "equals", "expected": 7}


@pytest.mark.parametrize(
    ("name", "keys", "reason"),
    [
        ("text_alignment", {}, "it compares embeddings"),
        ("hallucination_detection", {}, "Salesforce does not document it"),
        ("task_resolution", {}, "only Salesforce's service has this evaluator"),
        ("json_assertion", {"expected": "a", "json_schema": {}}, "evalmeta does not check JSON schemas"),
        ("bot_response_rating", {"actual": LAST % "topic", "expected": "a"}, "it rates only the answer"),
        ("string_assertion", {"actual": "{gs.response.agentVariables.x}", "expected": "a"}, "do not report"),
        ("string_assertion", {"actual": "He said {sm.response}", "expected": "a"}, "it reads only a whole reference"),
        ("string_assertion", {"expected": "$.outputs[1].response"}, "it compares only with a value"),
        ("string_assertion", {"actual": LAST % "latency", "expected": "5"}, "only with less_than_or_equal"),
    ],
)
def test_what_evalmeta_cannot_judge_keeps_its_name_and_a_reason(
    name: str, keys: dict[str, object], reason: str
) -> None:
    found = read_expectation(name, **keys)
    assert found.name == f"evaluator.{name}"
    assert reason in str(found.terms["reason"])
