from __future__ import annotations

import pytest
from lxml import etree

from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.xmlio.definitions import read_leniently
from evalmeta.xmlio.reader import NAMESPACE, read_xml
from evalmeta.xmlio.structure import declarations, find_fault_in_stream, parse_integer

ROOT = declarations(EVALUATION_DEFINITION.xsd)[f"{{{NAMESPACE}}}AiEvaluationDefinition"]

XS = "http://www.w3.org/2001/XMLSchema"
SCHEMA = etree.XMLSchema(
    etree.fromstring(
        f'<xs:schema xmlns:xs="{XS}"><xs:element name="a"><xs:complexType><xs:sequence>'
        '<xs:element name="b" type="xs:int" maxOccurs="unbounded"/>'
        "</xs:sequence></xs:complexType></xs:element></xs:schema>"
    )
)
GOOD = "<b>1</b><!-- \u00e9 --><b><![CDATA[2]]></b>" * 1_000


def read_description(body: str) -> str | None:
    text = f'<AiEvaluationDefinition xmlns="{NAMESPACE}">{body}</AiEvaluationDefinition>'
    return read_leniently(read_xml(text.encode(), label="d")).description


def description(content: str) -> str | None:
    return read_description(f"<description>{content}</description>")


@pytest.mark.parametrize(
    "body", ["<x/><description>a</description>", "<description>a</description><description>b</description>"]
)
def test_the_lenient_reader_uses_the_first_known_element(body: str) -> None:
    assert read_description(body) == "a"


def test_the_lenient_reader_ignores_text_between_elements() -> None:
    assert read_description("s<description>a</description>t") == "a"


@pytest.mark.parametrize("body", ["", " \n\t\r", "<!-- c -->", "<?p i?>", "<![CDATA[ ]]>", "&#32;"])
def test_blanks_comments_and_instructions_are_ignored(body: str) -> None:
    assert read_description(body) is None


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", ""),
        (" a\n b ", " a\n b "),
        ("a<!-- c -->b", "ab"),
        ("a<?p i?>b", "ab"),
        ("<![CDATA[<a>]]> &amp;", "<a> &"),
        ("\r\n", "\n"),
        ("&#13;", "\r"),
    ],
)
def test_text_is_what_xml_defines_it_to_be(content: str, text: str) -> None:
    assert description(content) == text


@pytest.mark.parametrize(
    ("text", "number"), [("1", 1), ("+01", 1), (" -2\n", -2), ("-0", 0), ("2147483647", 2**31 - 1)]
)
def test_integers(text: str, number: int) -> None:
    assert parse_integer(text) == number


@pytest.mark.parametrize("text", ["", "x", "1.0", "2147483648", "-2147483649", "1_0", "\uff11"])
def test_other_texts_are_not_integers(text: str) -> None:
    assert parse_integer(text) is None


@pytest.mark.parametrize(
    ("text", "flag"), [("true", True), ("1", True), (" false\n", False), ("0", False), ("x", None)]
)
def test_booleans(text: str, *, flag: bool | None) -> None:
    parameter = f"<parameter><name>n</name><value>v</value><isReference>{text}</isReference></parameter>"
    body = f"<testCase><expectation>{parameter}</expectation></testCase>"
    root = f'<AiEvaluationDefinition xmlns="{NAMESPACE}">{body}</AiEvaluationDefinition>'
    definition = read_leniently(read_xml(root.encode(), label="d"))
    assert definition.test_cases[0].expectations[0].parameters[0].is_reference is flag


def test_a_declaration_accepts_the_values_of_its_type() -> None:
    assert ROOT.children is not None
    subject_type, case = (ROOT.children[f"{{{NAMESPACE}}}{name}"] for name in ("subjectType", "testCase"))
    assert subject_type.accepts("AGENT")
    assert not subject_type.accepts(" AGENT ")
    assert case.children is not None
    assert not case.children[f"{{{NAMESPACE}}}number"].accepts("two")


def fault(text: str) -> str | None:
    found = find_fault_in_stream(text.encode(), SCHEMA)
    return found and found.message


def test_a_document_that_fits_has_no_fault() -> None:
    assert fault(f"\ufeff<?xml version='1.0'?><a>{GOOD}</a>") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"<a>{GOOD}<b>x</b>{GOOD}</a>", "Element 'b': 'x' is not a valid value of the atomic type 'xs:int'."),
        (f"<a>{GOOD}<c/></a>", "Element 'c': This element is not expected. Expected is ( b )."),
        ("<a/>", "Element 'a': Missing child element(s). Expected is ( b )."),
    ],
    ids=["in the middle", "near the end", "at the end"],
)
def test_the_first_fault_is_found(text: str, message: str) -> None:
    assert fault(text) == message
