from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest
from lxml import etree

from evalmeta import limits
from evalmeta.model.registry import EVALUATION_DEFINITION, TYPES
from evalmeta.validation.validator import validate_component, validate_manifest
from evalmeta.xmlio.reader import NAMESPACE, read_xml
from evalmeta.xmlio.structure import check_structure, odd_attributes, schema_dir

HEAD = "<name>n</name><subjectName>s</subjectName><subjectType>AGENT</subjectType>"
INPUTS = "<inputs><utterance>u</utterance></inputs>"


def problems_of(body: str, *, attributes: str = "") -> list[tuple[str, str, str]]:
    text = f'<AiEvaluationDefinition xmlns="{NAMESPACE}"{attributes}>{body}</AiEvaluationDefinition>'
    problems = check_structure(read_xml(text.encode(), label="d"), TYPES[0].xsd)
    return [(problem.problem.code, problem.problem.message, problem.problem.hint) for problem in problems]


def in_case(body: str) -> list[tuple[str, str, str]]:
    return problems_of(f"{HEAD}<testCase>{INPUTS}{body}</testCase>")


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
    message = f"<{wrong}> is not a known element of <AiEvaluationDefinition>"
    assert problems_of(f"{HEAD}<{wrong}/>") == [("element-unknown", message, f"Did you mean <{right}>?")]


@pytest.mark.parametrize("wrapper", ["testCases", "tests"])
def test_the_hint_is_to_remove_an_element_that_only_wraps_known_ones(wrapper: str) -> None:
    [(code, _, hint)] = problems_of(f"{HEAD}<{wrapper}><testCase>{INPUTS}</testCase></{wrapper}>")
    assert code == "element-unknown"
    assert hint == f"Remove <{wrapper}> and keep its contents: <testCase> belongs directly in <AiEvaluationDefinition>."


@pytest.mark.parametrize("size", [1, 4 * limits.MAX_LOGGED_ELEMENTS], ids=["small", "large"])
def test_every_stray_text_is_reported_where_it_begins(size: int) -> None:
    body = (
        f"{HEAD}\n  one<!-- x -->more<testCase>{INPUTS}</testCase>\n<![CDATA[ ]]>&#32;<![CDATA[two]]>"
        + "\n<testCase/>" * size
    )
    text = f'<AiEvaluationDefinition xmlns="{NAMESPACE}">{body}</AiEvaluationDefinition>'
    problems = check_structure(read_xml(text.encode(), label="d"), TYPES[0].xsd)
    places = [problem.problem.location for problem in problems if problem.problem.code == "text-stray"]
    assert [(place.line, place.column) for place in places] == [(2, 3), (3, 19)]


def test_a_name_unlike_all_others_lists_the_known_elements() -> None:
    assert in_case("<x/>")[0][2] == "Known elements: expectation, inputs, number."


def test_every_unknown_element_is_reported() -> None:
    assert [message for _, message, _ in problems_of(f"{HEAD}<x/><y/><x/>")] == [
        f"<{name}> is not a known element of <AiEvaluationDefinition>" for name in "xyx"
    ]


def test_a_known_name_in_another_namespace_is_reported_as_such() -> None:
    assert in_case('<number xmlns="">1</number>') == [
        (
            "element-unknown",
            f"<number> is not in the namespace {NAMESPACE}",
            f'Put xmlns="{NAMESPACE}" on the root element only.',
        )
    ]


def test_every_missing_element_is_reported() -> None:
    assert [message for _, message, _ in problems_of("")] == [
        f"<AiEvaluationDefinition> has no <{name}>" for name in ("name", "subjectName", "subjectType")
    ]


def test_only_the_utterance_is_reported_if_inputs_are_empty() -> None:
    assert problems_of(f"{HEAD}<testCase><inputs/></testCase>") == [
        ("element-missing", "<inputs> has no <utterance>", "Add <utterance>; it is required.")
    ]


def test_a_repeated_element_names_the_line_of_the_first() -> None:
    found = problems_of(f"\n{HEAD}\n<description/>\n<description/>\n<description/>")
    assert (
        found
        == [
            (
                "element-repeated",
                "<description> occurs more than once in <AiEvaluationDefinition>",
                "Keep one; the first is at line 3.",
            )
        ]
        * 2
    )


def test_an_element_inside_text_is_reported_at_its_location() -> None:
    assert in_case("<number>1<x/></number>") == [
        (
            "element-unknown",
            "<number> contains <x>; only text is valid there",
            "Write text, with &lt; for < and &amp; for &.",
        )
    ]


def test_an_invalid_number_is_reported_with_the_valid_values() -> None:
    hint = "Write a whole number of at most 9 digits."
    assert in_case("<number>two</number>") == [("value-invalid", "<number> is 'two'", hint)]


def test_an_invalid_boolean_is_reported_with_the_valid_values() -> None:
    parameter = "<parameter><name>n</name><value>v</value><isReference>yes</isReference></parameter>"
    found = in_case(f"<expectation><name>n</name>{parameter}</expectation>")
    assert found == [("value-invalid", "<isReference> is 'yes'", "Write true or false.")]


def test_a_long_value_is_shortened() -> None:
    ((_, message, _),) = in_case(f"<number>{'x' * 10_000}</number>")
    assert len(message) < 120


def test_every_attribute_is_reported() -> None:
    found = problems_of(HEAD.replace("<name>", '<name id="1" lang="en">'), attributes=' version="1"')
    assert [code for code, _, _ in found] == ["attribute-unknown"] * 3
    assert found[0][1] == "<AiEvaluationDefinition> has an attribute 'version'; metadata elements have none"


@pytest.mark.parametrize("value", ["no:prefix", "nope", "", "a b"])
def test_an_xsi_type_is_reported_like_any_other_attribute(value: str) -> None:
    xsi = ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    found = problems_of(HEAD.replace("<name>", f'<name xsi:type="{value}">'), attributes=xsi)
    assert found == [
        ("attribute-unknown", "<name> has an attribute 'xsi:type'; metadata elements have none", "Remove 'xsi:type'.")
    ]


def test_the_location_of_a_schema_is_a_valid_attribute() -> None:
    xsi = ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    assert problems_of(HEAD, attributes=f'{xsi} xsi:schemaLocation="{NAMESPACE} AiEvaluationDefinition.xsd"') == []


def test_values_are_found_under_any_prefix() -> None:
    body = "<m:name>n</m:name><m:subjectName>s</m:subjectName><m:subjectType>BOT</m:subjectType>"
    text = f'<m:AiEvaluationDefinition xmlns:m="{NAMESPACE}">{body}</m:AiEvaluationDefinition>'
    (found,) = check_structure(read_xml(text.encode(), label="d"), TYPES[0].xsd)
    assert found.problem.location.column == text.index("<m:subjectType>") + 1


def test_the_message_of_libxml2_is_reported_if_nothing_else_explains_it() -> None:
    document = read_xml(f'<testCase xmlns="{NAMESPACE}"/>'.encode(), label="d")
    (found,) = check_structure(document, TYPES[0].xsd)
    assert found.problem.message.startswith("line 1: Element 'testCase': No matching global declaration")
    assert found.problem.hint == "Compare the file with AiEvaluationDefinition.xsd."


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["<testCase/>", "<x/>", "<name/>", "x<description/>", '<testCase id="1"/>'])
def test_at_most_1000_problems_are_reported(unit: str) -> None:
    assert 900 < len(problems_of(HEAD + unit * 3000)) <= limits.MAX_PROBLEMS


def test_no_kind_of_problem_hides_the_others() -> None:
    wrong = "<number>x</number>" * 3000 + '<x a=""/>' * 3000
    found = Counter(code for code, _, _ in in_case(wrong))
    assert found == {"element-repeated": 250, "value-invalid": 250, "element-unknown": 250, "attribute-unknown": 250}


GOOD = f"""
import sys
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.validation.validator import validate_component

body = "{HEAD}<testCase>{INPUTS}{{}}</testCase>"
for wrong in ("<!-- xsi:type='x' -->", "<x/>"):
    root = '<AiEvaluationDefinition xmlns="{NAMESPACE}">' + body.format(wrong) + "</AiEvaluationDefinition>"
    problems = validate_component(EVALUATION_DEFINITION, root.encode(), label="n", full_name="n")
    print(any(each.is_error for each in problems), "xmlschema" in sys.modules)
"""


@pytest.mark.slow
def test_only_refused_files_load_xmlschema() -> None:
    done = subprocess.run([sys.executable, "-c", GOOD], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "True", "True"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<testCase/>" * 12_001, "<AiEvaluationDefinition> contains 12,004 elements; at most 12,000 are allowed"),
        (
            f"<testCase>{'<number/>' * 11_000}</testCase>" * 10,
            "the file has 110,014 elements; at most 90,000 are allowed",
        ),
    ],
    ids=["wide", "many"],
)
def test_a_definition_of_too_many_elements_is_refused(body: str, message: str) -> None:
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
def test_a_tag_that_declares_too_much_is_refused_at_its_location(attributes: list[str], message: str) -> None:
    text = f'<AiEvaluationDefinition xmlns="{NAMESPACE}">\n <x {" ".join(attributes)}/></AiEvaluationDefinition>'
    (problem,) = validate_component(EVALUATION_DEFINITION, text.encode(), label="d", full_name="D")
    assert (problem.code, problem.message) == ("xml-too-large", message)
    assert (problem.location.line, problem.location.column) == (2, 2)


def test_text_that_looks_like_attributes_and_namespaces_is_valid() -> None:
    text = "xmlns:a = " * 30_000
    assert problems_of(f"{HEAD}<description>{text}</description>") == []


def test_every_test_case_with_a_duplicate_number_is_reported() -> None:
    cases = f"<testCase>{INPUTS}<number>1</number></testCase>" * 3
    assert [code for code, _, _ in problems_of(HEAD + cases)] == ["number-duplicate"] * 2


def test_a_manifest_may_name_as_many_components_as_an_org_accepts() -> None:
    members = "".join(f"<members>C{number}</members>" for number in range(limits.MAX_ZIP_ENTRIES))
    types = f"<types>{members}<name>AiEvaluationDefinition</name></types>"
    text = f'<Package xmlns="{NAMESPACE}">{types}<version>64.0</version></Package>'
    assert validate_manifest(text.encode(), label="package.xml")[1] == []


def test_only_the_location_of_a_schema_is_not_an_odd_attribute() -> None:
    xsi = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    hints = 'xsi:schemaLocation="a b" xsi:noNamespaceSchemaLocation="c" xml:lang="en" id="1" xsi:type="t"'
    found = odd_attributes(read_xml(f"<a {xsi} {hints}/>".encode(), label="d").root)
    assert found == ["{http://www.w3.org/XML/1998/namespace}lang", "id", "xsi:type"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("<x/>", "element-unknown"),
        ('<label xmlns="urn:x"/>', "element-unknown"),
        ('<label xmlns=""/>', "element-unknown"),
        ("<label>a<b/></label>", "element-unknown"),
        ("<label/><label/>", "element-repeated"),
        ("stray<label/>", "text-stray"),
        ("<label/>stray", "text-stray"),
        ("<label/>\xa0", "text-stray"),
        ('<label id="1"/>', "attribute-unknown"),
        ('<label xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>', "attribute-unknown"),
    ],
)
def test_each_problem_has_the_code_of_its_rule(body: str, code: str) -> None:
    assert [each[0] for each in in_case(f"<expectation><name>n</name>{body}</expectation>")] == [code]


@pytest.mark.parametrize("flag", ["TRUE", "", "yes", "2"])
def test_other_booleans_are_invalid(flag: str) -> None:
    parameter = f"<parameter><name>n</name><value>v</value><isReference>{flag}</isReference></parameter>"
    found = in_case(f"<expectation><name>n</name>{parameter}</expectation>")
    assert [code for code, _, _ in found] == ["value-invalid"]
