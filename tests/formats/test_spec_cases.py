from __future__ import annotations

from datetime import timedelta

import pytest

from evalmeta.errors import FormatError
from evalmeta.formats.definitions import definition_of
from evalmeta.formats.testspec import Spec, read_spec
from evalmeta.model.definition import ContextVariable, HistoryMessage
from evalmeta.model.evaluation import Quarantine, today
from formats.specs import shown

SOON = today() + timedelta(days=30)
LATEST = today() + timedelta(days=366)


INPUT = "Write input: and the message to the agent."


def read(text: str) -> Spec:
    return read_spec(text.encode(), label="tests/t.yaml")


def problems(text: str) -> list[str]:
    with pytest.raises(FormatError) as caught:
        read(text)
    return [shown(problem).removeprefix("tests/t.yaml:") for problem in caught.value.problems]


def labels(spec: Spec) -> list[list[str | None]]:
    return [[expectation.label for turn in case.turns for expectation in turn.expectations] for case in spec.cases]


def test_a_spec_with_short_forms_needs_only_test_cases() -> None:
    spec = read("testCases:\n- input: Hi\n  contains: Hello\n- utterance: Bye\n")
    assert (spec.is_own, spec.definition.name, spec.definition.subject_name) == (True, "t", "")
    assert [case.turns[0].utterance for case in spec.cases] == ["Hi", "Bye"]
    assert spec.lines == {1: 2, 2: 4}


def test_a_spec_that_sf_reads_needs_what_sf_needs() -> None:
    found = problems("subjectName: Desk\ntestCases:\n- utterance: Hi\n")
    assert [each.partition(" ")[2] for each in found] == [
        "a test spec needs 'subjectType' [spec-missing]",
        "a test spec needs 'name' [spec-missing]",
    ]


def test_a_case_has_a_name_tags_variables_and_a_history() -> None:
    [case] = read("""\
cases:
- name: late order
  tags: [smoke, orders]
  input: Where is it?
  contextVariables: [{name: id, value: 7}]
  conversationHistory: [{role: user, message: Hi}, {role: agent, message: Hello}]
""").cases
    assert (case.label, case.tags, case.context_variables) == (
        "late order",
        ("smoke", "orders"),
        (ContextVariable("id", "7"),),
    )
    assert case.history == (HistoryMessage("user", "Hi", None, 0), HistoryMessage("agent", "Hello", None, 1))


@pytest.mark.parametrize(("indices", "expected"), [((1, 0), ["Hi", "Hello"]), ((2, 0), ["Hello", "Hi"])])
def test_complete_indices_are_the_order_of_a_history(indices: tuple[int, int], expected: list[str]) -> None:
    hello, hi = indices
    history = f"[{{role: agent, message: Hello, index: {hello}}}, {{role: user, message: Hi, index: {hi}}}]"
    [case] = read(f"cases:\n- input: Bye\n  conversationHistory: {history}\n").cases
    assert [message.message for message in case.history] == expected


def test_a_case_has_a_quarantine_with_a_reason_and_a_last_day() -> None:
    spec = read(f"testCases:\n- input: Hi\n  quarantine: {{reason: flaky, until: {SOON}}}\n- input: Bye\n")
    assert [case.quarantine for case in spec.cases] == [Quarantine("flaky", SOON), None]


@pytest.mark.parametrize(
    ("quarantine", "found"),
    [
        ("{until: 2026-01-31}", "3:15 a quarantine needs 'reason' [spec-missing]"),
        ("{reason: ' ', until: 2026-01-31}", "3:24 the reason of a quarantine is empty [spec-missing]"),
        ("{reason: flaky}", "3:15 a quarantine needs 'until' [spec-missing]"),
        (
            "{reason: flaky, until: soon}",
            "3:38 'until' of a quarantine: 'soon' is not a day, such as 2027-01-31 [spec-value]",
        ),
        (
            "{reason: flaky, until: ''}",
            "3:38 'until' of a quarantine: '' is not a day, such as 2027-01-31 [spec-value]",
        ),
        (
            "{reason: flaky, until: 9999-01-31}",
            f"3:38 'until' of a quarantine: 9999-01-31 is more than 366 days away; the latest is {LATEST} [spec-value]",
        ),
        ("{why: flaky, reason: flaky, until: 2026-01-31}", "3:16 a quarantine has no key 'why' [spec-key] Use reason."),
        (
            "flaky",
            (
                "3:15 a quarantine is a text, not a mapping [spec-type]"
                " Write quarantine: {reason: why it fails, until: 2027-01-31}."
            ),
        ),
    ],
)
def test_a_quarantine_without_reason_or_near_end_is_an_error(quarantine: str, found: str) -> None:
    assert problems(f"testCases:\n- input: Hi\n  quarantine: {quarantine}\n") == [found]


def test_a_case_approves_calls_which_definitions_cannot_hold() -> None:
    spec = read("testCases:\n- input: Hi\n  approve: refund\n- input: Hi\n  approve: [a, b]\n- input: Hi\n")
    assert [case.approve for case in spec.cases] == [("refund",), ("a", "b"), ()]
    assert not spec.is_held_by_definitions
    definition, losses = definition_of(spec.document("t"))
    assert len(definition.test_cases) == 3
    assert "the approvals of a, b" in str(losses)


def test_a_key_of_a_case_in_a_turn_says_where_it_belongs() -> None:
    text = "testCases:\n- turns:\n  - input: Hi\n    contains: Hello\n    approve: [refund]\n"
    with pytest.raises(FormatError) as caught:
        read(text)
    [problem] = caught.value.problems
    assert problem.message == "a turn has no key 'approve'"
    assert problem.hint == "Write it in the test case, beside turns."


def test_defaults_quarantine_no_case() -> None:
    assert problems("defaults: {quarantine: {reason: a, until: 2026-01-31}}\ntestCases: []\n") == [
        "1:12 a mapping of defaults has no key 'quarantine' [spec-key] Write it in each test case."
    ]


def test_context_is_a_short_form_of_context_variables() -> None:
    spec = read("""\
defaults: {context: {customer: Ada, id: 7}}
testCases:
- input: One
- turns: [{input: Two}]
  context: {id: 8}
- input: Three
  context:
""")
    assert [case.context_variables for case in spec.cases] == [
        (ContextVariable("customer", "Ada"), ContextVariable("id", "7")),
        (ContextVariable("id", "8"),),
        (),
    ]


def test_defaults_apply_where_a_case_does_not_say_otherwise() -> None:
    spec = read("""\
defaults: {latency_ms: 500, not_contains: [sorry], tags: smoke, expectedTopic: A}
testCases:
- input: One
- input: Two
  not_contains: cannot
  topic: B
  tags: slow
- input: Three
  latency_ms:
  not_contains:
""")
    assert labels(spec) == [
        ['not_contains "sorry"', None, "latency_ms at most 500"],
        ['not_contains "cannot"', None, "latency_ms at most 500"],
        [None],
    ]
    assert [
        case.turns[0].expectations[place].expected_value for place, case in zip((1, 1, 0), spec.cases, strict=True)
    ] == ["A", "B", "A"]
    assert [case.tags for case in spec.cases] == [("smoke",), ("slow",), ("smoke",)]


NO_VALUE = "has no value, so it checks nothing [spec-value] Write what is expected, or remove the key."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("testCases:\n- input: Hi\n  contains:\n  matches: H\n", [f"3:12 'contains' {NO_VALUE}"]),
        ("testCases:\n- turns:\n  - input: Hi\n    topic:\n", [f"4:11 'topic' {NO_VALUE}"]),
        ("defaults:\n  tokens:\ntestCases:\n- input: Hi\n", [f"2:10 'tokens' {NO_VALUE}"]),
    ],
)
def test_a_check_without_a_value_that_removes_no_default_is_an_error(text: str, found: list[str]) -> None:
    assert problems(text) == found


def test_a_check_without_a_value_removes_the_default_of_its_other_name() -> None:
    assert labels(read("defaults: {expectedTopic: A}\ntestCases:\n- input: Hi\n  topic:\n")) == [[]]


def test_a_case_of_several_turns_has_checks_in_each() -> None:
    [case] = read("""\
defaults: {not_contains: sorry}
testCases:
- turns:
  - input: Hi
    contains: Hello
  - utterance: Where is it?
    topic: Orders
""").cases
    assert [(turn.utterance, [expectation.name for expectation in turn.expectations]) for turn in case.turns] == [
        ("Hi", ["contains", "not_contains"]),
        ("Where is it?", ["not_contains", "topic_sequence_match"]),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "testCases:\n- turns:\n  - input: Hi\n  contains: x\n",
            ["4:13 a test case with turns has no 'contains' of its own [spec-turns] Write it in a turn."],
        ),
        (
            "testCases:\n- turns: []\n",
            ["2:10 a test case has no turns [spec-missing] Write at least one turn with an input."],
        ),
        (
            "testCases:\n- input: Hi\n  utterance: Hi\n",
            ["2:10 a test case has 'utterance' and 'input', which mean the same [spec-both] Keep one of them."],
        ),
        (
            "testCases:\n- input: Hi\n  expectedTopic: A\n  topic: A\n",
            ["4:10 a test case has 'expectedTopic' and 'topic', which mean the same [spec-both] Keep one of them."],
        ),
        (
            "testCases: x\n",
            ["1:12 'testCases' of a test spec is a text, not a list [spec-type] Begin each item with '- '."],
        ),
        ("testCases:\n- Hi\n", [f"2:3 a test case is a text, not a mapping [spec-type] {INPUT}"]),
        ("testCases:\n- turns: [Hi]\n", [f"2:11 a turn is a text, not a mapping [spec-type] {INPUT}"]),
        ("testCases:\n- contains: x\n", ["2:3 a test case needs 'input' [spec-missing]"]),
        (
            "testCases:\n- inputs: Hi\n  contains: x\n",
            [
                "2:3 a test case has no key 'inputs' [spec-key] Use input for the message to the agent.",
                "2:3 a test case needs 'input' [spec-missing] There is 'inputs'; write 'input'.",
            ],
        ),
        (
            "defaults: {input: Hi}\ntestCases: []\n",
            ["1:12 a mapping of defaults has no key 'input' [spec-key] Write it in each test case."],
        ),
        (
            "subject: a:b\nsubjectName: A\ntestCases: []\n",
            ["1:10 a test spec has 'subjectName' and 'subject', which mean the same [spec-both] Keep one of them."],
        ),
        (
            "tests: []\n",
            [
                "1:1 a test spec has no key 'tests' [spec-key] Use testCases.",
                "1:1 a test spec needs 'testCases' [spec-missing]",
            ],
        ),
        (
            "cases: 7\n",
            ["1:8 '7' is not a file with test cases [spec-value] Name a file that ends in .csv, .tsv or .jsonl."],
        ),
        ("cases: {a: b}\n", ["1:8 'cases' of a test spec is a mapping, not a list or the name of a file [spec-type]"]),
        (
            "cases: q.csv\n",
            ["1:8 the file 'q.csv' cannot be found [spec-value] Write a path relative to the folder of the spec."],
        ),
        (
            "cases: data\\q.csv\n",
            ["1:8 the file 'data\\\\q.csv' cannot be found [spec-value] Write / between folders: data/q.csv."],
        ),
    ],
)
def test_a_mistake_is_reported_with_its_place(text: str, found: list[str]) -> None:
    assert problems(text) == found


@pytest.mark.parametrize("name", ["x" * 300 + ".csv", "\\0.csv"])
def test_a_name_that_no_file_can_have_is_not_a_file(name: str) -> None:
    [found] = problems(f'cases: "{name}"\n')
    assert found.startswith("1:8 the file ")


def terms(text: str) -> list[list[dict[str, object]]]:
    return [
        [dict(expectation.terms) for turn in case.turns for expectation in turn.expectations]
        for case in read(text).cases
    ]


def test_flags_are_terms_of_the_checks_that_they_concern() -> None:
    text = "testCases:\n- {input: Hi, contains: a, not_contains: b, matches: c, exact: true, empty: true}\n"
    both, alone = {"exact": True, "empty": True}, {"empty": True}
    assert terms(text) == [[both, both, alone]]


def test_flags_of_defaults_a_case_and_a_turn_replace_each_other() -> None:
    found = terms("""\
defaults: {exact: true, empty: true}
testCases:
- {input: Hi, contains: a}
- {input: Hi, contains: a, exact: false, empty: }
- exact: false
  turns:
  - {input: Hi, contains: a}
  - {input: Hi, contains: a, empty: false, exact: true}
""")
    assert found == [[{"exact": True, "empty": True}], [{}], [{"empty": True}, {"exact": True}]]


@pytest.mark.parametrize("key", ["exact", "empty"])
def test_a_flag_is_true_or_false(key: str) -> None:
    [found] = problems(f"testCases:\n- {{input: Hi, contains: a, {key}: maybe}}\n")
    assert "true or false" in found
