from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.errors import SettingsError
from evalmeta.model.problem import Problem, Severity
from evalmeta.model.registry import EVALUATION_DEFINITION, ApiVersion
from evalmeta.model.settings import Profile, RuleSetting, Settings
from evalmeta.validation.rules import RulePolicy, rule_policy
from evalmeta.validation.validator import validate_component, validate_manifest
from evalmeta.xmlio.definitions import write_definition
from evalmeta.xmlio.reader import NAMESPACE
from examples import EXAMPLES
from strategies import definitions, documents

HEAD = "<name>n</name><subjectName>s</subjectName><subjectType>AGENT</subjectType>"
INPUTS = "<inputs><utterance>u</utterance></inputs>"
TOPIC = "<expectation><name>topic_assertion</name><expectedValue>t</expectedValue></expectation>"
GOOD = f"<testCase>{INPUTS}{TOPIC}</testCase>"
LABELLED = HEAD.replace("<name>n", "<name>A label") + GOOD


def check(
    body: str,
    *,
    profile: Profile = "documented",
    rules: dict[str, RuleSetting] | None = None,
    full_name: str = "D",
    version: int = 64,
) -> list[Problem]:
    return validate_component(
        EVALUATION_DEFINITION,
        f'<AiEvaluationDefinition xmlns="{NAMESPACE}">{body}</AiEvaluationDefinition>'.encode(),
        label="d",
        full_name=full_name,
        policy=RulePolicy(profile, rules or {}),
        api_version=ApiVersion(version),
    )


def codes(body: str, *, full_name: str = "D") -> list[str]:
    return [problem.code for problem in check(body, full_name=full_name)]


def manifest_codes(body: str) -> list[str]:
    data = f'<Package xmlns="{NAMESPACE}">{body}</Package>'.encode()
    return [problem.code for problem in validate_manifest(data, label="package.xml")[1]]


def test_a_good_definition_has_no_problem() -> None:
    assert check(HEAD + GOOD) == []


def test_every_problem_names_the_component() -> None:
    assert {problem.component for problem in check("")} == {"AiEvaluationDefinition:D"}


@pytest.mark.parametrize(("profile", "severity"), [("documented", "error"), ("orgs", "warning")])
def test_a_profile_decides_the_severity_of_a_label(profile: Profile, severity: str) -> None:
    assert [problem.severity for problem in check(LABELLED, profile=profile)] == [severity]


def test_an_error_that_orgs_accept_says_so_and_shows_the_setting() -> None:
    (problem,) = check(LABELLED)
    assert 'To accept it, as orgs do, set name-format = "warning" under [validate.rules]' in problem.hint


def test_an_error_that_a_project_chose_itself_does_not_say_how_to_accept_it() -> None:
    (problem,) = check(LABELLED, rules={"name-format": "error"})
    assert "as orgs do" not in problem.hint


@pytest.mark.parametrize("setting", ["error", "warning"])
@pytest.mark.parametrize("profile", ["documented", "orgs"])
def test_a_setting_wins_over_the_profile(profile: Profile, setting: RuleSetting) -> None:
    (problem,) = check(LABELLED, profile=profile, rules={"name-format": setting})
    assert (problem.code, problem.severity) == ("name-format", Severity(setting))


def test_orgs_is_the_profile_that_nobody_chose() -> None:
    assert RulePolicy() == rule_policy(None) == rule_policy(Settings()) == RulePolicy("orgs")
    assert rule_policy(Settings(), profile="documented") == RulePolicy("documented")


@pytest.mark.parametrize("value", ["", "<variableValue/>"])
@pytest.mark.parametrize(("profile", "severity"), [("documented", "error"), ("orgs", "warning")])
def test_a_context_variable_may_have_no_value_in_orgs(value: str, profile: Profile, severity: str) -> None:
    variable = f"<contextVariable><variableName>Tier</variableName>{value}</contextVariable>"
    body = HEAD + GOOD.replace("<utterance>", f"{variable}<utterance>")
    (problem,) = check(body, profile=profile)
    assert (problem.code, problem.severity, problem.message) == (
        "context-variable-empty",
        severity,
        "the context variable 'Tier' has no value",
    )


def test_a_rule_can_be_switched_off() -> None:
    assert check(LABELLED, rules={"name-format": "off"}) == []


def test_a_warning_can_be_made_an_error() -> None:
    (problem,) = check(HEAD, rules={"test-cases-missing": "error"})
    assert problem.is_error
    assert "as orgs do" not in problem.hint


def settings_of(**rules: str) -> Settings:
    return Settings.model_validate(
        {"validate": {"rules": {key.replace("_", "-"): value for key, value in rules.items()}}}
    )


def test_settings_become_a_policy() -> None:
    policy = rule_policy(settings_of(name_format="off"))
    assert (policy.profile, policy.rules) == ("orgs", {"name-format": "off"})


@pytest.mark.parametrize(
    ("code", "message", "action"),
    [
        ("name_formatt", "sets an unknown rule, 'name-formatt'", "Did you mean 'name-format'?"),
        ("zzz", "sets an unknown rule, 'zzz'", "Known: action-unknown, "),
        ("xml_doctype", "sets 'xml-doctype', whose severity is fixed", "Remove 'xml-doctype'."),
    ],
)
def test_a_code_that_cannot_be_set_is_a_settings_error(code: str, message: str, action: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        rule_policy(settings_of(**{code: "off"}))
    assert caught.value.actions[0].startswith(action)


def test_all_problems_of_a_file_come_in_one_pass_in_its_order() -> None:
    bad_case = f"\n<testCase>{INPUTS}\n<number>x</number>\n<expectation><name>y</name></expectation></testCase>"
    bad_history = "\n<testCase><inputs><utterance/><contextVariables/></inputs></testCase>"
    found = check(HEAD.replace("<name>n", "<name>A label") + bad_case + bad_history, full_name="a__b")
    assert [(problem.code, problem.location.line) for problem in found] == [
        ("full-name-format", 1),
        ("name-format", 1),
        ("value-invalid", 3),
        ("expectation-unknown", 4),
        ("expectations-missing", 5),
        ("utterance-empty", 5),
        ("element-unknown", 5),
    ]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (HEAD.replace("<name>n</name>", "") + GOOD, ["element-missing"]),
        (f"{HEAD}<testCase>{TOPIC}</testCase>", ["element-missing"]),
        (f"{HEAD}<testCase><inputs/>{TOPIC}</testCase>", ["element-missing"]),
        (f"{HEAD}<testCase>{INPUTS}<expectations/></testCase>", ["element-unknown"]),
        (f"{HEAD}<testCases/>", ["element-unknown"]),
        (HEAD + GOOD.replace("expectedValue", "expectedvalue"), ["element-unknown"]),
        (HEAD + GOOD.replace("<name>topic_assertion</name>", ""), ["element-missing"]),
        (HEAD + GOOD.replace("<utterance>u", '<utterance xmlns="urn:x">'), ["element-unknown"]),
        (HEAD + GOOD.replace("<utterance>u", "<utterance><b/>"), ["element-unknown"]),
    ],
)
def test_what_only_follows_from_a_problem_of_structure_is_not_reported(body: str, told: list[str]) -> None:
    assert sorted(codes(body)) == sorted(told)


def test_a_wrong_index_is_reported_once() -> None:
    history = "<conversationHistory><index>x</index><role>user</role></conversationHistory>"
    agent = "<conversationHistory><index>1</index><role>agent</role><topic>t</topic></conversationHistory>"
    assert codes(HEAD + GOOD.replace("<utterance>", history + agent + "<utterance>")) == ["value-invalid"]


def test_a_structure_that_does_not_fit_leaves_the_file_name_to_be_judged() -> None:
    assert codes("<x/>" + GOOD, full_name="a__b").count("full-name-format") == 1


def test_an_api_version_decides_about_parameters() -> None:
    custom = "".join(
        f"<parameter><name>{name}</name><value>{value}</value></parameter>"
        for name, value in {"operator": "equals", "actual": "a", "expected": "a"}.items()
    )
    body = HEAD + GOOD.replace(TOPIC, f"<expectation><name>string_comparison</name>{custom}</expectation>")
    assert [problem.code for problem in check(body, version=63)] == ["parameter-version"]
    assert check(body, version=64) == []


@pytest.mark.slow
def test_at_most_1000_findings_are_reported() -> None:
    cases = f"<testCase>{INPUTS}<expectation><name>x</name></expectation></testCase>" * 2_000
    problems = check(HEAD + cases)
    assert len(problems) == limits.MAX_PROBLEMS
    assert problems[-1].hint.endswith("There are more problems; at most 1,000 of a file are reported at a time.")


@settings(deadline=None)
@given(st.binary(max_size=300) | st.text().map(str.encode))
def test_any_bytes_give_problems_and_never_an_exception(data: bytes) -> None:
    assert validate_component(EVALUATION_DEFINITION, data, label="d", full_name="D")
    assert validate_manifest(data, label="package.xml")[1]


@settings(deadline=None, max_examples=EXAMPLES)
@given(documents(), st.data())
def test_a_damaged_document_gives_problems_and_never_an_exception(text: str, data: st.DataObject) -> None:
    damaged = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=3))
    found = validate_component(EVALUATION_DEFINITION, bytes(damaged), label="d", full_name="D")
    assert all(problem.message and problem.hint and problem.location.line for problem in found)


@settings(deadline=None)
@given(definitions(EVALUATION_DEFINITION))
def test_a_definition_that_was_written_fits_the_type(definition: object) -> None:
    data = write_definition(definition)
    assert not [
        problem
        for problem in validate_component(EVALUATION_DEFINITION, data, label="d", full_name="D")
        if "element" in problem.code
    ]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("<version>64.0</version>", []),
        ("<version> 64.0\n</version><types><name> AiEvaluationDefinition </name><members>*</members></types>", []),
        ("", ["manifest-version-missing"]),
        ("<version>62.0</version>", ["manifest-version-old"]),
        ("<version>64.5</version>", ["manifest-version-invalid"]),
        ("<version>six</version>", ["manifest-version-invalid"]),
        (f"<version>{'6' * 5000}</version>", ["manifest-version-invalid"]),
        ("<version/>", ["manifest-version-invalid"]),
        ("<version>64.0</version><version>64.0</version>", ["element-repeated"]),
        ("<types><members>*</members></types><version>64.0</version>", ["element-missing"]),
        ("<types><name>Flow</name></types><version>64.0</version>", ["manifest-type-unknown"]),
        ("<types><name>Flow</name></types><version>50.0</version>", ["manifest-type-unknown"]),
        (
            "<types><name>AiEvaluationDefinition</name><members/></types><version>64.0</version>",
            ["manifest-member-empty"],
        ),
        ("<type/><version>64.0</version>", ["element-unknown"]),
        ("text<version>64.0</version>", ["text-stray"]),
    ],
)
def test_manifests_are_checked(body: str, told: list[str]) -> None:
    assert manifest_codes(body) == told


def test_a_mixed_manifest_may_name_other_types_but_misspell_none() -> None:
    names = ("AiEvaluationDefinition", "ApexClass", "FlowDefinition", "AiTestingDefinitions", "no type")
    types = "".join(f"<types><members>*</members><name>{name}</name></types>" for name in names)
    data = f'<Package xmlns="{NAMESPACE}">{types}<version>64.0</version></Package>'.encode()
    _, problems = validate_manifest(data, label="package.xml", mixed=True)
    assert [problem.code for problem in problems] == ["manifest-type-other"] * 2 + ["manifest-type-unknown"] * 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"<Package/>", f"<Package> is not in the namespace {NAMESPACE}"),
        (b"<package/>", "the root element is <package>, not <Package>"),
    ],
)
def test_another_root_is_not_a_manifest(data: bytes, message: str) -> None:
    manifest, (problem,) = validate_manifest(data, label="package.xml")
    assert (manifest, problem.code, problem.message) == (None, "xml-root", message)
    assert problem.hint == f'Begin the file with <Package xmlns="{NAMESPACE}">.'
