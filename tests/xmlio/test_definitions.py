from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from evalmeta.errors import InvalidMetadata
from evalmeta.model.definition import (
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    Parameter,
    PromptInput,
    TestCase,
    fields_of,
)
from evalmeta.model.registry import TEST_TYPES, TYPES, MetadataType
from evalmeta.xmlio.definitions import given_numbers, read_definition, read_leniently, write_definition
from evalmeta.xmlio.reader import read_xml
from evalmeta.xmlio.structure import declarations
from examples import EXAMPLES
from strategies import definitions, documents

SAMPLES = Path(__file__).parent.parent.parent / "metadata-samples"
GOOD = sorted(path for path in SAMPLES.rglob("*.aiEvaluationDefinition*") if "invalid" not in path.parts)
EVERYTHING = Definition(
    name="Everything",
    subject_name="Agent",
    subject_version="v2",
    description="All fields",
    test_cases=(
        TestCase(
            Inputs(
                "And then?",
                (ContextVariable("Tier", "Gold"),),
                (HistoryMessage("user", "Hello", None, 0), HistoryMessage("agent", "Hi", "Greeting", 1)),
            ),
            (
                Expectation("action_sequence_match", "['A']"),
                Expectation(
                    "string_comparison", None, "Polite", (Parameter("actual", "$.generatedData.outcome", True),)
                ),
            ),
            7,
        ),
    ),
)
WRITTEN = """\
<?xml version="1.0" encoding="UTF-8"?>
<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">
    <description>All fields</description>
    <name>Everything</name>
    <subjectName>Agent</subjectName>
    <subjectType>AGENT</subjectType>
    <subjectVersion>v2</subjectVersion>
    <testCase>
        <expectation>
            <expectedValue>[&apos;A&apos;]</expectedValue>
            <name>action_sequence_match</name>
        </expectation>
        <expectation>
            <label>Polite</label>
            <name>string_comparison</name>
            <parameter>
                <isReference>true</isReference>
                <name>actual</name>
                <value>$.generatedData.outcome</value>
            </parameter>
        </expectation>
        <inputs>
            <contextVariable>
                <variableName>Tier</variableName>
                <variableValue>Gold</variableValue>
            </contextVariable>
            <conversationHistory>
                <index>0</index>
                <message>Hello</message>
                <role>user</role>
            </conversationHistory>
            <conversationHistory>
                <index>1</index>
                <message>Hi</message>
                <role>agent</role>
                <topic>Greeting</topic>
            </conversationHistory>
            <utterance>And then?</utterance>
        </inputs>
        <number>7</number>
    </testCase>
</AiEvaluationDefinition>
"""


def read(data: bytes) -> Definition:
    return read_definition(read_xml(data, label="d.xml"))


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.name)
def test_a_sample_that_is_not_changed_keeps_its_bytes(path: Path) -> None:
    assert write_definition(read(path.read_bytes())) == path.read_bytes()


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.name)
def test_a_sample_written_anew_means_the_same(path: Path) -> None:
    definition = read(path.read_bytes())
    anew = write_definition(replace(definition, source=None))
    assert read(anew) == definition
    assert anew != path.read_bytes() or "Follow_Up" in path.name


def test_every_field_is_written_where_an_org_writes_it() -> None:
    assert write_definition(EVERYTHING).decode() == WRITTEN


def test_every_field_is_read() -> None:
    assert read(WRITTEN.encode()) == EVERYTHING


@settings(max_examples=EXAMPLES, deadline=None)
@given(definitions())
def test_what_is_written_is_read_back(definition: Definition) -> None:
    assert read(write_definition(definition)) == definition


@given(definitions())
def test_what_was_written_is_written_again_the_same(definition: Definition) -> None:
    first = write_definition(definition)
    assert write_definition(read(first)) == first
    assert write_definition(replace(read(first), source=None)) == first


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(st.sampled_from(TYPES).flatmap(documents))
def test_any_document_that_fits_keeps_its_bytes(text: str) -> None:
    try:
        definition = read(text.encode())
    except InvalidMetadata:
        assume(False)
    assert write_definition(definition) == text.encode()


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Other"},
        {"subject_name": "Other"},
        {"subject_version": None},
        {"description": None},
        {"test_cases": ()},
        {"test_cases": (replace(EVERYTHING.test_cases[0], number=8),)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_definition_that_was_changed_is_written_in_the_form_of_an_org(change: dict[str, str]) -> None:
    one_line = "".join(line.strip() for line in WRITTEN.splitlines()).encode()
    changed = replace(read(one_line), **change)
    assert changed.source == one_line
    assert write_definition(changed) == write_definition(replace(changed, source=None)) != one_line
    assert read(write_definition(changed)) == changed


def test_an_undone_change_returns_the_old_bytes() -> None:
    one_line = "".join(line.strip() for line in WRITTEN.splitlines()).encode()
    changed = replace(read(one_line), name="Other")
    assert write_definition(replace(changed, name="Everything")) == one_line


def test_the_bytes_of_definitions_are_not_compared() -> None:
    assert read(WRITTEN.encode()) == EVERYTHING
    assert "source" not in repr(read(WRITTEN.encode()))
    assert [field.name for field in fields(Definition) if not field.compare] == ["source"]


@pytest.mark.parametrize(
    ("data", "code", "place"),
    [
        (WRITTEN.replace("AiEvaluationDefinition", "Other"), "xml-root", "d.xml:2:1"),
        (WRITTEN.replace(">AGENT<", ">BOT<"), "value-invalid", "d.xml:6:5"),
        (WRITTEN.replace("<subjectName>Agent</subjectName>", ""), "element-missing", "d.xml:2:1"),
        (WRITTEN.replace("<number>7", "<number>x"), "value-invalid", "d.xml:40:9"),
        (WRITTEN.replace("<topic>Greeting</topic>", "<index>1</index>"), "element-repeated", "d.xml:36:17"),
    ],
)
def test_what_does_not_fit_is_reported_with_its_location(data: str, code: str, place: str) -> None:
    with pytest.raises(InvalidMetadata, match=f"^{re.escape(place)}: ") as caught:
        read(data.encode())
    (problem,) = caught.value.problems
    assert (problem.code, str(problem.location)) == (code, place)
    assert problem.hint
    assert caught.value.actions == ("Run `evalmeta validate d.xml`.",)


def test_every_problem_is_reported_and_the_first_one_is_the_message() -> None:
    with pytest.raises(InvalidMetadata, match=r"^d\.xml:8:5: <testCase> has no <inputs>$") as caught:
        read(WRITTEN.replace("inputs>", "input>").encode())
    found = [(problem.code, problem.location.line, problem.hint) for problem in caught.value.problems]
    assert found == [
        ("element-missing", 8, "Add <inputs>; it is required."),
        ("element-unknown", 22, "Did you mean <inputs>?"),
    ]


def test_a_test_case_without_inputs_does_not_fit() -> None:
    before, _, rest = WRITTEN.partition("        <inputs>")
    with pytest.raises(InvalidMetadata, match=r"^d\.xml:8:5: <testCase> has no <inputs>"):
        read((before + rest.partition("</inputs>\n")[2]).encode())


@given(st.sampled_from(TYPES).flatmap(documents))
def test_a_document_that_fits_is_read_leniently_in_full(text: str) -> None:
    document = read_xml(text.encode(), label="d")
    lenient = read_leniently(document)
    try:
        assert lenient == read_definition(document)
    except InvalidMetadata:
        assert lenient.source is None


@pytest.mark.parametrize("kind", TEST_TYPES, ids=[kind.name for kind in TEST_TYPES])
def test_every_text_that_a_schema_declares_is_a_field_of_the_model(kind: MetadataType) -> None:
    values = {
        kind.name: EVERYTHING,
        "testCase": TestCase(Inputs("")),
        "inputs": Inputs(""),
        "contextVariable": ContextVariable("", ""),
        "conversationHistory": HistoryMessage(),
        "promptInput": PromptInput("", ""),
        kind.expectation: Expectation(""),
        "parameter": Parameter("", ""),
    }
    pending = list(declarations(kind.xsd).items())
    for tag, declared in pending:
        children = (declared.children or {}).items()
        texts = {child.rpartition("}")[2] for child, below in children if below.children is None}
        assert texts <= fields_of(values[tag.rpartition("}")[2]]).keys()
        pending += [(child, below) for child, below in children if below.children is not None]


def test_the_numbers_alone_are_those_of_the_whole_definition() -> None:
    cases = "".join(
        f"<testCase>{text}</testCase>" for text in ("", "<number>7</number>", "<number> 2\n</number>", "<number/>")
    )
    source = f'<AiEvaluationDefinition xmlns="http://soap.sforce.com/2006/04/metadata">{cases}</AiEvaluationDefinition>'
    document = read_xml(source.encode(), label="x")
    assert given_numbers(document) == [case.number for case in read_leniently(document).test_cases]
