from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalmeta.errors import FormatError
from evalmeta.formats.registry import recognise
from evalmeta.formats.testing_center_csv import read_testing_center_csv, write_testing_center_csv
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
from evalmeta.model.registry import TESTING_DEFINITION
from evalmeta.xmlio.definitions import read_definition, write_definition
from evalmeta.xmlio.reader import read_xml
from examples import at_most
from strategies import definitions, xml_texts

TABLE = """\
Conversation History,Utterance,Expected Topic,Expected Actions,Expected Response,Context Variable CaseId
,Where is it?,Orders,"['Find', 'Ask']","On its way, soon",500
"[{""role"": ""user"", ""message"": ""Hi""}, {""role"": ""agent"", ""message"": ""Yes?"",
""topic"": ""T"", ""index"": 3}]","Two
lines",,[],,

,Refund,,"A, B",,
"""

_cells = xml_texts.filter(bool)


def read(data: str | bytes) -> Definition:
    content = data if isinstance(data, bytes) else data.encode()
    return read_testing_center_csv(content, label="t.csv", name="N", subject_name="S")


def problems(data: str | bytes) -> list[str]:
    with pytest.raises(FormatError) as caught:
        read(data)
    return [f"{problem.location} {problem.message} {problem.hint}".strip() for problem in caught.value.problems]


def of_case(*expectations: Expectation, number: int | None = None, inputs: Inputs | None = None) -> Definition:
    return Definition("n", "s", test_cases=(TestCase(inputs or Inputs("u"), expectations, number),))


def test_a_table_is_read_whole() -> None:
    history = (HistoryMessage("user", "Hi", None, 0), HistoryMessage("agent", "Yes?", "T", 3))
    assert read(TABLE).test_cases == (
        TestCase(
            Inputs("Where is it?", (ContextVariable("CaseId", "500"),)),
            (
                Expectation("topic_sequence_match", "Orders"),
                Expectation("action_sequence_match", "['Find', 'Ask']"),
                Expectation("bot_response_rating", "On its way, soon"),
            ),
            1,
        ),
        TestCase(Inputs("Two\nlines", (), history), (Expectation("action_sequence_match", "[]"),), 2),
        TestCase(Inputs("Refund"), (Expectation("action_sequence_match", "['A', 'B']"),), 3),
    )


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_what_spreadsheets_write_is_read(delimiter: str, newline: str) -> None:
    table = f"\ufeffEXPECTED  subagent{delimiter}utterance{newline}Orders{delimiter}Hi{newline}".encode()

    assert recognise(table) == "csv"
    assert read(table).test_cases == (TestCase(Inputs("Hi"), (Expectation("topic_sequence_match", "Orders"),), 1),)


@pytest.mark.parametrize("data", [b"", b"name: x\n", b"<a/>", b"\xff", b"a,b\n"])
def test_other_files_are_no_tables(data: bytes) -> None:
    assert recognise(data) != "csv"


@st.composite
def held_by_tables(draw: st.DrawFn) -> Definition:
    """Draws a definition that a table can hold wholly."""
    names = draw(st.lists(st.sampled_from(["CaseId", "$Context.Id", "é"]), unique=True))
    cases = []
    for number in range(1, draw(st.integers(0, 3)) + 1):
        # A first case with all variables settles the order of the columns.
        chosen = [name for name in names if number == 1 or draw(st.booleans())]
        history = draw(st.lists(st.tuples(xml_texts, xml_texts, st.none() | xml_texts, st.integers(0, 3)), max_size=2))
        values = [
            ("topic_sequence_match", draw(_cells)),
            ("action_sequence_match", draw(st.sampled_from(["[]", "['A']", " [ 'A',\n\"B\" ]"]))),
            ("bot_response_rating", draw(_cells)),
        ]
        inputs = Inputs(
            draw(_cells),
            tuple(ContextVariable(name, draw(_cells)) for name in chosen),
            tuple(HistoryMessage(*each) for each in history),
        )
        expectations = tuple(Expectation(*value) for value in values if draw(st.booleans()))
        cases.append(TestCase(inputs, expectations, number))
    return Definition("N", "S", test_cases=tuple(cases))


@settings(max_examples=at_most(125))
@given(held_by_tables())
def test_a_table_that_became_a_definition_comes_back_as_it_was(definition: Definition) -> None:
    written = write_testing_center_csv(definition)
    again = read_definition(read_xml(write_definition(read(written.content)), label="t"))

    assert (written.losses, again) == ((), definition)
    assert write_testing_center_csv(again) == written


@settings(max_examples=at_most(125))
@given(definitions())
def test_what_is_not_lost_is_kept(definition: Definition) -> None:
    written = write_testing_center_csv(definition)

    assert recognise(written.content) == "csv"
    if not written.losses:
        assert write_testing_center_csv(read(written.content)) == written


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ("", ["t.csv:1 the file is empty Its first line names the columns."]),
        pytest.param("Utterance\n" + "a\n" * 200_000, ["t.csv:200001 more than 200,000 cells"], marks=pytest.mark.slow),
        (",,\n,\n", ["t.csv:1 the file is empty Its first line names the columns."]),
        ("\n\n", ["t.csv:1 the file is empty Its first line names the columns."]),
        (
            'Utterance;Conversation History\na;"[{""role"": ""user"", ""message"": ""\\ud800""}]"\n',
            ["t.csv:2 history has the character U+D800, which XML cannot hold"],
        ),
        (b"Utterance\n\xff", ["t.csv:2 the file is not UTF-8 Save it as CSV UTF-8."]),
        (b"x" * 5_000_001, ["t.csv the file is larger than 5,000,000 bytes"]),
        ('Utterance\n"a"b\n', ["t.csv:2 this is not valid CSV: ',' expected after '\"'"]),
        ("Expected Topic\nx\n", ["t.csv:1 the column Utterance is missing"]),
        (
            "Utterance,Expected Topics\nx,y\n",
            ["t.csv:1 column 2 has the unknown title 'Expected Topics' Did you mean 'Expected Topic'?"],
        ),
        ("Utterance,Expected Topic,Expected Subagent\n", ["t.csv:1 column 3, 'Expected Subagent', is repeated"]),
        ("Utterance\nx,y\n", ["t.csv:2 the row has 2 cells for 1 columns"]),
        ("Utterance,Expected Topic\n\n,y\n", ["t.csv:3 the row has no utterance"]),
        ("Utterance\na\x01\n", ["t.csv:2 utterance has the character U+0001, which XML cannot hold"]),
        (
            "Utterance,Expected Actions\na,[A]\n",
            ["t.csv:2 the actions are not a valid list Write ['First_Action', 'Second_Action'], or [] for none."],
        ),
        *(
            (
                f'Utterance\tConversation History\n"a\n"\t{history}\n',
                [
                    (
                        "t.csv:2 the conversation history is not a valid JSON list of messages"
                        ' Write [{"role": "user", "message": "Hi"}, {"role": "agent", "message": "Hello"}].'
                    )
                ],
            )
            for history in ("Hi", "{}", "[1]", "[{'role': 1}]", "[" * 9_000)
        ),
        *(
            (
                f"Utterance\tConversation History\na\t{history}\n",
                [
                    (
                        "t.csv:2 the conversation history is not a valid JSON list of messages"
                        ' Write [{"role": "user", "message": "Hi"}, {"role": "agent", "message": "Hello"}].'
                    )
                ],
            )
            for history in (
                '"[{""role"": ""user""}]"',
                '"[{""role"": ""user"", ""message"": 1}]"',
                '"[{""role"": ""user"", ""message"": ""m"", ""x"": 1}]"',
                '"[{""role"": ""user"", ""message"": ""m"", ""index"": true}]"',
            )
        ),
    ],
)
def test_what_does_not_fit_is_told_with_its_line(table: str | bytes, found: list[str]) -> None:
    assert problems(table) == found


def test_columns_are_those_of_the_template() -> None:
    assert write_testing_center_csv(read(TABLE)).content.decode().splitlines()[0] == TABLE.splitlines()[0]


@pytest.mark.parametrize(
    ("definition", "loss"),
    [
        (of_case(number=9), "test case 9: the number 9; the test case gets the number 1 from its position"),
        (
            of_case(Expectation("coherence")),
            "test case 1: the expectation 'coherence'; a row has one topic, action list and response with a value",
        ),
        (
            of_case(Expectation("topic_sequence_match", "x", label="L")),
            "test case 1: the label 'L' of 'topic_sequence_match'",
        ),
        (
            of_case(Expectation("topic_sequence_match", "x", parameters=(Parameter("a", "b"),))),
            "test case 1: the parameters of 'topic_sequence_match'",
        ),
        (
            of_case(Expectation("topic_sequence_match", "x", scorer_type="Custom")),
            "test case 1: the type of the custom scorer 'topic_sequence_match'",
        ),
        (
            of_case(Expectation("output_validation", "x")),
            "test case 1: the name 'output_validation'; it reads as 'bot_response_rating', which means the same",
        ),
        (
            of_case(Expectation("bot_response_rating", "x"), Expectation("topic_sequence_match", "x")),
            "test case 1: the order of the expectations; they come as topic, actions, response",
        ),
        (of_case(inputs=Inputs("")), "test case 1: an empty utterance, which no row may have"),
        (
            of_case(inputs=Inputs("u", prompt_inputs=(PromptInput("a", "b"),))),
            "test case 1: the inputs of a prompt template",
        ),
        (
            of_case(inputs=Inputs("u", conversation_history=(HistoryMessage("user"),))),
            "test case 1: that a message of the history has no role or no message; it is written with an empty one",
        ),
        (
            of_case(inputs=Inputs("u", (ContextVariable("a  b", "1"),))),
            "test case 1: the variable 'a  b', which has no column, or whose name the case repeats",
        ),
        (
            of_case(inputs=Inputs("u", (ContextVariable("a", ""),))),
            "test case 1: the variable 'a', whose value is empty",
        ),
        (
            replace(
                of_case(inputs=Inputs("u", (ContextVariable("a", "1"), ContextVariable("b", "1")))),
                test_cases=(
                    TestCase(Inputs("u", (ContextVariable("a", "1"), ContextVariable("b", "1")))),
                    TestCase(Inputs("u", (ContextVariable("b", "1"), ContextVariable("a", "1")))),
                ),
            ),
            "test case 2: the order of the variables; they come in the order of the columns",
        ),
        (
            Definition("n", "s", type=TESTING_DEFINITION),
            "definition: the type; the table is read as an AiEvaluationDefinition",
        ),
    ],
)
def test_every_loss_is_named(definition: Definition, loss: str) -> None:
    assert [str(each) for each in write_testing_center_csv(definition).losses] == [loss]
