"""A large document is told the same as a small one, although nobody walks through it with xmlschema."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, assume, given, settings

from evalmeta import limits
from evalmeta.model.registry import TESTING_DEFINITION, TYPES
from evalmeta.validation.structure import check_schema
from evalmeta.xmlio.reader import NAMESPACE, read_xml
from examples import EXAMPLES
from strategies import QUIRKS, documents

HEAD = "<name>n</name><subjectName>s</subjectName><subjectType>AGENT</subjectType>"
INPUTS = "<inputs><utterance>u</utterance></inputs>"
DEFINITION = f'<AiEvaluationDefinition xmlns="{NAMESPACE}">{HEAD}{{}}</AiEvaluationDefinition>'
PACKAGE = f'<Package xmlns="{NAMESPACE}"><types>{{}}</types></Package>'


def told_as_both(text: str, xsd: str = TYPES[0].xsd) -> list[list[tuple[str, str, str]]]:
    document = read_xml(text.encode(), label="d")
    found = []
    for most in (limits.MAX_EXPLAINED_ELEMENTS, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(limits, "MAX_EXPLAINED_ELEMENTS", most)
            complaints = check_schema(document, xsd)
        found.append([(str(each.problem), each.problem.hint, str(each.unread)) for each in complaints])
    return found


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(documents())
def test_a_survey_says_what_xmlschema_says(text: str) -> None:
    assume(text.startswith(f'<AiEvaluationDefinition xmlns="{NAMESPACE}"'))
    small, large = told_as_both(text)
    if any(quirk in text for quirk in QUIRKS):
        assert set(small) <= set(large)
    else:
        assert small == large


@pytest.mark.parametrize(
    "case",
    [
        f"{INPUTS}<number>1</number><number>2</number>",
        "<inputs/><inputs><utterance/></inputs>",
        f"{INPUTS}<number>1<x/></number>",
        f"{INPUTS}<number>1_0</number>",
        f"{INPUTS}<x><number/></x><number xmlns=''>1</number>text",
        f"{INPUTS}<number>1</number></testCase><testCase>{INPUTS}<number>01</number>",
    ],
)
def test_a_faulty_case_is_told_alike(case: str) -> None:
    small, large = told_as_both(DEFINITION.format(f"<testCase>{case}</testCase>"))
    assert small == large != []


@pytest.mark.parametrize("content", ["", "<name/><name/>", "<name/><member/>", "<name/>text", "<name><x/></name>"])
def test_a_faulty_manifest_is_told_alike(content: str) -> None:
    small, large = told_as_both(PACKAGE.format(content), "package.xsd")
    assert small == large != []


@pytest.mark.parametrize(
    "case",
    ["", "<number/>", "<number>1</number><scorer/>", "<number>1</number><scorer><scorerType>x</scorerType></scorer>"],
)
def test_a_faulty_case_of_the_other_type_is_told_alike(case: str) -> None:
    text = DEFINITION.replace("AiEvaluation", "AiTesting").format(f"<testCase>{case}</testCase>")
    small, large = told_as_both(text, TESTING_DEFINITION.xsd)
    assert small == large != []


def test_what_fits_is_told_nothing() -> None:
    assert told_as_both(DEFINITION.format(f"<testCase>{INPUTS}</testCase>")) == [[], []]


def test_what_nobody_can_explain_is_told_in_the_words_of_libxml2() -> None:
    _, ((problem, hint, _),) = told_as_both(f'<testCase xmlns="{NAMESPACE}"/>')
    assert "d:1:1: error: Element 'testCase': No matching global declaration" in problem
    assert hint == "Compare the file with AiEvaluationDefinition.xsd."
