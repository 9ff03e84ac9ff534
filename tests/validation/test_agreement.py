"""libxml2, xmlschema and the typed reader give the same verdict on every document."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from lxml import etree
from xmlschema import XMLSchema

from evalmeta.errors import InvalidMetadata
from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION, MetadataType
from evalmeta.validation.structure import schema_dir
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.definitions import read_definition
from evalmeta.xmlio.reader import NAMESPACE, read_xml
from examples import EXAMPLES
from strategies import QUIRKS, documents

XSD = schema_dir() / "AiEvaluationDefinition.xsd"
LIBXML2 = etree.XMLSchema(etree.parse(XSD))
XMLSCHEMA = XMLSchema(XSD)
TESTING_XSD = schema_dir() / TESTING_DEFINITION.xsd
TESTING_LIBXML2 = etree.XMLSchema(etree.parse(TESTING_XSD))
TESTING_XMLSCHEMA = XMLSchema(TESTING_XSD)
XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
STRUCTURE = {
    "attribute-unknown",
    "element-missing",
    "element-repeated",
    "element-unknown",
    "number-duplicate",
    "text-stray",
    "value-invalid",
    "xml-root",
}


def definition(*cases: str, subject_type: str = "AGENT", attributes: str = "") -> str:
    head = f"<name>n</name><subjectName>s</subjectName><subjectType>{subject_type}</subjectType>"
    return f'<AiEvaluationDefinition xmlns="{NAMESPACE}" {attributes}>{head}{"".join(cases)}</AiEvaluationDefinition>'


def numbered(*numbers: str) -> str:
    inputs = "<inputs><utterance>u</utterance></inputs>"
    return definition(*(f"<testCase>{inputs}<number>{number}</number></testCase>" for number in numbers))


def reads(text: str) -> bool:
    try:
        read_definition(read_xml(text.encode(), label="d"))
    except InvalidMetadata:
        return False
    return True


def accepts(schema: etree.XMLSchema | XMLSchema, text: str) -> bool:
    root = read_xml(text.encode(), label="d").root
    return schema.validate(root) if isinstance(schema, etree.XMLSchema) else schema.is_valid(root)


def verdicts(text: str) -> set[bool]:
    return {accepts(LIBXML2, text), accepts(XMLSCHEMA, text), reads(text)}


def structure_of(text: str, kind: MetadataType = EVALUATION_DEFINITION) -> list[str]:
    problems = validate_component(kind, text.encode(), label="d", full_name="D")
    return [problem.code for problem in problems if problem.code in STRUCTURE]


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents())
def test_every_judge_gives_the_same_verdict(text: str) -> None:
    verdict = reads(text)
    assert accepts(LIBXML2, text) is verdict
    if not any(quirk in text for quirk in QUIRKS):
        assert accepts(XMLSCHEMA, text) is verdict
    assert (not structure_of(text)) is verdict


@pytest.mark.parametrize(
    "number", ["1", "+1", "-0", "007", " 1 ", "\n1\t", "-2147483648", "1<!-- -->2", "<![CDATA[1]]>"]
)
def test_what_xml_schema_calls_an_int_is_a_number(number: str) -> None:
    text = numbered(number)
    assert verdicts(text) == {True}
    assert structure_of(text) == []


@pytest.mark.parametrize(
    "number", ["", " ", "1.0", "1e3", "--1", "0x1", "1 0", "2147483648", "9" * 5000, "1<x/>", "NaN"]
)
def test_nothing_else_is_a_number(number: str) -> None:
    text = numbered(number)
    assert verdicts(text) == {False}
    assert len(structure_of(text)) == 1


@pytest.mark.parametrize("number", ["1_0", "\uff11", "\u0661", "&#160;1", "\u20031"])
def test_a_number_that_only_xmlschema_takes_is_refused_where_it_stands(number: str) -> None:
    text = numbered(number)
    (problem,) = (
        each
        for each in validate_component(EVALUATION_DEFINITION, text.encode(), label="d", full_name="D")
        if each.is_error
    )
    assert accepts(XMLSCHEMA, text)
    assert (problem.code, problem.location.column) == ("value-invalid", text.index("<number>") + 1)


def test_a_blank_that_only_xmlschema_takes_for_one_is_stray_text() -> None:
    text = definition("\u3000")
    assert accepts(XMLSCHEMA, text)
    assert structure_of(text) == ["text-stray"]


@pytest.mark.parametrize("second", ["1", "01", "+1", " 1 "])
def test_numbers_are_the_same_by_value(second: str) -> None:
    text = numbered("1", second)
    assert verdicts(text) == {False}
    assert structure_of(text) == ["number-duplicate"]


def test_minus_zero_is_zero_although_libxml2_tells_them_apart() -> None:
    text = numbered("0", "-0")
    assert accepts(LIBXML2, text)
    assert structure_of(text) == ["number-duplicate"]


def test_a_number_may_have_more_zeros_than_python_likes_to_read() -> None:
    text = numbered("0" * 5000 + "1")
    assert accepts(LIBXML2, text)
    assert (reads(text), structure_of(text)) == (True, [])


@pytest.mark.parametrize("value", ["m:AiEvaluationDefinition", "xs:string", "m:nope", "no:prefix", "", "a b"])
def test_no_document_chooses_its_own_type(value: str) -> None:
    prefixes = f'{XSI} xmlns:m="{NAMESPACE}" xmlns:xs="http://www.w3.org/2001/XMLSchema"'
    text = definition(attributes=f'{prefixes} xsi:type="{value}"')
    assert not reads(text)
    assert structure_of(text) == ["attribute-unknown"]


def test_a_namespace_in_disguise_is_the_same_namespace() -> None:
    prefixes = f'xmlns:i="http://www.w3.org/2001/XMLSchema&#45;instance" xmlns:m="{NAMESPACE}"'
    text = definition(attributes=f'{prefixes} i:type="m:AiEvaluationDefinition"')
    assert not reads(text)
    assert structure_of(text) == ["attribute-unknown"]


@pytest.mark.parametrize("value", ["true", "false", "1", "x", ""])
def test_nothing_is_nil(value: str) -> None:
    text = definition(attributes=f'{XSI} xsi:nil="{value}"')
    assert verdicts(text) == {False}
    assert structure_of(text) == ["attribute-unknown"]


@pytest.mark.parametrize("subject_type", [" AGENT ", "agent", "", "AGENT<x/>"])
def test_the_only_subject_type_is_spelt_one_way(subject_type: str) -> None:
    text = definition(subject_type=subject_type)
    assert verdicts(text) == {False}
    assert len(structure_of(text)) == 1


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents(TESTING_DEFINITION))
def test_every_judge_gives_the_same_verdict_of_the_other_type(text: str) -> None:
    root = read_xml(text.encode(), label="d").root
    # What no schema can say: that there are inputs, once, whether they hold an utterance or not.
    counted = all(len(case.findall(f"{{{NAMESPACE}}}inputs")) == 1 for case in root.findall(f"{{{NAMESPACE}}}testCase"))
    verdict = reads(text)
    assert (accepts(TESTING_LIBXML2, text) and counted) is verdict
    if not any(quirk in text for quirk in QUIRKS):
        assert (accepts(TESTING_XMLSCHEMA, text) and counted) is verdict
    assert (not structure_of(text, TESTING_DEFINITION)) is verdict
