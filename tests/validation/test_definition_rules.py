from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.definition import ContextVariable, Definition, Expectation, Inputs, Parameter, TestCase
from evalmeta.model.registry import SCORER_DEFINITION, ApiVersion
from evalmeta.validation.definition_rules import (
    DefinitionScope,
    find_empty_required,
    find_full_name_format,
    find_name_format,
    find_no_test_cases,
    find_parameters_before_their_version,
    find_too_many_test_cases,
    is_api_name,
)
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.reader import NAMESPACE

CASE = TestCase(Inputs("u"))
CUSTOM = TestCase(Inputs("u"), (Expectation("coherence"), Expectation("x", parameters=(Parameter("n", "v"),))))


def scope(*cases: TestCase, name: str = "n", full_name: str = "N", version: int = 64) -> DefinitionScope:
    return DefinitionScope(Definition(name, "s", test_cases=cases), full_name, ApiVersion(version))


@pytest.mark.parametrize("name", ["a", "A1", "my_test_n1", "a_1_b", "Ab0"])
def test_api_names(name: str) -> None:
    assert is_api_name(name)


@pytest.mark.parametrize("name", ["", "1a", "_a", "a_", "a__b", "a b", "a-b", "\u00e4", "a\n", "\uff41", "a.b"])
def test_other_names_are_not_api_names(name: str) -> None:
    assert not is_api_name(name)


@given(st.from_regex(r"[A-Za-z0-9_]{1,20}", fullmatch=True))
def test_an_api_name_obeys_every_sentence_of_the_reference(name: str) -> None:
    obeys = name[0].isalpha() and not name.endswith("_") and "__" not in name
    assert is_api_name(name) is obeys


@pytest.mark.parametrize(
    ("name", "word"), [("a__b", "not a valid API name"), ("a b", "not a valid API name"), ("a" * 81, "81 characters")]
)
def test_a_file_name_is_an_api_name(name: str, word: str) -> None:
    (finding,) = find_full_name_format(scope(full_name=name))
    assert word in finding.message


def test_a_file_name_may_have_eighty_characters() -> None:
    assert list(find_full_name_format(scope(full_name="a" * 80))) == []


@pytest.mark.parametrize(("name", "count"), [("Employee agent tests", 1), ("a", 0), ("", 0), (" ", 0)])
def test_a_label_in_name_is_reported_once(name: str, count: int) -> None:
    assert len(list(find_name_format(scope(name=name)))) == count


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_required_names_are_not_blank(blank: str) -> None:
    case = TestCase(Inputs("u", (ContextVariable("a", ""), ContextVariable(blank, "v"))))
    found = find_empty_required(replace(scope(), definition=Definition(blank, blank, test_cases=(CASE, case))))
    assert [finding.steps[-1][0] for finding in found] == ["name", "subjectName", "variableName"]


def test_the_blank_variable_is_the_one_that_is_shown() -> None:
    case = TestCase(Inputs("u", (ContextVariable("a", ""), ContextVariable("", "v"))))
    (finding,) = find_empty_required(scope(CASE, case))
    assert finding.steps == (("testCase", 1), ("inputs", 0), ("contextVariable", 1), ("variableName", 0))


def test_a_definition_has_test_cases() -> None:
    assert len(list(find_no_test_cases(scope()))) == 1
    assert list(find_no_test_cases(scope(CASE))) == []


@pytest.mark.parametrize(("count", "steps"), [(1_000, []), (1_001, [(("testCase", 1_000),)])])
def test_the_first_case_too_many_is_shown(count: int, steps: list[object]) -> None:
    assert [finding.steps for finding in find_too_many_test_cases(scope(*[CASE] * count))] == steps


def test_parameters_are_reported_once_with_the_first_of_them() -> None:
    (finding,) = find_parameters_before_their_version(scope(CASE, CUSTOM, CUSTOM, version=63))
    assert finding.steps == (("testCase", 1), ("expectation", 1), ("parameter", 0))
    assert finding.message == "<parameter> requires API version 64.0; the version in use is 63.0"


def test_parameters_are_known_from_their_version_on() -> None:
    assert list(find_parameters_before_their_version(scope(CUSTOM, version=64))) == []
    assert list(find_parameters_before_their_version(scope(CASE, version=63))) == []


def version(inside: str = "", *, status: str = "Available", number: int = 1) -> str:
    head = f"<label>l</label><status>{status}</status><versionNumber>{number}</versionNumber>"
    return f"<scorerVersion>{head}<engine><engineType>Manual</engineType></engine>{inside}</scorerVersion>"


def output(value: str) -> str:
    return f"<outputEnumValue><outcomeType>Pass</outcomeType><value>{value}</value></outputEnumValue>"


def agent(rate: str, *, active: str = "false") -> str:
    fields = f"<agentApiName>a</agentApiName><isActive>{active}</isActive><samplingRate>{rate}</samplingRate>"
    return f"<agentAssociation>{fields}</agentAssociation>"


def codes(*versions: str, name: str = "Polite", lightning_type: str = "lightning__textType") -> list[str]:
    head = "<dataType>LightningType</dataType><inputScope>Session</inputScope>"
    head += f"<lightningType>{lightning_type}</lightningType>" if lightning_type else ""
    text = f'<AiAgentScorerDefinition xmlns="{NAMESPACE}">{head}{"".join(versions)}</AiAgentScorerDefinition>'
    return [each.code for each in validate_component(SCORER_DEFINITION, text.encode(), label="d", full_name=name)]


def test_a_scorer_needs_a_version() -> None:
    assert (codes(), codes(version())) == (["scorer-versions"], [])


def test_versions_are_numbered_from_1() -> None:
    assert codes(version(number=0)) == ["scorer-versions"]


def test_a_name_has_at_most_35_characters() -> None:
    assert (codes(version(), name="a" * 35), codes(version(), name="a" * 36)) == ([], ["scorer-name-too-long"])


def test_a_version_has_at_most_101_output_values() -> None:
    values = [output(str(number)) for number in range(102)]
    assert codes(version("".join(values[:101]))) == []
    assert codes(version("".join(values))) == ["scorer-outputs"]
    assert codes(version(output(" "))) == ["scorer-outputs"]


@pytest.mark.parametrize("rate", ["0", "1.0", " 0.1 "])
def test_a_sampling_rate_is_a_share(rate: str) -> None:
    assert codes(version(agent(rate))) == []


@pytest.mark.parametrize("rate", ["1.1", "-1", "nan", "", "10%"])
def test_no_other_text_is_a_sampling_rate(rate: str) -> None:
    assert codes(version(agent(rate))) == ["scorer-associations"]


def test_only_an_available_version_is_active_and_only_one() -> None:
    active = agent("1", active="true")
    assert codes(version(active), version(number=2)) == []
    assert codes(version(active, status="Draft")) == ["scorer-associations"]
    assert codes(version(active), version(active, number=2)) == ["scorer-associations"]


def test_a_lightning_type_is_needed() -> None:
    assert codes(version(), lightning_type="") == ["scorer-type-unknown"]


@pytest.mark.parametrize("status", ["draft", ""])
def test_a_status_is_one_of_three(status: str) -> None:
    assert codes(version(status=status)) == ["value-invalid"]
