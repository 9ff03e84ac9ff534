from __future__ import annotations

import pytest

from evalmeta.model.registry import EVALUATION_DEFINITION, TESTING_DEFINITION, ApiVersion
from evalmeta.validation.rules import RulePolicy
from evalmeta.validation.validator import validate_component
from evalmeta.xmlio.reader import NAMESPACE

INPUTS = "<inputs><utterance>Hi</utterance></inputs>"
PROMPT_INPUTS = "<inputs><promptInput><referenceName>r</referenceName><value/></promptInput></inputs>"
SCORER = "<scorer><name>coherence</name></scorer>"
TURNS = "".join(
    f"<conversationHistory><role>{role}</role><topic>t</topic></conversationHistory>" for role in ("user", "agent")
)


def case(number: int | str = 1, inputs: str = INPUTS, scorer: str = SCORER) -> str:
    return f"<testCase><number>{number}</number>{inputs}{scorer}</testCase>"


def scorer(name: str, value: str = "", kind: str = "") -> str:
    return f"<scorer><name>{name}</name>{value and f'<expectedValue>{value}</expectedValue>'}{kind}</scorer>"


def told(
    *cases: str, name: str = "D", subject: str = "AGENT", version: int = 66, profile: str = "documented"
) -> list[str]:
    text = (
        f'<AiTestingDefinition xmlns="{NAMESPACE}"><name>{name}</name><subjectName>s</subjectName>'
        f"<subjectType>{subject}</subjectType>{''.join(cases)}</AiTestingDefinition>"
    )
    problems = validate_component(
        TESTING_DEFINITION,
        text.encode(),
        label="d",
        full_name="D",
        policy=RulePolicy(profile),
        api_version=ApiVersion(version),
    )
    return [f"{problem.severity} {problem.code}" for problem in problems]


def test_a_good_definition_has_no_problem() -> None:
    assert told(case(2), case(1)) == []


@pytest.mark.parametrize(("version", "problems"), [(65, ["error type-version"]), (66, []), (67, [])])
def test_the_type_needs_its_version(version: int, problems: list[str]) -> None:
    assert told(case(), version=version) == problems


def test_the_name_is_the_files() -> None:
    assert told(case(), name="E") == ["error name-mismatch"]
    assert told(case(), name="E", profile="orgs") == ["warning name-mismatch"]
    assert told(case(), name="a label") == ["error name-format"]


@pytest.mark.parametrize("numbers", [(1, 3), (0, 1), (2,), (-1,)])
def test_numbers_have_no_gaps(numbers: tuple[int, ...]) -> None:
    assert told(*map(case, numbers)) == ["error number-gap"]


@pytest.mark.parametrize(("length", "problems"), [(100, []), (101, ["error description-too-long"])])
def test_a_description_has_a_labels_length(length: int, problems: list[str]) -> None:
    assert told(case(), f"<description>{'x' * length}</description>") == problems


@pytest.mark.parametrize("inputs", ["", INPUTS * 2, INPUTS + PROMPT_INPUTS])
def test_a_case_has_inputs_once(inputs: str) -> None:
    [problem] = set(told(case(inputs=inputs)))
    assert problem in {"error element-missing", "error element-repeated"}


def test_an_agent_is_asked_and_a_prompt_template_filled_in() -> None:
    assert told(case(inputs="<inputs/>")) == ["error utterance-empty"]
    assert told(case(inputs="<inputs/>"), subject="PROMPT") == ["error prompt-inputs-missing"]
    assert told(case(inputs=PROMPT_INPUTS), subject="PROMPT") == []


@pytest.mark.parametrize("field", ["<referenceName>r</referenceName>", "<value>v</value>"])
def test_a_prompt_input_has_a_name_and_a_value(field: str) -> None:
    inputs = f"<inputs><promptInput>{field}</promptInput></inputs>"
    assert told(case(inputs=inputs), subject="PROMPT") == ["error element-missing"]


def test_a_scorer_judges_the_subjects_type() -> None:
    unsupported = case(inputs=PROMPT_INPUTS, scorer=scorer("topic_sequence_match", "t"))
    assert told(unsupported, subject="PROMPT") == ["warning scorer-unsupported"]


def test_task_resolution_needs_a_conversation() -> None:
    assert told(case(scorer=scorer("task_resolution"))) == ["error scorer-history-missing"]
    inputs = INPUTS.replace("<inputs>", f"<inputs>{TURNS}")
    assert told(case(inputs=inputs, scorer=scorer("task_resolution"))) == []


@pytest.mark.parametrize(
    ("element", "problems"),
    [
        (scorer("tone"), ["warning scorer-unknown"]),
        (scorer("topic_assertion", "t"), ["warning scorer-unknown"]),
        (scorer("tone", kind="<scorerType>Custom</scorerType>"), []),
        (scorer("tone", "v", kind="<scorerType>Custom</scorerType>"), ["warning expected-value-unused"]),
        (scorer("coherence", "v"), ["warning expected-value-unused"]),
        (scorer("response_match"), ["error expected-value-missing"]),
        (scorer("agent_handoff_match", " "), ["error expected-value-missing"]),
        (scorer("action_sequence_match", "Find"), []),
        (scorer("action_sequence_match", "[]"), []),
        (scorer("action_sequence_match", "['Find', Tell]"), ["error actions-unreadable"]),
        (scorer("coherence") * 2, ["warning expectation-twice"]),
        ("", ["warning expectations-missing"]),
    ],
)
def test_scorers_are_checked(element: str, problems: list[str]) -> None:
    assert told(case(scorer=element)) == problems


def test_each_type_names_the_element_of_the_other() -> None:
    body = (
        f"<name>D</name><subjectName>s</subjectName><subjectType>AGENT</subjectType><testCase>{INPUTS}{{}}</testCase>"
    )
    for kind, wrong, right in (
        (EVALUATION_DEFINITION, "scorer", "expectation"),
        (TESTING_DEFINITION, "expectation", "scorer"),
    ):
        text = f'<{kind.name} xmlns="{NAMESPACE}">{body.format(f"<number>1</number><{wrong}/>")}</{kind.name}>'
        [problem] = validate_component(kind, text.encode(), label="d", full_name="D")[:1]
        assert (problem.code, problem.hint) == ("element-unknown", f"Did you mean <{right}>?")
