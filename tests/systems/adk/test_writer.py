from __future__ import annotations

import json
from copy import deepcopy
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalmeta.formats.definitions import definition_of
from evalmeta.model.definition import (
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    Parameter,
    PromptInput,
    TestCase,
)
from evalmeta.model.expectations import render_actions
from evalmeta.model.session_state import expected_state
from evalmeta.systems.adk.reader import read_adk, read_adk_file
from evalmeta.systems.adk.writer import write_adk, write_adk_cases
from examples import at_most
from strategies import definitions, xml_texts
from systems.adk.adkfiles import FULL, LEGACY_PYTHON, MULTI_TURN, STATEFUL, eval_set

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject
    from evalmeta.systems.adk.cases import AdkCase

spoken = xml_texts.filter(bool)
answers = st.none() | xml_texts
actions = st.none() | st.lists(spoken.map(str.strip).filter(bool), max_size=3)
turns = st.tuples(spoken, answers, actions)
variables = st.dictionaries(xml_texts, xml_texts, max_size=2)
conversations = st.tuples(st.lists(turns, min_size=1, max_size=3), variables)


def expectations(answer: str | None, names: list[str] | None) -> tuple[Expectation, ...]:
    found = [] if names is None else [Expectation("action_sequence_match", render_actions(names))]
    return (*found, *([] if answer is None else [Expectation("bot_response_rating", answer)]))


@st.composite
def held_by_adk(draw: st.DrawFn) -> Definition:
    """Draws a definition whose every part has a place in an eval set."""
    cases: list[TestCase] = []
    for said, context in draw(st.lists(conversations, min_size=1, max_size=3)):
        history: list[tuple[str, str]] = []
        for utterance, answer, names in said:
            messages = tuple(HistoryMessage(role, text, None, place) for place, (role, text) in enumerate(history))
            known = tuple(ContextVariable(name, value) for name, value in context.items())
            inputs = Inputs(utterance, known, messages)
            cases.append(TestCase(inputs, expectations(answer, names), len(cases) + 1))
            if answer is None:
                break
            history += (("user", utterance), ("agent", answer))
    return Definition(draw(spoken), draw(spoken), test_cases=tuple(cases))


@settings(max_examples=at_most(125))
@given(held_by_adk(), st.sampled_from(["python", "typescript"]))
def test_a_definition_that_became_an_eval_set_comes_back_as_it_was(definition: Definition, dialect: str) -> None:
    written = write_adk(definition, dialect=dialect)  # type: ignore[arg-type]
    document = read_adk(written.content, label="t", name=definition.name)
    again, _ = definition_of(document)

    assert again == definition
    assert {loss.where for loss in written.losses} <= {"definition"}


@settings(max_examples=at_most(125))
@given(definitions())
def test_any_definition_is_written_as_json_with_its_questions(definition: Definition) -> None:
    found = json.loads(write_adk(definition).content)
    asked = [turn for case in found["eval_cases"] for turn in case["conversation"]]

    assert len(asked) >= len(definition.test_cases)
    assert len({case["eval_id"] for case in found["eval_cases"]}) == len(found["eval_cases"])


def test_python_has_snake_case_and_typescript_camel_case() -> None:
    definition = Definition(
        "Desk",
        "Agent",
        description="All of it",
        test_cases=(
            TestCase(
                Inputs("Hi", (ContextVariable("userName", "Ada"),)),
                (Expectation("action_sequence_match", "['sayHello']"), Expectation("bot_response_rating", "Hello")),
            ),
        ),
    )

    assert json.loads(write_adk(definition).content) == {
        "eval_set_id": "Desk",
        "name": "Desk",
        "description": "All of it",
        "eval_cases": [
            {
                "eval_id": "case-1",
                "conversation": [
                    {
                        "creation_timestamp": 0,
                        "user_content": {"role": "user", "parts": [{"text": "Hi"}]},
                        "final_response": {"role": "model", "parts": [{"text": "Hello"}]},
                        "intermediate_data": {
                            "tool_uses": [{"name": "sayHello", "args": {}}],
                            "intermediate_responses": [],
                        },
                    }
                ],
                "session_input": {"app_name": "Agent", "user_id": "user", "state": {"userName": "Ada"}},
            }
        ],
        "creation_timestamp": 0,
    }
    typescript = json.loads(write_adk(definition, dialect="typescript").content)
    assert {"evalSetId", "evalCases", "creationTimestamp"} <= typescript.keys()
    assert typescript["evalCases"][0]["sessionInput"]["state"] == {"userName": "Ada"}


FINAL = {**MULTI_TURN, "finalSessionState": {"userName": "Ada", "cart": {"itemIds": [7]}}}


@pytest.mark.parametrize("data", [FULL, eval_set(FINAL, STATEFUL), LEGACY_PYTHON])
@pytest.mark.parametrize("dialect", ["python", "typescript"])
def test_cases_of_a_file_are_written_again(data: bytes, dialect: str) -> None:
    cases = read_adk_file(data, label="a.test.json").cases
    written = write_adk_cases(cases, name="a", dialect=dialect)  # type: ignore[arg-type]
    again = read_adk_file(written, label="b.test.json").cases

    assert [told(each) for each in again] == [told(case) for case in cases]


def told(case: AdkCase) -> object:
    return (
        case.eval_id,
        case.session,
        case.final_state,
        [(turn.utterance, turn.reference, turn.calls) for turn in case.turns],
    )


def of_case(*expected: Expectation, inputs: Inputs | None = None, number: int | None = None) -> Definition:
    return Definition("n", "s", test_cases=(TestCase(inputs or Inputs("u"), expected, number),))


@pytest.mark.parametrize(
    ("definition", "losses"),
    [
        (of_case(number=9), ["test case 9: the number 9; the test case gets the number 1 from its position"]),
        (
            of_case(Expectation("topic_sequence_match", "x")),
            ["test case 1: the expectation 'topic_sequence_match', which ADK cannot express"],
        ),
        (
            of_case(Expectation("string_comparison", parameters=(Parameter("operator", "equals"),))),
            ["test case 1: the expectation 'string_comparison', which ADK cannot express"],
        ),
        (
            of_case(Expectation("output_validation", "x", label="L")),
            [
                "test case 1: the name 'output_validation'; 'bot_response_rating' means the same",
                "test case 1: the label 'L' of 'output_validation'",
            ],
        ),
        (
            of_case(
                inputs=Inputs(
                    "u", conversation_history=(HistoryMessage("user", "a"), HistoryMessage("agent", "b", "T"))
                )
            ),
            [
                "test case 1: the topic 'T' of the history",
                "test case 1: the agent's messages in the history; the user's messages are sent again",
            ],
        ),
        (
            of_case(inputs=Inputs("u", conversation_history=(HistoryMessage("user", "a"),))),
            ["test case 1: the history as such; its messages are sent as turns"],
        ),
        (
            of_case(inputs=Inputs("u", (ContextVariable("a", "1"), ContextVariable("a", "2")))),
            ["test case 1: all but the last context variable of the same name"],
        ),
        (
            of_case(inputs=Inputs("", prompt_inputs=(PromptInput("Input:Case", "5"),))),
            ["test case 1: the input 'Input:Case' of a prompt as such; it becomes a part of the question"],
        ),
        (
            of_case(Expectation("action_sequence_match", "['a']")),
            [
                (
                    "definition: the comparison without arguments, which needs this test_config.json:"
                    ' {"criteria":{"tool_trajectory_avg_score":{"threshold":1.0,"ignore_args":true}}}'
                )
            ],
        ),
        (
            Definition("n", "s", "PROMPT", "v2"),
            [
                "definition: the subject's version 'v2'",
                "definition: the subject's type PROMPT",
                "definition: the subject's name, which only cases have; an eval set without cases cannot be read",
            ],
        ),
    ],
)
def test_every_loss_is_named(definition: Definition, losses: list[str]) -> None:
    assert [str(loss) for loss in write_adk(definition).losses] == losses


def of_states(*states: Expectation, **said: Inputs) -> TestCase:
    return TestCase(said.get("inputs", Inputs("u")), states)


@pytest.mark.parametrize(
    ("expected", "final", "lost"),
    [
        ({"a": 1, "order.status": "sent", "$.order.id": 7}, {"a": 1, "order": {"status": "sent", "id": 7}}, []),
        ({"$['cart.total']": [1, {"x": None}], "order": {}}, {"cart.total": [1, {"x": None}], "order": {}}, []),
        ({"order": {"id": 7}, "order.status": "sent"}, {"order": {"id": 7, "status": "sent"}}, []),
        ({"a": {"at_least": 1}, "b": [{"any": True}], "c": 1}, {"c": 1}, ["a", "b"]),
        ({"a[0]": 1, "a.*": 2, "$": {"b": 1}}, {}, ["a[0]", "a.*", "$"]),
        ({"a": 1, "a.b": 2, "$.a": 3}, {"a": 1}, ["a.b", "$.a"]),
    ],
)
def test_expected_states_without_matchers_are_the_final_state(
    expected: JsonObject, final: JsonObject, lost: list[str]
) -> None:
    before = deepcopy(expected)
    states = [expected_state(path, value) for path, value in expected.items()]
    written = write_adk(Definition("n", "s", test_cases=(of_states(*states),)))

    [case] = json.loads(written.content)["eval_cases"]
    assert case.get("final_session_state", {}) == final
    losses = [f"the expectation {label_of(path, expected)!r}, which ADK cannot express" for path in lost]
    assert [loss.what for loss in written.losses] == losses
    assert expected == before


def label_of(path: str, expected: JsonObject) -> str | None:
    return expected_state(path, expected[path]).label


def test_only_the_state_after_the_last_turn_is_kept() -> None:
    first = TestCase(Inputs("a"), (Expectation("bot_response_rating", "A"), expected_state("step", 1)))
    said = (HistoryMessage("user", "a", None, 0), HistoryMessage("agent", "A", None, 1))
    last = of_states(expected_state("step", 2), inputs=Inputs("b", (), said))
    written = write_adk(Definition("n", "s", test_cases=(first, last)), dialect="typescript")

    [case] = json.loads(written.content)["evalCases"]
    assert (len(case["conversation"]), case["finalSessionState"]) == (2, {"step": 2})
    assert [str(loss) for loss in written.losses] == [
        "test case 1: the state that is expected; ADK has only that at the end of a case"
    ]
