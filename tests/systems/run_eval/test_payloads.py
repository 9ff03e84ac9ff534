from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import FormatError
from evalmeta.formats.definitions import definition_of
from evalmeta.formats.registry import recognise
from evalmeta.model.definition import (
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    Parameter,
    TestCase,
)
from evalmeta.systems.run_eval.payloads import read_payload, write_run_eval
from systems.run_eval.payloads import SESSION, STATE, evaluator, message, payload, read

if TYPE_CHECKING:
    from evalmeta.formats.diagnostics import Written
    from evalmeta.model.json_value import JsonObject


TOPIC = "{%s.response.planner_response.lastExecution.topic}"


def problems(*steps: JsonObject, is_raw: bool = False) -> list[str]:
    with pytest.raises(FormatError) as caught:
        read(*steps, is_raw=is_raw)
    return [f"{problem.code}: {problem.message}" for problem in caught.value.problems]


def test_a_test_is_a_case_and_a_message_a_turn() -> None:
    session = {**SESSION, "context_variables": {"CaseId": "5", "isVip": True}}
    [case] = read(session, message("Hi", "m1"), message("Where?")).evaluation.cases

    assert (case.number, case.label, [turn.utterance for turn in case.turns]) == (1, "t", ["Hi", "Where?"])
    assert case.context_variables == (ContextVariable("CaseId", "5"), ContextVariable("isVip", "true"))


def test_context_variables_may_be_a_list() -> None:
    session = {**SESSION, "context_variables": [{"name": "CaseId", "value": "5"}]}
    [case] = read(session, message("Hi")).evaluation.cases
    assert case.context_variables == (ContextVariable("CaseId", "5"),)


def test_an_evaluator_belongs_to_the_turn_that_it_reads() -> None:
    first = evaluator("string_assertion", id="first", actual="{m1.response}", expected="a")
    state = evaluator("planner_topic_assertion", id="state", actual=TOPIC % "gs", expected="Orders")
    last = evaluator("string_assertion", id="last", actual="$.generatedData.outcome", expected="b")
    document = read(SESSION, message("Hi", "m1"), STATE, message("Where?"), last, first, state)

    [case] = document.evaluation.cases
    assert [[expectation.label for expectation in turn.expectations] for turn in case.turns] == [
        ["first", "state"],
        ["last"],
    ]


@pytest.mark.parametrize(
    ("other", "plain"),
    [
        ({"type": "agent.send_message", "id": "sm", "sessionId": "x", "text": "Hi"}, "Hi"),
        ({"type": "agent.send_message", "id": "sm", "userMessage": "Hi"}, "Hi"),
    ],
)
def test_spellings_that_sf_corrects_are_read(other: JsonObject, plain: str) -> None:
    [case] = read(SESSION, other).evaluation.cases
    assert case.turns[0].utterance == plain
    assert problems(SESSION, other, is_raw=True) == ["json-missing: a step needs 'utterance'"]


def test_the_short_form_of_evaluators_is_read() -> None:
    short: JsonObject = {
        "type": "evaluator",
        "evaluator_type": "planner_topic_assertion",
        "field": "gs.planner_state.topic",
    }
    [case] = read(
        SESSION, message("Hi"), STATE, {**short, "expectedValue": "Orders", "comparator": "Equals"}
    ).evaluation.cases
    [found] = case.turns[0].expectations
    assert (found.name, found.expected_value, found.label) == ("topic_sequence_match", "Orders", "eval_0")


def test_short_references_are_literals_in_what_sf_did_not_normalise() -> None:
    steps = SESSION, message("Hi"), evaluator("string_assertion", expected="a")
    [case] = read(*steps, is_raw=True).evaluation.cases
    [found] = case.turns[0].expectations
    assert [(parameter.value, parameter.is_reference) for parameter in found.parameters][1] == ("{sm.response}", False)


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ({"type": "agent.tell", "id": "x"}, "run-eval-type: 'agent.tell' is not a type of step that evalmeta knows"),
        (evaluator("planner_topic"), "run-eval-type: 'evaluator.planner_topic' is not a known evaluator"),
        (message("again"), "run-eval-double: two steps of the test have the id 'sm'"),
        ({**SESSION, "id": "x"}, "run-eval-session: a test has two sessions; evalmeta runs a test in one"),
        (
            evaluator("string_assertion", operator="is", expected="a"),
            "run-eval-operator: 'is' is not an operator that evalmeta knows",
        ),
        (
            evaluator("string_assertion", actual="$.outputs[7].response", expected="a"),
            "run-eval-reference: it reads output 7; the outputs of the test have the numbers 0 to 1",
        ),
        (
            evaluator("string_assertion", actual="{m9.response}", expected="a"),
            "run-eval-reference: it reads the step 'm9', which does not exist; known: cs, sm",
        ),
        (evaluator("string_assertion"), "json-missing: a step needs 'expected'"),
        ({"type": "agent.get_state"}, "json-missing: a step needs 'id'"),
    ],
)
def test_a_wrong_step_is_reported(step: JsonObject, problem: str) -> None:
    assert problems(SESSION, message("Hi"), step) == [problem]


@pytest.mark.parametrize(
    ("kind", "hint"), [("string_asertion", "Did you mean 'string_assertion'?"), ("foo", "Known: ")]
)
def test_only_a_similar_evaluator_is_suggested(kind: str, hint: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(SESSION, message("Hi"), evaluator(kind))
    assert caught.value.problems[0].hint.startswith(hint)


def test_two_tests_of_one_id_are_told() -> None:
    one = {"id": "t", "steps": [SESSION, message("Hi")]}
    data = json.dumps({"tests": [one, one]}).encode()
    notes = read_payload(data, label="p.json", name="p").document.notes
    assert [note.message for note in notes] == ["two tests of the payload have the id 't'"]


def test_problems_have_places() -> None:
    data = b'{"tests": [\n {"id": "t", "steps": [\n  {"type": "agent.send_message", "id": "m"}\n ]}]}'
    with pytest.raises(FormatError, match=r"^p\.json:3:3: a step needs 'utterance'$"):
        read_payload(data, label="p.json", name="p")


@pytest.mark.parametrize("data", [b'{"tests": []}', b'{"tests": [{"id": "t"}]}', payload(SESSION), b"[]", b"{}"])
def test_a_payload_without_messages_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        read_payload(data, label="p.json", name="p")


def test_what_evalmeta_ignores_is_told() -> None:
    session: JsonObject = {**SESSION, "state": {}}
    plan: JsonObject = {"type": "agent.get_plan_v2", "id": "plan", "plan_id": "1"}
    notes = read(session, message("Hi"), plan, {**STATE, "depth": 3}).notes
    assert [note.message for note in notes] == [
        "evalmeta's agents have no planner state; it is ignored",
        "evalmeta has no step 'agent.get_plan_v2'; it is ignored",
        "a step has no key 'depth'; it is ignored",
    ]


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (payload(SESSION), "run-eval"),
        (payload(SESSION)[:-9], "run-eval"),
        (payload(SESSION)[:-1] + b', "subjectName": "Desk"}', "run-eval"),
        (b'{"prompts": ["x"], "tests": [{"vars": {}, "assert": []}]}', "promptfoo"),
        (b'{"tests": []}', None),
    ],
)
def test_a_payload_is_recognised_by_its_steps(data: bytes, found: str | None) -> None:
    assert recognise(data) == found


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
