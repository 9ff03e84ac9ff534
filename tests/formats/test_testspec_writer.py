from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from evalmeta.formats.testspec import read_testspec
from evalmeta.formats.testspec_writer import write_testspec
from evalmeta.model.definition import Definition, Expectation, HistoryMessage, Inputs, Parameter, TestCase
from evalmeta.model.registry import TESTING_DEFINITION
from evalmeta.xmlio.definitions import read_definition, write_definition
from evalmeta.xmlio.reader import read_xml
from examples import at_most
from formats.specs import SPEC, STUDIO_SPEC, held_by_specs, kinds
from strategies import definitions


def of_case(*expectations: Expectation, number: int | None = None, inputs: Inputs | None = None) -> Definition:
    return Definition("n", "s", test_cases=(TestCase(inputs or Inputs("u"), expectations, number),))


@settings(max_examples=at_most(125))
@given(kinds.flatmap(held_by_specs))
def test_a_spec_that_became_a_definition_comes_back_as_it_was(definition: Definition) -> None:
    written = write_testspec(definition)
    read = read_testspec(written.content, label="t.yaml")
    again = read_definition(read_xml(write_definition(read), label="t"))

    assert (written.losses, read, again) == ((), definition, definition)
    assert write_testspec(again).content == written.content


@settings(max_examples=at_most(125))
@given(definitions())
def test_what_is_not_lost_is_kept(definition: Definition) -> None:
    written = write_testspec(definition)
    read = read_testspec(written.content, label="t.yaml")

    assert (read.name, len(read.test_cases)) == (definition.name, len(definition.test_cases))
    if not written.losses:
        assert write_testspec(read) == written


@pytest.mark.parametrize("spec", [SPEC, STUDIO_SPEC.replace("AGENT", "PROMPT")])
def test_what_is_written_reads_to_the_same(spec: str) -> None:
    definition = read_testspec(spec.encode(), label="t.yaml")
    written = write_testspec(definition)

    assert written.losses == ()
    assert read_testspec(written.content, label="t.yaml") == definition


def test_a_spec_is_written_for_people() -> None:
    text = write_testspec(read_testspec(STUDIO_SPEC.encode(), label="t.yaml")).content.decode()

    assert text == (
        "name: Desk_Studio\n"
        "subjectType: AGENT\n"
        "subjectName: Desk\n"
        "testCases:\n"
        "  - inputs:\n"
        "      - utterance: Where is it?\n"
        "      - utterance: And now?\n"
        "        conversationHistory:\n"
        "          - role: user\n"
        "            message: Hi\n"
        "            index: 0\n"
        "    scorers:\n"
        "      - name: topic_sequence_match\n"
        "        expected: Orders\n"
        "      - name: coherence\n"
        "  - inputs:\n"
        "      - promptInput:\n"
        '          - referenceName: "Input:Case"\n'
        '            value: "500"\n'
        "    scorers:\n"
        "      - name: response_match\n"
        "        expected: Yes.\n"
    )


@pytest.mark.parametrize(
    ("definition", "loss"),
    [
        (of_case(number=9), "test case 9: the number 9; the test case gets the number 1 from its position"),
        (of_case(Expectation("coherence", label="L")), "test case 1: the label 'L' of 'coherence'"),
        (of_case(Expectation("coherence", "x")), "test case 1: the expectedValue of 'coherence', which needs none"),
        (
            of_case(Expectation("string_comparison", "x")),
            "test case 1: the expectedValue of 'string_comparison'; its parameters are kept",
        ),
        (
            of_case(Expectation("topic_assertion", "x")),
            "test case 1: the name 'topic_assertion'; it is written as 'topic_sequence_match', which means the same",
        ),
        (
            of_case(Expectation("topic_sequence_match", "x"), Expectation("topic_sequence_match", "y")),
            "test case 1: the expectation 'topic_sequence_match', of which a test case of a spec has one",
        ),
        (
            of_case(Expectation("action_sequence_match", "x")),
            "test case 1: the actions 'x', which are not a valid list",
        ),
        (of_case(Expectation("other")), "test case 1: the expectation 'other', for which the format has no key"),
        (
            of_case(Expectation("coherence", parameters=(Parameter("a", "b"),))),
            "test case 1: the expectation 'coherence': only comparisons have parameters",
        ),
        (
            of_case(Expectation("coherence"), Expectation("topic_sequence_match", "x")),
            "test case 1: the order of the expectations; they are written as custom, topic, actions, outcome, metrics",
        ),
        (
            of_case(inputs=Inputs("u", conversation_history=(HistoryMessage(message="m"),))),
            "test case 1: the missing role of a message of the history; it is written as an empty text",
        ),
        (
            replace(of_case(Expectation("Tone", scorer_type="Custom"), number=1), type=TESTING_DEFINITION),
            "test case 1: the type of the custom scorer 'Tone'; its name is kept",
        ),
        (
            Definition("n", "s", type=TESTING_DEFINITION),
            "definition: the type; without test cases the spec is read as an AiEvaluationDefinition",
        ),
    ],
)
def test_every_loss_is_named(definition: Definition, loss: str) -> None:
    assert [str(each) for each in write_testspec(definition).losses] == [loss]
