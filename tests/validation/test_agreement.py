"""libxml2, xmlschema and evalmeta give the same verdict on every document, and report the same problems."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import HealthCheck, assume, given, settings
from lxml import etree
from xmlschema import XMLSchema, XMLSchemaChildrenValidationError, XMLSchemaDecodeError

from evalmeta import limits
from evalmeta.errors import InvalidMetadata
from evalmeta.model.registry import EVALUATION_DEFINITION, SCORER_DEFINITION, TESTING_DEFINITION, MetadataType
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.definitions import read_definition
from evalmeta.xmlio.reader import NAMESPACE, local_name, read_xml
from evalmeta.xmlio.structure import Declaration, Field, check_structure, declarations, schema_dir
from examples import EXAMPLES
from strategies import QUIRKS, documents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from elementpath.protocols import ElementProtocol
    from lxml.etree import _Element as Element
    from xmlschema import XMLSchemaValidationError

    from evalmeta.xmlio.reader import Document

XSD = schema_dir() / "AiEvaluationDefinition.xsd"
LIBXML2 = etree.XMLSchema(etree.parse(XSD))
XMLSCHEMA = XMLSchema(XSD)
TESTING_XSD = schema_dir() / TESTING_DEFINITION.xsd
TESTING_LIBXML2 = etree.XMLSchema(etree.parse(TESTING_XSD))
TESTING_XMLSCHEMA = XMLSchema(TESTING_XSD)
SCORER_XSD = schema_dir() / SCORER_DEFINITION.xsd
SCORER_LIBXML2 = etree.XMLSchema(etree.parse(SCORER_XSD))
SCORER_XMLSCHEMA = XMLSchema(SCORER_XSD)
INPUTS = "<inputs><utterance>u</utterance></inputs>"
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
    return definition(*(f"<testCase>{INPUTS}<number>{number}</number></testCase>" for number in numbers))


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
def test_a_number_that_only_xmlschema_takes_is_refused_at_its_location(number: str) -> None:
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


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents(SCORER_DEFINITION))
def test_every_judge_gives_the_same_verdict_of_a_custom_scorer(text: str) -> None:
    verdict = not structure_of(text, SCORER_DEFINITION)
    assert accepts(SCORER_LIBXML2, text) is verdict
    if not any(quirk in text for quirk in QUIRKS):
        assert accepts(SCORER_XMLSCHEMA, text) is verdict


XS = "{http://www.w3.org/2001/XMLSchema}"


def declared(element: Element, types: dict[str | None, Element]) -> Declaration:
    """Return the declaration that an xs:element of our schemas contains, read without a library for schemas."""
    kind = types.get(element.get("type", "").removeprefix("m:"))
    if kind is None:
        return Declaration(None, base=element.get("type", "").removeprefix("xs:"))
    if kind.tag == f"{XS}simpleType":
        values = [each.get("value", "") for each in kind.iterfind(f"{XS}restriction/{XS}enumeration")]
        return Declaration(None, base=kind.get("name", ""), enumeration=tuple(values))
    return Declaration(
        {tag(each.get("name", "")): declared(each, types) for each in kind.iterfind(f"{XS}choice/{XS}element")},
        tuple(
            Field(tuple(map(tag, key[1].get("xpath", "").split("/"))), key.tag == f"{XS}key")
            for key in element.iterchildren(f"{XS}key", f"{XS}unique")
            if key[0].get("xpath") == "."
        ),
    )


def tag(name: str) -> str:
    return f"{{{NAMESPACE}}}{name.removeprefix('m:')}"


@pytest.mark.parametrize(
    "xsd", [EVALUATION_DEFINITION.xsd, TESTING_DEFINITION.xsd, SCORER_DEFINITION.xsd, "package.xsd"]
)
def test_the_declarations_of_a_schema_are_those_that_its_file_contains(xsd: str) -> None:
    root = etree.parse(schema_dir() / xsd).getroot()
    types = {each.get("name"): each for each in root.iterchildren(f"{XS}complexType", f"{XS}simpleType")}
    elements = root.iterchildren(f"{XS}element")
    assert declarations(xsd) == {tag(element.get("name", "")): declared(element, types) for element in elements}


def places(document: Document, error: XMLSchemaValidationError) -> Iterator[tuple[str, str]]:
    """Yield code and location of the problems that an error of xmlschema stands for, except attributes and numbers."""
    element, reason = cast("Element", error.elem), error.reason or ""
    if isinstance(error, XMLSchemaChildrenValidationError):
        yield "element-unknown", str(document.location(element[error.index]))
    elif reason.startswith("missing key field") or "selects multiple values" in reason:
        name = reason.split("'", maxsplit=2)[1].partition("/")[0].removeprefix("m:")
        if all(local_name(child) != name for child in element):
            yield "element-missing", str(document.location(element))
        for extra in element.findall(f"{{{NAMESPACE}}}{name}")[1:]:
            yield "element-repeated", str(document.location(extra))
    elif reason.startswith("character data"):
        yield from (("text-stray", str(place)) for place in document.texts(element))
    elif reason.startswith("a simple content"):
        yield "element-unknown", str(document.location(element[0]))
    elif isinstance(error, XMLSchemaDecodeError) or reason.startswith("value must"):
        yield "value-invalid", str(document.location(element))


def reported(document: Document, xsd: str) -> set[tuple[str, str]]:
    problems = [each.problem for each in check_structure(document, xsd)]
    others = {"attribute-unknown", "number-duplicate"}
    return {(problem.code, str(problem.location)) for problem in problems if problem.code not in others}


def reported_by_xmlschema(document: Document, schema: XMLSchema) -> set[tuple[str, str]]:
    errors = schema.iter_errors(cast("ElementProtocol", document.root))
    return {place for error in errors for place in places(document, error)}


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents())
def test_evalmeta_reports_what_xmlschema_reports(text: str) -> None:
    assume(text.startswith(f'<AiEvaluationDefinition xmlns="{NAMESPACE}"'))
    document = read_xml(text.encode(), label="d")
    ours, theirs = reported(document, EVALUATION_DEFINITION.xsd), reported_by_xmlschema(document, XMLSCHEMA)
    if any(quirk in text for quirk in QUIRKS):
        assert theirs <= ours
    else:
        assert ours == theirs


@pytest.mark.parametrize(
    "case",
    [
        f"{INPUTS}<number>1</number><number>2</number>",
        "<inputs/><inputs><utterance/></inputs>",
        f"{INPUTS}<number>1<x/></number>",
        f"{INPUTS}<number>x</number>",
        f"{INPUTS}<x><number/></x><number xmlns=''>1</number>text",
    ],
)
def test_evalmeta_reports_what_xmlschema_reports_of_a_test_case(case: str) -> None:
    document = read_xml(definition(f"<testCase>{case}</testCase>").encode(), label="d")
    assert reported(document, EVALUATION_DEFINITION.xsd) == reported_by_xmlschema(document, XMLSCHEMA) != set()


@pytest.mark.parametrize("content", ["", "<name/><name/>", "<name/><member/>", "<name/>text", "<name><x/></name>"])
def test_evalmeta_reports_what_xmlschema_reports_of_a_manifest(content: str) -> None:
    document = read_xml(f'<Package xmlns="{NAMESPACE}"><types>{content}</types></Package>'.encode(), label="d")
    theirs = reported_by_xmlschema(document, XMLSchema(schema_dir() / "package.xsd"))
    assert reported(document, "package.xsd") == theirs != set()


@pytest.mark.parametrize(
    "case",
    ["<number/>", "<number>1</number><scorer/>", "<number>1</number><scorer><scorerType>x</scorerType></scorer>", ""],
)
def test_evalmeta_reports_what_xmlschema_reports_of_the_other_type(case: str) -> None:
    text = definition(f"<testCase>{INPUTS}{case}</testCase>").replace("AiEvaluation", "AiTesting")
    document = read_xml(text.encode(), label="d")
    theirs = reported_by_xmlschema(document, TESTING_XMLSCHEMA)
    assert reported(document, TESTING_DEFINITION.xsd) == theirs != set()


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents())
def test_a_document_that_is_validated_as_a_stream_has_the_same_problems(text: str) -> None:
    assume(text.startswith(f'<AiEvaluationDefinition xmlns="{NAMESPACE}"'))
    document = read_xml(text.encode(), label="d")
    problems = check_structure(document, EVALUATION_DEFINITION.xsd)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "MAX_LOGGED_ELEMENTS", 0)
        assert check_structure(document, EVALUATION_DEFINITION.xsd) == problems
