from __future__ import annotations

import json

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
from evalmeta.systems.databricks.reader import read_databricks
from evalmeta.systems.databricks.writer import write_databricks
from examples import at_most
from strategies import definitions, xml_texts

spoken = xml_texts.filter(str.strip) | st.sampled_from(['{"query": "q"}', '{"messages": []}', "[1]", "3"])
roles = st.sampled_from(["user", "agent", "system", "tool"])


@st.composite
def held(draw: st.DrawFn) -> Definition:
    """Draws a definition whose every part has a place in a row."""
    cases = []
    for number in range(1, draw(st.integers(1, 3)) + 1):
        said = draw(st.lists(st.tuples(roles, xml_texts), max_size=3))
        history = tuple(HistoryMessage(role, text, None, place) for place, (role, text) in enumerate(said))
        answer = draw(st.none() | xml_texts)
        expected = () if answer is None else (Expectation("bot_response_rating", answer),)
        cases.append(TestCase(Inputs(draw(spoken), (), history), expected, number))
    return Definition(draw(spoken), draw(spoken), test_cases=tuple(cases))


def back(content: bytes, definition: Definition) -> Definition:
    document = read_databricks(content, label="set.jsonl", name=definition.name)
    return definition_of(document, subject_name=definition.subject_name)[0]


@settings(max_examples=at_most(125))
@given(held())
def test_what_rows_hold_is_read_to_the_same_definition(definition: Definition) -> None:
    written = write_databricks(definition)
    assert [loss.where for loss in written.losses] == ["definition"]
    assert back(written.content, definition) == definition


@settings(max_examples=at_most(125))
@given(definitions())
def test_whatever_is_written_can_be_read_or_is_named_as_lost(definition: Definition) -> None:
    written = write_databricks(definition)
    if not written.content:
        assert "an evaluation set without rows cannot be read" in written.losses[-1].what
        return
    kept = back(written.content, definition)
    if len(written.losses) == 1:
        assert [case.inputs for case in kept.test_cases] == [case.inputs for case in definition.test_cases]


def test_every_loss_is_named_with_its_place() -> None:
    history = (HistoryMessage("User", None, "T", 7),)
    inputs = Inputs("Hi", (ContextVariable("Tier", "gold"),), history, (PromptInput("P", "v"),))
    expectations = (
        Expectation("topic_sequence_match", "Orders"),
        Expectation("output_validation", "Yes", "L", (Parameter("a", "b"),), "Custom"),
        Expectation("bot_response_rating", "No"),
        Expectation("coherence"),
    )
    definition = Definition("n", "s", "PROMPT", "v2", "d", (TestCase(Inputs("  ")), TestCase(inputs, expectations, 5)))

    written = write_databricks(definition)

    assert [json.loads(line) for line in written.content.splitlines()] == [
        {
            "request_id": "1",
            "request": {"messages": [{"role": "user", "content": ""}, {"role": "user", "content": "Hi"}]},
            "expected_response": "Yes",
        }
    ]
    assert list(map(str, written.losses)) == [
        "definition: the subject's name 's'; rows do not name their agent",
        "definition: the subject's version 'v2'",
        "definition: the subject's type PROMPT",
        "definition: the description",
        "test case 1: all of it; a row needs something that is asked",
        "test case 5: the context variable 'Tier'",
        "test case 5: the input 'P' of a prompt",
        "test case 5: the role 'User' of a message; it is written as the user's",
        "test case 5: that a message of the history has no text; it is written with an empty one",
        "test case 5: the topic 'T' of a message",
        "test case 5: the index 7 of a message; by its place it gets 0",
        "test case 5: the expectation 'topic_sequence_match'; a row expects one response only",
        "test case 5: the name 'output_validation'; it reads as 'bot_response_rating', which means the same",
        "test case 5: the label 'L' of 'output_validation'",
        "test case 5: the parameters of 'output_validation'",
        "test case 5: the type of the custom scorer 'output_validation'",
        "test case 5: the expectation 'bot_response_rating'; a row expects one response only",
        "test case 5: the expectation 'coherence'; a row expects one response only",
        "test case 5: the number 5; the test case gets the number 1 from its position",
    ]
