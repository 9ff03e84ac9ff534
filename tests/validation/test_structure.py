from __future__ import annotations

import pytest
from lxml import etree

from evalmeta import limits
from evalmeta.model.registry import EVALUATION_DEFINITION, TYPES
from evalmeta.validation.manifests import validate_manifest
from evalmeta.validation.structure import check_schema, schema_dir
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.reader import NAMESPACE, read_xml

HEAD = "<name>n</name><subjectName>s</subjectName><subjectType>AGENT</subjectType>"
INPUTS = "<inputs><utterance>u</utterance></inputs>"


def told(body: str, *, attributes: str = "") -> list[tuple[str, str, str]]:
    text = f'<AiEvaluationDefinition xmlns="{NAMESPACE}"{attributes}>{body}</AiEvaluationDefinition>'
    complaints = check_schema(read_xml(text.encode(), label="d"), TYPES[0].xsd)
    return [(each.problem.code, each.problem.message, each.problem.hint) for each in complaints]


def in_case(body: str) -> list[tuple[str, str, str]]:
    return told(f"{HEAD}<testCase>{INPUTS}{body}</testCase>")


@pytest.mark.parametrize("name", [*(row.xsd for row in TYPES), "package.xsd"])
def test_every_schema_stands_alone(name: str) -> None:
    root = etree.parse(schema_dir() / name).getroot()
    assert not root.xpath("//*[local-name()='import' or local-name()='include' or local-name()='redefine']")


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("testCases", "testCase"),
        ("masterLabel", "name"),
        ("subjectname", "subjectName"),
        ("Description", "description"),
    ],
)
def test_an_unknown_element_names_the_one_that_was_probably_meant(wrong: str, right: str) -> None:
    message = f"<{wrong}> is not known inside <AiEvaluationDefinition>"
    assert told(f"{HEAD}<{wrong}/>") == [("element-unknown", message, f"Did you mean <{right}>?")]


@pytest.mark.parametrize("wrapper", ["testCases", "tests"])
def test_an_element_that_only_wraps_known_ones_is_to_be_removed(wrapper: str) -> None:
    [(code, _, hint)] = told(f"{HEAD}<{wrapper}><testCase>{INPUTS}</testCase></{wrapper}>")
    assert code == "element-unknown"
    assert hint == f"Remove <{wrapper}> and keep what it holds: <testCase> stands directly in <AiEvaluationDefinition>."


@pytest.mark.parametrize("size", [1, 4 * limits.MAX_EXPLAINED_ELEMENTS], ids=["small", "large"])
def test_every_stray_text_is_told_where_it_begins(size: int) -> None:
    body = (
        f"{HEAD}\n  one<!-- x -->more<testCase>{INPUTS}</testCase>\n<![CDATA[ ]]>&#32;<![CDATA[two]]>"
        + "\n<testCase/>" * size
    )
    text = f'<AiEvaluationDefinition xmlns="{NAMESPACE}">{body}</AiEvaluationDefinition>'
    complaints = check_schema(read_xml(text.encode(), label="d"), TYPES[0].xsd)
    places = [each.problem.location for each in complaints if each.problem.code == "text-stray"]
    assert [(place.line, place.column) for place in places] == [(2, 3), (3, 19)]


def test_an_element_like_no_other_lists_what_is_known_there() -> None:
    assert in_case("<x/>")[0][2] == "Known here: expectation, inputs, number."


def test_every_unknown_element_is_told() -> None:
    assert [message for _, message, _ in told(f"{HEAD}<x/><y/><x/>")] == [
        f"<{name}> is not known inside <AiEvaluationDefinition>" for name in "xyx"
    ]


def test_a_known_name_in_another_namespace_says_so() -> None:
    assert in_case('<number xmlns="">1</number>') == [
        (
            "element-unknown",
            f"<number> is not in the namespace {NAMESPACE}",
            f'Put xmlns="{NAMESPACE}" on the root element only.',
        )
    ]


def test_every_missing_element_is_told() -> None:
    assert [message for _, message, _ in told("")] == [
        f"<AiEvaluationDefinition> has no <{name}>" for name in ("name", "subjectName", "subjectType")
    ]


def test_inputs_without_an_utterance_lack_only_that() -> None:
    assert told(f"{HEAD}<testCase><inputs/></testCase>") == [
        ("element-missing", "<inputs> has no <utterance>", "Add <utterance>; it is required.")
    ]


def test_a_repeated_element_names_the_line_of_the_first() -> None:
    found = told(f"\n{HEAD}\n<description/>\n<description/>\n<description/>")
    assert (
        found
        == [
            (
                "element-repeated",
                "<description> stands more than once in <AiEvaluationDefinition>",
                "Keep one; the first is at line 3.",
            )
        ]
        * 2
    )


def test_a_text_that_holds_elements_is_told_at_the_element() -> None:
    assert in_case("<number>1<x/></number>") == [
        (
            "element-unknown",
            "<number> holds <x>; it takes text only",
            "Write text; &lt; and &amp; stand for < and & in it.",
        )
    ]


def test_a_wrong_number_is_shown_with_what_is_due() -> None:
    hint = "Write a whole number of at most 9 digits."
    assert in_case("<number>two</number>") == [("value-invalid", "<number> is 'two'", hint)]


def test_a_wrong_boolean_is_shown_with_what_is_due() -> None:
    parameter = "<parameter><name>n</name><value>v</value><isReference>yes</isReference></parameter>"
    found = in_case(f"<expectation><name>n</name>{parameter}</expectation>")
    assert found == [("value-invalid", "<isReference> is 'yes'", "Write true or false.")]


def test_a_long_value_is_shortened() -> None:
    ((_, message, _),) = in_case(f"<number>{'x' * 10_000}</number>")
    assert len(message) < 120


def test_every_attribute_is_told() -> None:
    found = told(HEAD.replace("<name>", '<name id="1" lang="en">'), attributes=' version="1"')
    assert [code for code, _, _ in found] == ["attribute-unknown"] * 3
    assert found[0][1] == "<AiEvaluationDefinition> has an attribute 'version'; metadata elements have none"


@pytest.mark.parametrize("value", ["no:prefix", "nope", "", "a b"])
def test_a_type_that_does_not_exist_is_an_attribute_like_any_other(value: str) -> None:
    xsi = ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    found = told(HEAD.replace("<name>", f'<name xsi:type="{value}">'), attributes=xsi)
    assert found == [
        ("attribute-unknown", "<name> has an attribute 'xsi:type'; metadata elements have none", "Remove 'xsi:type'.")
    ]


def test_a_hint_where_a_schema_can_be_found_is_no_attribute() -> None:
    xsi = ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    assert told(HEAD, attributes=f'{xsi} xsi:schemaLocation="{NAMESPACE} AiEvaluationDefinition.xsd"') == []


def test_values_are_found_behind_any_prefix() -> None:
    body = "<m:name>n</m:name><m:subjectName>s</m:subjectName><m:subjectType>BOT</m:subjectType>"
    text = f'<m:AiEvaluationDefinition xmlns:m="{NAMESPACE}">{body}</m:AiEvaluationDefinition>'
    (complaint,) = check_schema(read_xml(text.encode(), label="d"), TYPES[0].xsd)
    assert complaint.problem.location.column == text.index("<m:subjectType>") + 1


def test_what_nobody_can_explain_is_told_in_the_words_of_libxml2() -> None:
    document = read_xml(f'<testCase xmlns="{NAMESPACE}"/>'.encode(), label="d")
    (complaint,) = check_schema(document, TYPES[0].xsd)
    assert complaint.problem.message.startswith("line 1: Element 'testCase': No matching global declaration")
    assert complaint.problem.hint == "Compare the file with AiEvaluationDefinition.xsd."


@pytest.mark.parametrize("unit", ["<testCase/>", "<x/>", "<name/>", "x<description/>", '<testCase id="1"/>'])
def test_a_file_with_very_many_faults_is_told_some_of_them(unit: str) -> None:
    assert 900 < len(told(HEAD + unit * 3000)) <= limits.MAX_PROBLEMS


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<testCase/>" * 12_001, "<AiEvaluationDefinition> holds 12,004 elements; at most 12,000 are read"),
        (f"<testCase>{'<number/>' * 11_000}</testCase>" * 10, "the file has 110,014 elements; at most 90,000 are read"),
    ],
    ids=["wide", "many"],
)
def test_a_definition_of_too_many_elements_is_refused_at_once(body: str, message: str) -> None:
    text = f'<AiEvaluationDefinition xmlns="{NAMESPACE}">{HEAD}{body}</AiEvaluationDefinition>'
    (problem,) = validate_component(EVALUATION_DEFINITION, text.encode(), label="d", full_name="D")
    assert (problem.code, problem.message) == ("xml-too-large", message)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ([f'a{number}="x"' for number in range(21_000)], "the file has more than 20,000 attributes"),
        ([f'xmlns:a{number}="x"' for number in range(2_000)], "the file declares more than 100 namespaces"),
        ([f'xmlns:a="{"x" * 30_000}"'], "a namespace is declared with more than 300 characters"),
        ([f'xmlns:{"a" * 30_000}="x"'], "a namespace is declared with more than 300 characters"),
    ],
    ids=["attributes", "namespaces", "long", "long prefix"],
)
def test_a_tag_that_declares_too_much_is_refused_at_its_place(attributes: list[str], message: str) -> None:
    text = f'<AiEvaluationDefinition xmlns="{NAMESPACE}">\n <x {" ".join(attributes)}/></AiEvaluationDefinition>'
    (problem,) = validate_component(EVALUATION_DEFINITION, text.encode(), label="d", full_name="D")
    assert (problem.code, problem.message) == ("xml-too-large", message)
    assert (problem.location.line, problem.location.column) == (2, 2)


def test_a_text_may_speak_of_attributes_and_namespaces_as_often_as_it_likes() -> None:
    text = "xmlns:a = " * 30_000
    assert told(f"{HEAD}<description>{text}</description>") == []


def test_every_test_case_whose_number_is_taken_is_told() -> None:
    cases = f"<testCase>{INPUTS}<number>1</number></testCase>" * 3
    assert [code for code, _, _ in told(HEAD + cases)] == ["number-duplicate"] * 2


def test_a_manifest_may_name_as_many_components_as_an_org_takes() -> None:
    members = "".join(f"<members>C{number}</members>" for number in range(limits.MAX_ZIP_ENTRIES))
    types = f"<types>{members}<name>AiEvaluationDefinition</name></types>"
    text = f'<Package xmlns="{NAMESPACE}">{types}<version>64.0</version></Package>'
    assert validate_manifest(text.encode(), label="package.xml")[1] == []
