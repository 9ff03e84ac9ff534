from __future__ import annotations

import json

import pytest

from evalmeta.errors import FormatError
from evalmeta.formats.testspec import read_testspec
from evalmeta.model.definition import (
    ContextVariable,
    Definition,
    Expectation,
    HistoryMessage,
    Inputs,
    Parameter,
    PromptInput,
    TestCase,
)
from evalmeta.model.registry import TESTING_DEFINITION
from formats.specs import SPEC, STUDIO_SPEC

HEAD = "name: T\nsubjectType: AGENT\nsubjectName: A\ntestCases:\n"
CASE = HEAD + "  - utterance: Hi\n"


def problems(spec: str | bytes) -> list[str]:
    with pytest.raises(FormatError) as caught:
        read_testspec(spec if isinstance(spec, bytes) else spec.encode(), label="t.yaml")
    return [
        f"{problem.location} {problem.message} [{problem.code}] {problem.hint}".strip()
        for problem in caught.value.problems
    ]


def test_a_spec_of_testing_center_is_read_whole() -> None:
    assert read_testspec(SPEC.encode(), label="t.yaml") == Definition(
        "Desk Test",
        "Desk",
        subject_version="v2",
        description="What the desk must know",
        test_cases=(
            TestCase(
                Inputs(
                    "Where's my order 7?",
                    (ContextVariable("CaseId", "500000000000001"),),
                    (HistoryMessage("user", "Hi", None, 0), HistoryMessage("agent", "Hello", "Greeting", 4)),
                ),
                (
                    Expectation(
                        "string_comparison",
                        label="Order id used",
                        parameters=(
                            Parameter("operator", "equals", is_reference=False),
                            Parameter("actual", "$.generatedData.outcome", is_reference=True),
                            Parameter("expected", "7"),
                        ),
                    ),
                    Expectation("topic_sequence_match", "Orders"),
                    Expectation("action_sequence_match", "['FindOrder', 'Ask Carrier']"),
                    Expectation("bot_response_rating", "The order is on its way."),
                    Expectation("factuality"),
                    Expectation("output_latency_milliseconds"),
                ),
                1,
            ),
            TestCase(
                Inputs("Refund me"), (Expectation("action_sequence_match", "[]"), Expectation("bot_response_rating")), 2
            ),
        ),
    )


def test_a_spec_of_agentforce_studio_is_read_whole() -> None:
    same = (Expectation("topic_sequence_match", "Orders"), Expectation("coherence"))
    assert read_testspec(STUDIO_SPEC.encode(), label="t.yaml") == Definition(
        "Desk_Studio",
        "Desk",
        test_cases=(
            TestCase(Inputs("Where is it?"), same, 1),
            TestCase(Inputs("And now?", (), (HistoryMessage("user", "Hi", None, 0),)), same, 2),
            TestCase(
                Inputs("", prompt_inputs=(PromptInput("Input:Case", "500"),)),
                (Expectation("response_match", "Yes."),),
                3,
            ),
        ),
        type=TESTING_DEFINITION,
    )


def test_a_key_without_a_value_is_an_expectation_without_one() -> None:
    spec = f"{CASE}    expectedTopic:\n    expectedActions: ~\n    expectedOutcome: null\n    metrics:\n"

    assert read_testspec(spec.encode(), label="t").test_cases[0].expectations == (
        Expectation("topic_sequence_match"),
        Expectation("action_sequence_match"),
        Expectation("bot_response_rating"),
    )


def test_json_is_read_too() -> None:
    spec = {"name": "T", "subjectType": "AGENT", "subjectName": "A", "testCases": [{"utterance": "é\n"}]}

    assert read_testspec(json.dumps(spec).encode(), label="t.json").test_cases[0].inputs.utterance == "é\n"


@pytest.mark.parametrize("text", ["7", "-1", "0.5", "true", "false", "yes", "1:30", "2024-01-01", "0b1"])
def test_what_every_program_writes_alike_needs_no_quotes(text: str) -> None:
    spec = f"{CASE}    expectedTopic: {text}\n"

    assert read_testspec(spec.encode(), label="t").test_cases[0].expectations[0].expected_value == text


@pytest.mark.parametrize("text", ["007", "1.0", "1e3", "0x1F", "True", ".inf", "-0", "12345678901234567890"])
def test_what_another_program_would_write_otherwise_needs_quotes(text: str) -> None:
    kind = "boolean" if text == "True" else "number"
    message = f"'expectedTopic' is the {kind} {text}, which other programs may write differently"

    assert problems(f"{CASE}    expectedTopic: {text}\n") == [
        f't:6:20 {message} [spec-number] Put it in quotes: "{text}".'.replace("t:", "t.yaml:")
    ]
    quoted = read_testspec(f'{CASE}    expectedTopic: "{text}"\n'.encode(), label="t")
    assert quoted.test_cases[0].expectations[0].expected_value == text


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        (
            "a: 1\n",
            [
                (
                    "t.yaml:1:1 a test spec has no key 'a' [spec-key]"
                    " Known: name, description, subjectType, subjectName, subjectVersion, testCases,"
                    " subject, defaults, cases, columns, iterations, min_pass_rate."
                ),
                "t.yaml:1:1 a test spec needs 'testCases' [spec-missing]",
            ],
        ),
        ("- a\n", ["t.yaml:1:1 a test spec is a list, not a mapping [spec-type] Write testCases: above the list."]),
        ("", ["t.yaml:1:1 a test spec is null, not a mapping [spec-type]"]),
        (
            CASE + "    expectedTopics: x\n",
            ["t.yaml:6:5 a test case has no key 'expectedTopics' [spec-key] Did you mean 'expectedTopic'?"],
        ),
        (
            CASE + "    expectations: []\n",
            [
                (
                    "t.yaml:6:5 a test case has no key 'expectations' [spec-key]"
                    " Write each check as a key of the test case, such as contains: Paris."
                )
            ],
        ),
        (
            CASE + "    expectedTopic: [a]\n",
            ["t.yaml:6:20 'expectedTopic' of a test case is a list, not a text [spec-type]"],
        ),
        (
            CASE + "    expectedTopic: {}\n",
            ["t.yaml:6:20 'expectedTopic' of a test case is a mapping, not a text [spec-type]"],
        ),
        (
            CASE + "    expectedActions: A\n",
            [
                (
                    "t.yaml:6:22 'expectedActions' of a test case is a text, not a list [spec-type]"
                    " Begin each item with '- '."
                )
            ],
        ),
        (CASE + "    expectedActions: [' ']\n", ["t.yaml:6:23 an action has no name [spec-missing]"]),
        (
            CASE + "    expectedActions: [a, ]\n    metrics: [~]\n",
            ["t.yaml:7:15 'metrics' of a test case has an empty item [spec-missing]"],
        ),
        (
            CASE + "    metrics: [coherense]\n",
            ["t.yaml:6:15 'coherense' is not a valid metric [spec-value] Did you mean 'coherence'?"],
        ),
        (CASE + "    metrics: [[]]\n", ["t.yaml:6:15 'metrics' of a test case holds a list, not a text [spec-type]"]),
        (
            CASE + "    customEvaluations:\n      - {name: string_comparisson}\n",
            [
                (
                    "t.yaml:7:16 'string_comparisson' is not a valid custom evaluation [spec-value]"
                    " Did you mean 'string_comparison'?"
                )
            ],
        ),
        (
            CASE + "    customEvaluations:\n      - {name: string_comparison, JSONPath: $.x}\n",
            [
                (
                    "t.yaml:7:35 a custom evaluation has no key 'JSONPath' [spec-key]"
                    " Write a list of parameters: operator, actual (isReference: true) and expected."
                )
            ],
        ),
        (
            CASE
            + "    customEvaluations:\n      - name: string_comparison\n"
            + "        parameters: [{name: a, value: b, isReference: 1}]\n",
            ["t.yaml:8:55 'isReference' of a parameter is a number, not true or false [spec-type]"],
        ),
        (
            CASE + "    conversationHistory: [{role: user, message: m, index: true}]\n",
            ["t.yaml:6:59 'index' of a message is a boolean, not a whole number [spec-type]"],
        ),
        (
            CASE + '    expectedOutcome: "a\\u0001"\n',
            ["t.yaml:6:22 'expectedOutcome' has the character U+0001, which XML cannot hold [spec-character]"],
        ),
        (CASE.replace("AGENT", "PROMPT"), ["t.yaml:2:14 'subjectType' is 'PROMPT', not AGENT [spec-value]"]),
        (HEAD + "  - {}\n", ["t.yaml:5:5 a test case needs 'utterance' [spec-missing]"]),
        (HEAD + "  - {scorers: []}\n", ["t.yaml:5:5 a test case of Agentforce Studio needs 'inputs' [spec-missing]"]),
        (
            HEAD + "  - inputs: [{}]\n",
            [
                "t.yaml:5:5 a test case of Agentforce Studio needs 'scorers' [spec-missing]",
                "t.yaml:5:14 an input needs 'utterance' [spec-missing]",
            ],
        ),
    ],
)
def test_what_does_not_fit_is_told_with_its_place(spec: str, found: list[str]) -> None:
    assert problems(spec) == found


def test_an_error_says_its_problems_the_first_one_first() -> None:
    with pytest.raises(
        FormatError,
        match=r"^t\.yaml:5:5: a test case needs 'utterance', and 1 more\n  t\.yaml:6:5: a test case needs 'utterance'$",
    ):
        read_testspec(f"{HEAD}  - {{}}\n  - {{}}\n".encode(), label="t.yaml")


def test_problems_are_told_up_to_a_number() -> None:
    assert len(problems(HEAD + "  - {}\n" * 1_001)) == 1_000
