from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from evalmeta import limits
from evalmeta.model.definition import Definition, Expectation, Inputs, Parameter, TestCase
from evalmeta.model.registry import EVALUATION_DEFINITION, NEWEST_API_VERSION
from evalmeta.validation import validator
from evalmeta.validation.rules import RulePolicy
from evalmeta.xmlio.definitions import parse_definition, write_definition
from evalmeta.xmlio.reader import read_xml
from evalmeta.xmlio.repetitions import read_repetitions

SAMPLES = sorted((Path(__file__).parents[2] / "metadata-samples").rglob("*.aiEvaluationDefinition*"))
CRITERION = (
    Parameter("operator", "equals"),
    Parameter("actual", "$.generatedData.outcome", is_reference=True),
    Parameter("expected", "Ä & <b>"),
)
TOPIC, ACTIONS = Expectation("topic_sequence_match", "Orders"), Expectation("action_sequence_match", "['A']")
NO_ACTIONS = Expectation("action_sequence_match", "[]")
CUSTOM = Expectation("string_comparison", label="The city", parameters=CRITERION)
CASES = (
    TestCase(Inputs("one"), (TOPIC, ACTIONS), 1),
    TestCase(Inputs("two"), (TOPIC, ACTIONS), 2),
    TestCase(Inputs("drei Ä"), (ACTIONS, TOPIC, TOPIC), 3),
    TestCase(Inputs('four < five & "six"'), (TOPIC, ACTIONS, CUSTOM), 4),
    TestCase(Inputs(" five "), (), 5),
    TestCase(Inputs("six"), (CUSTOM, TOPIC)),
    TestCase(Inputs("seven"), (TOPIC, ACTIONS)),
)
USUAL = write_definition(Definition("Orders_Test", "Order_Desk", description="Ä", test_cases=CASES))
SNIPPETS = (
    *("<!-- <testCase> -->", "<![CDATA[<expectation>]]>", "<?pi <testCase> ?>", "&amp;", "&#65;", "&#0;", "&lt;"),
    *("\r", "\x01", "\ufffe", "]]>", "text", "<", ">", "&", "\n", " ", " xmlns='other'", " a='b'", "<other/>"),
    *("<testCase>", "</testCase>", "<testCase/>", "<testCase >", "</testCase >", "<expectation>", "</expectation>"),
    *("<expectation/>", "<expectation><name>x</name></expectation>", "<expectation ><name>x</name></expectation>"),
    *("<inputs>", "</inputs>", "<inputs/>", "<utterance>", "</utterance>", "<utterance/>", "<name>", "</name>"),
    *("<name>Twice</name>", "<name >x</name>", "<number>1</number>", "<number>0000000002</number>", "<number/>"),
    *(
        "<number>+3</number>",
        "<number>9</number>",
        "<number>\u0663</number>",
        "<number>x</number>",
        "<parameter/>",
        "<label>x</label>",
    ),
    "<testCase><inputs><utterance>x</utterance></inputs></testCase>",
    "<subjectType>AGENT</subjectType>",
)


def slowly(data: bytes) -> Definition | None:
    """Return the definition of a file that fits its type, as a parse of the whole file has it."""
    document = read_xml(data, label="file")
    definition, problems = parse_definition(document, EVALUATION_DEFINITION)
    return None if problems else definition


def assert_same(data: bytes) -> bool:
    """Assert that what is read, if it is, is what the whole file has; return whether it was."""
    usual = read_repetitions(data, label="file")
    if usual is None:
        return False
    assert usual.definition == slowly(data)
    document = read_xml(data, label="file")
    place = document.location(document.root.find("{*}name"))
    assert usual.place_of_name == (place.line, place.column)
    return True


def test_a_definition_as_orgs_write_it_is_read() -> None:
    assert assert_same(USUAL)
    usual = read_repetitions(USUAL, label="file")
    assert usual
    assert usual.definition.test_cases == CASES


def test_equal_expectations_are_one_object() -> None:
    usual = read_repetitions(USUAL, label="file")
    assert usual
    one, two, *_ = usual.definition.test_cases
    assert one.expectations is two.expectations


def test_samples_are_read_as_they_are() -> None:
    assert SAMPLES
    assert any(list(map(assert_same, (sample.read_bytes() for sample in SAMPLES))))


@pytest.mark.parametrize("seed", range(5))
def test_changed_definitions_are_read_as_a_parse_of_the_whole_file_reads_them(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - not for secrets
    text, read = USUAL.decode(), 0
    for _ in range(300):
        changed = text
        for _ in range(chance.choice((1, 1, 2))):
            begin = chance.choice([place for place, letter in enumerate(changed) if letter in "<>\n"] or [0])
            end = begin + chance.choice((0, 0, 1, 10, 40, 200))
            moved = chance.choice((*SNIPPETS, changed[end : end + 150], changed[begin:end] * 2))
            changed = changed[:begin] + moved + changed[end:]
        read += assert_same(changed.encode())
    assert read


def test_repeated_numbers_and_invalid_definitions_are_not_read() -> None:
    for changed in (
        replace(Definition("Orders_Test", "Order_Desk"), test_cases=(CASES[0], CASES[1], CASES[0])),
        Definition("Orders_Test", "Order_Desk", "PROMPT", test_cases=CASES),
        Definition("Orders_Test", "Order_Desk"),
    ):
        assert read_repetitions(write_definition(changed), label="file") is None


def test_a_case_with_only_the_end_tag_of_an_expectation_is_not_read() -> None:
    data = USUAL.replace(b"<testCase>\n        <inputs>", b"<testCase></expectation>\n        <inputs>")
    assert data != USUAL
    assert read_repetitions(data, label="file") is None


@pytest.mark.parametrize("special", ["<!-- <testCase> -->", "<?pi?>", "\r", "\x01", "\uffff", "]]>", "<a xmlns='b'/>"])
@pytest.mark.parametrize("before", ["<name>", "Orders</expectedValue>", "seven", "</AiEvaluationDefinition>"])
def test_what_xml_changes_or_does_not_allow_is_left_to_a_parse_of_the_whole_file(special: str, before: str) -> None:
    assert read_repetitions(USUAL.replace(before.encode(), (special + before).encode()), label="file") is None


@pytest.mark.parametrize("limit", ["MAX_XML_BYTES", "MAX_XML_ELEMENTS", "MAX_XML_CHILDREN"])
def test_definitions_beyond_a_limit_are_not_read(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, limit, 4)
    assert read_repetitions(USUAL, label="file") is None


@pytest.mark.parametrize(
    "data",
    [b"", b"<", USUAL[:100], USUAL[:-40], USUAL.replace(b"UTF-8", b"ASCII"), USUAL.replace("Ä".encode(), b"\xc4")],
)
def test_other_files_are_not_read(data: bytes) -> None:
    assert read_repetitions(data, label="file") is None


def test_problems_and_their_locations_are_those_of_the_whole_file(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Expectation("string_comparison", label="", parameters=(Parameter("operator", "same"),))
    refused = Expectation("topic_sequence_match", "off_topic"), Expectation("coherence")
    step = replace(CUSTOM, parameters=(*CRITERION[:2], Parameter("expected", "{gs.response.topic}")))
    lists = (
        (TOPIC, wrong, ACTIONS),
        refused,
        (NO_ACTIONS, TOPIC, TOPIC),
        (CUSTOM, CUSTOM, step),
        (),
        (wrong, NO_ACTIONS),
    )
    cases = tuple(TestCase(Inputs(f"question {number}"), lists[number % len(lists)]) for number in range(15))
    data = write_definition(Definition("Other name", "Order_Desk", test_cases=(*cases, *CASES)))

    def check() -> validator.CheckedFile:
        return validator.check_component(
            EVALUATION_DEFINITION,
            data,
            label="file",
            full_name="Orders",
            policy=RulePolicy(),
            api_version=NEWEST_API_VERSION,
        )

    assert assert_same(data)
    quick = check()
    assert {problem.code for problem in quick.problems} >= {
        "actions-unchecked", "comparison-twice", "expectation-one-engine", "expectation-twice", "expectations-missing",
        "metric-refusal", "operator-unknown",
    }  # fmt: skip
    monkeypatch.setattr(validator, "read_repetitions", lambda *_, **__: None)
    assert quick == check()
    assert len(quick.problems) > 5
