from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalmeta.formats.definitions import definition_of
from evalmeta.model.definition import (
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    Parameter,
    TestCase,
)
from evalmeta.systems.run_eval.reader import read_payload
from evalmeta.systems.run_eval.writer import write_run_eval

if TYPE_CHECKING:
    from evalmeta.formats.diagnostics import Written

LAST = "$.outputs[2].response.planner_response.lastExecution"


def comparison(actual: str, label: str | None = None, *, expected: str = "7") -> Expectation:
    values = {"operator": "equals", "actual": actual, "expected": expected}
    parameters = (Parameter(name, value, is_reference=name == "actual") for name, value in values.items())
    return Expectation("string_comparison", label=label, parameters=tuple(parameters))


def write(*expectations: Expectation, inputs: Inputs | None = None) -> Written:
    case = TestCase(inputs or Inputs("Where?"), expectations, 1)
    return write_run_eval(Definition("Order_Desk", "Desk", test_cases=(case,)))


def steps(written: Written) -> list[dict[str, object]]:
    [test] = json.loads(written.content)["tests"]
    assert test["id"] == "Order_Desk_case_1"
    return list(test["steps"])


def losses(written: Written) -> list[str]:
    return [loss.what for loss in written.losses]


def test_a_test_case_is_a_session_with_its_messages() -> None:
    history = (HistoryMessage("user", "Hi", None, 0), HistoryMessage("agent", "Hello", "Orders", 1))
    written = write(inputs=Inputs("Where?", (ContextVariable("CaseId", "5"),), history))

    assert [(step["type"], step.get("utterance")) for step in steps(written)] == [
        ("agent.create_session", None),
        ("agent.send_message", "Hi"),
        ("agent.send_message", "Where?"),
    ]
    assert steps(written)[0]["context_variables"] == {"CaseId": "5"}
    assert losses(written) == ["the agent's answers in the history; run-eval asks the earlier questions again"]


def test_expectations_become_evaluators_and_ask_for_the_state() -> None:
    written = write(
        Expectation("topic_assertion", "Orders"),
        Expectation("bot_response_rating", "On its way"),
        Expectation("output_latency_milliseconds", "500"),
        comparison("$.generatedData.invokedActions[0][0].function.input.id"),
    )
    state, *evaluators = steps(written)[2:]

    assert state["type"] == "agent.get_state"
    assert [(str(evaluator["type"])[10:], evaluator["actual"], evaluator["expected"]) for evaluator in evaluators] == [
        ("planner_topic_assertion", f"{LAST}.topic", "Orders"),
        ("bot_response_rating", "$.outputs[1].response", "On its way"),
        ("numeric_assertion", f"{LAST}.latency", 500.0),
        ("string_assertion", f"{LAST}.invokedActions[0][0].function.input.id", "7"),
    ]
    assert losses(written) == []


def test_what_run_eval_cannot_hold_is_lost() -> None:
    written = write(
        Expectation("coherence"),
        Expectation("action_sequence_match", "[]"),
        Expectation("action_sequence_match", "['A']"),
        comparison("$.generatedData.tokens.input"),
        comparison("$.generatedData.outcome", "The right id"),
        comparison("$.generatedData.outcome", expected="$.generatedData.topic"),
    )
    assert losses(written) == [
        "the expectation 'coherence', for which run-eval has no evaluator",
        "an empty list of actions; run-eval cannot expect that no action is taken",
        "actions: Salesforce's run-eval has been seen to fail every planner_actions_assertion",
        "the string_comparison of '$.generatedData.tokens.input', which run-eval does not report",
        "the label 'The right id' of 'string_comparison'",
        (
            "the string_comparison with '$.generatedData.topic'; "
            "run-eval compares only with a value, not with another part of the answer"
        ),
    ]


def test_labels_are_the_ids_of_evaluators_if_they_can_be() -> None:
    labels = ("right-id", "right-id", "sm", "check_1", None)
    written = write(*(comparison("$.generatedData.outcome", label) for label in labels))
    assert [step["id"] for step in steps(written)[2:]] == ["right-id", "check_2", "check_3", "check_4", "check_5"]
    assert len(losses(written)) == 3


def test_a_definition_comes_back() -> None:
    expectations = (
        Expectation("topic_sequence_match", "Orders"),
        Expectation("action_sequence_match", "['A', 'B']"),
        Expectation("bot_response_rating", "On its way"),
        comparison("$.generatedData.outcome"),
    )
    document = read_payload(write(*expectations).content, label="p.json", name="Order_Desk").document
    definition, _ = definition_of(document, is_metadata=True)

    assert definition.subject_name == "Desk"
    [case] = definition.test_cases
    assert [
        (expectation.name, expectation.expected_value, expectation.parameters) for expectation in case.expectations
    ] == [(expectation.name, expectation.expected_value, expectation.parameters) for expectation in expectations]


def test_a_topic_that_only_contains_the_expected_one_becomes_a_comparison() -> None:
    data = write(Expectation("topic_sequence_match", "Orders")).content
    document = read_payload(data.replace(b'"equals"', b'"contains"'), label="p.json", name="p").document
    definition, _ = definition_of(document, subject_name="Desk")

    [found] = definition.test_cases[0].expectations
    assert [parameter.value for parameter in found.parameters] == ["contains", "$.generatedData.topic", "Orders"]
