from __future__ import annotations

import csv
import json
from importlib import resources
from typing import TYPE_CHECKING

import pytest
import yaml
from jsonschema import Draft202012Validator

from evalmeta.engine.scorers import SCORERS
from evalmeta.errors import FormatError
from evalmeta.formats.document import Reading
from evalmeta.formats.files import digest_of, read_document
from evalmeta.formats.testspec import read_spec
from evalmeta.model.checks import CHECKS, OWN_CHECKS
from evalmeta.model.expectations import expectation_kind
from formats.specs import shown

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.checks import Check
    from evalmeta.model.definition import Expectation

SCHEMA = json.loads((resources.files("evalmeta.formats") / "schemas" / "testspec.schema.json").read_bytes())
HEAD = "testCases:\n- input: Hi\n  "


def expectations(line: str) -> tuple[Expectation, ...]:
    [case] = read_spec(f"{HEAD}{line}\n".encode(), label="t.yaml").cases
    return case.turns[0].expectations


def problem(line: str) -> str:
    with pytest.raises(FormatError) as caught:
        expectations(line)
    return shown(caught.value.problems[0])


LINES: list[tuple[str, list[tuple[str, str | None, str | None]]]] = [
    ("contains: Paris", [("contains", "Paris", 'contains "Paris"')]),
    ("contains: [a, 7]", [("contains", "a", 'contains "a"'), ("contains", "7", 'contains "7"')]),
    ("contains_any: [a, b]", [("contains_any", None, 'contains_any "a", "b"')]),
    ("not_contains: a", [("not_contains", "a", 'not_contains "a"')]),
    ("equals: ''", [("equals", "", 'equals ""')]),
    ("equals: {city: Paris, size: [1]}", [("json", None, 'equals {"city": "Paris", "size": [1]}')]),
    ("starts_with: a", [("starts_with", "a", 'starts_with "a"')]),
    ("ends_with: a", [("ends_with", "a", 'ends_with "a"')]),
    (r"matches: ^\d+$", [("matches", r"^\d+$", r"matches ^\d+$")]),
    ("topic: Orders", [("topic_sequence_match", "Orders", None)]),
    ("actions: [A, B]", [("action_sequence_match", "['A', 'B']", None)]),
    ("actions: A", [("action_sequence_match", "['A']", None)]),
    ("actions: []", [("action_sequence_match", "[]", None)]),
    ("actions: [A, {name: B, input: {id: 7}}]", [("action_sequence_match", "['A', 'B']", None)]),
    ("not_actions: Delete_*", [("not_actions", "Delete_*", "not_actions Delete_*")]),
    ("handoffs: [Triage, Orders]", [("handoffs", "['Triage', 'Orders']", "handoffs Triage, Orders")]),
    ("handoffs: []", [("handoffs", "[]", "handoffs none")]),
    (
        "state: {order.status: shipped, '$.items[0]': {count: {at_least: 2}}, user:name: null}",
        [
            ("state", None, 'state order.status "shipped"'),
            ("state", None, 'state $.items[0] {"count": {"at_least": 2}}'),
            ("state", None, "state user:name null"),
        ],
    ),
    ("max_actions: 0", [("max_actions", "0", "max_actions at most 0")]),
    ("json: {path: $.a, equals: b}", [("json", None, 'json $.a equals "b"')]),
    (
        "json: [{path: $.a, at_least: 1.5}, {path: $.b}, {path: $.c, equals: true}]",
        [
            ("json", None, "json $.a at_least 1.5"),
            ("json", None, "json $.b exists"),
            ("json", None, "json $.c equals true"),
        ],
    ),
    (
        "json: [{schema: {type: object}}, {path: $.a, schema: {type: string}, fenced: true}]",
        [("json", None, 'json $ schema {"type": "object"}'), ("json", None, 'json $.a schema {"type": "string"}')],
    ),
    ("rubric: Is polite", [("rubric", None, 'rubric "Is polite"')]),
    ("function: a.b:c", [("function", None, "function a.b:c")]),
    ("latency_ms: 500", [("output_latency_milliseconds", "500", "latency_ms at most 500")]),
    ("first_token_ms: 500", [("first_token_ms", "500", "first_token_ms at most 500")]),
    ("tokens: 20", [("tokens", "20", "tokens at most 20")]),
]


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_a_short_form_is_an_expectation_with_a_label(
    line: str, expected: list[tuple[str, str | None, str | None]]
) -> None:
    found = expectations(line)
    assert [(each.name, each.expected_value, each.label) for each in found] == expected
    assert all(each.name in OWN_CHECKS or expectation_kind(each.name) for each in found)


def test_every_short_form_has_an_example() -> None:
    assert {line.split(":")[0] for line, _ in LINES} == {*CHECKS}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_the_example_of_a_check_is_a_valid_value(tmp_path: Path, check: Check) -> None:
    [expectation] = expectations(f"{check.name}: {check.example}")
    value = yaml.safe_load(check.example)
    with (tmp_path / "q.csv").open("w", newline="") as file:
        cell = json.dumps(value) if isinstance(value, list | dict) else value
        csv.writer(file).writerows([["input", check.name], ["Hi", cell]])
    (tmp_path / "spec.yaml").write_text("cases: q.csv\n")
    [case] = read_document(tmp_path / "spec.yaml", label="spec.yaml", name="spec").evaluation.cases

    assert case.turns[0].expectations == (expectation,)
    assert expectation.name == (check.expectation or check.name)
    assert expectation.name in SCORERS or expectation.name == "function"
    Draft202012Validator(SCHEMA).validate({"testCases": [{"input": "Hi", check.name: value}]})
    with pytest.raises(FormatError, match=f"Did you mean '{check.name}'"):
        expectations(f"{check.name}s: {check.example}")


def test_a_schema_is_read_from_a_file_beside_the_test_and_changes_its_digest(tmp_path: Path) -> None:
    schema = tmp_path / "order.json"
    schema.write_text('{"type": "object"}')
    spec, table = tmp_path / "spec.yaml", tmp_path / "q.csv"
    spec.write_text("testCases:\n- input: Hi\n  json: {schema: order.json}\n")
    table.write_text('input,json\nHi,"{""schema"": ""order.json""}"\n')
    both = tmp_path / "both.yaml"
    both.write_text("cases: q.csv\n")
    for path in (spec, both):
        [case] = read_document(path, label=path.name, name="spec").evaluation.cases
        [expectation] = case.turns[0].expectations
        assert expectation.label == "json $ schema order.json"
        assert expectation.terms == {"path": "$", "operator": "schema", "expected": {"type": "object"}}
    before = [digest_of(path, Reading()) for path in (spec, both, table)]
    schema.write_text('{"type": "array"}')
    assert not {*before} & {digest_of(path, Reading()) for path in (spec, both, table)}
    schema.write_text('{"type": "objekt"}')
    with pytest.raises(FormatError, match=r"spec.yaml:3:18.*the schema of order.json cannot be used: \$.type"):
        read_document(spec, label="spec.yaml", name="spec")
    schema.write_text("{")
    with pytest.raises(FormatError, match=r"the schema 'order.json' cannot be read"):
        read_document(spec, label="spec.yaml", name="spec")


def test_a_long_text_is_cut_in_the_label_only() -> None:
    [found] = expectations(f"contains: {'word ' * 40}end")
    assert (len(found.expected_value or ""), found.label) == (203, f'contains "{("word " * 40)[:59]}…"')


@pytest.mark.parametrize("key", CHECKS)
def test_every_short_form_needs_a_value(key: str) -> None:
    with pytest.raises(FormatError, match=f"'{key}' has no value, so it checks nothing"):
        expectations(f"{key}:")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("contains: []", ("t.yaml:3:13 'contains' is an empty list, which expects nothing [spec-value] Leave it out.")),
        ("contains: [a, ' ']", ("t.yaml:3:17 'contains' has an empty text [spec-value] Write what is expected.")),
        ("matches: (a", "t.yaml:3:12 '(a' is not a valid regular expression: unclosed group [spec-value]"),
        (
            "function: checks.polite",
            (
                "t.yaml:3:13 'checks.polite' is not a valid module:function reference [spec-value]"
                " Write the module and the function: checks:is_polite."
            ),
        ),
        ("latency_ms: 1.5", ("t.yaml:3:15 'latency_ms' of a test case is a number, not a whole number [spec-type]")),
        (
            "tokens: '5'",
            ("t.yaml:3:11 'tokens' of a test case is a text, not a whole number [spec-type] Write 5 without quotes."),
        ),
        ("tokens: 0", ("t.yaml:3:11 'tokens' is 0, which no answer can meet [spec-value] Write a maximum above 0.")),
        ("actions: ['']", "t.yaml:3:13 an action has no name [spec-missing]"),
        ("actions: {input: {id: 7}}", "t.yaml:3:12 an action needs 'name' [spec-missing]"),
        ("actions: [{name: A, inputs: {id: 7}}]", "t.yaml:3:23 an action has no key 'inputs' [spec-key] Use input."),
        (
            "actions: [{name: A, inpt: {id: 7}}]",
            "t.yaml:3:23 an action has no key 'inpt' [spec-key] Did you mean 'input'?",
        ),
        (
            "actions: [{name: A, input: {id: {matches: (a}}}]",
            "t.yaml:3:45 '(a' is not a valid regular expression: unclosed group [spec-value]",
        ),
        (
            "actions: [{name: A, input: {id: {one_of: []}}}]",
            (
                "t.yaml:3:44 'one_of' is an empty list, which no value meets [spec-value]"
                " Write the values of which one must be equal: one_of: [a, b]."
            ),
        ),
        (
            "actions: [{name: A, input: {id: 007}}]",
            (
                "t.yaml:3:35 the number 007 may be read differently by other programs [spec-number]"
                ' Put it in quotes: "007".'
            ),
        ),
        (
            "action_match: any_ordr\n  actions: [A]",
            "t.yaml:3:17 'any_ordr' is not a way of matching actions [spec-value] Did you mean 'any_order'?",
        ),
        (
            "max_actions: -1",
            "t.yaml:3:16 'max_actions' is -1, which no answer can meet [spec-value] Write a maximum of 0 or more.",
        ),
        ("handoffs: [Triage, '']", "t.yaml:3:22 'handoffs' has an empty name [spec-value] Write what is expected."),
        (
            "not_actions: []",
            "t.yaml:3:16 'not_actions' is an empty list, which expects nothing [spec-value] Leave it out.",
        ),
        (
            "json: {path: $.a, equals: 0x1F}",
            (
                "t.yaml:3:29 'equals' is the number 0x1F, which other programs may write differently [spec-number]"
                ' Put it in quotes: "0x1F".'
            ),
        ),
        ("json: $.a", "t.yaml:3:9 a check of JSON is a text, not a mapping [spec-type]"),
        (
            "json: {path: a, equals: b}",
            ("t.yaml:3:16 the path 'a' does not start with $ [spec-value] Write json: {path: $.city, equals: Paris}."),
        ),
        ("json: {equals: b}", "t.yaml:3:9 a check of JSON needs 'path' [spec-missing]"),
        (
            "json: {path: $.a, equals: b, at_most: 1}",
            "t.yaml:3:41 a check of JSON has 'equals' and 'at_most' [spec-value] Write one check for each.",
        ),
        (
            "json: {path: $.a, at_least: x}",
            ("t.yaml:3:31 'at_least' of a check of JSON is a text, not a number [spec-type]"),
        ),
        ("json: {path: $.a, at_least: }", "t.yaml:3:9 a check of JSON needs 'at_least' [spec-missing]"),
        (
            "json: {path: $.a, equal: b}",
            "t.yaml:3:21 a check of JSON has no key 'equal' [spec-key] Did you mean 'equals'?",
        ),
        (
            "json: {schema: {type: objekt}}",
            (
                "t.yaml:3:18 the schema cannot be used: $.type: 'objekt' is not valid under any of the given schemas"
                " [spec-value]"
            ),
        ),
        (
            "json: {schema: {$ref: 'https://example.com/order.json'}}",
            (
                "t.yaml:3:18 the schema cannot be used: the $ref 'https://example.com/order.json' is not in the schema,"
                " and no other one is loaded [spec-value]"
            ),
        ),
        (
            "json: {schema: absent.json}",
            (
                "t.yaml:3:18 the file 'absent.json' cannot be found [spec-value] Write a path relative to the file of"
                " the test, such as schemas/order.json, or the schema itself."
            ),
        ),
        (
            "state: {}",
            (
                "t.yaml:3:10 'state' is an empty mapping, which expects nothing [spec-value]"
                " Leave it out, or write state: {$: {equals: {}}} for a state without values."
            ),
        ),
        (
            "state: [a]",
            (
                "t.yaml:3:10 a check of the state is a list, not a mapping [spec-type]"
                " Write state: {order.status: shipped}."
            ),
        ),
        (
            "state: {'order[': 1}",
            (
                "t.yaml:3:21 the path 'order[' cannot be used: the reference is not a supported JSONPath; it ends"
                " too early [spec-value] Write a path such as order.items[0].id, or a full JSONPath such as"
                " $['last.action']."
            ),
        ),
        (
            "state: {' ': 1}",
            (
                "t.yaml:3:16 a path is empty [spec-value] Write a path such as order.items[0].id, or a full JSONPath"
                " such as $['last.action']."
            ),
        ),
        (
            "state: {id: {at_least: x}}",
            "t.yaml:3:26 'at_least' is \"x\", not a number [spec-value] Write a number without quotes.",
        ),
        (
            "state: {id: 007}",
            (
                "t.yaml:3:15 the number 007 may be read differently by other programs [spec-number]"
                ' Put it in quotes: "007".'
            ),
        ),
        ("final_state: {a: 1}", "t.yaml:3:3 a test case has no key 'final_state' [spec-key] Use state."),
        ("contian: x", "t.yaml:3:3 a test case has no key 'contian' [spec-key] Did you mean 'contains'?"),
        (
            "not-contains: x",
            ("t.yaml:3:3 a test case has no key 'not-contains' [spec-key] Did you mean 'not_contains'?"),
        ),
        (
            "expected_output: x",
            (
                "t.yaml:3:3 a test case has no key 'expected_output'"
                " [spec-key] Use contains, equals, rubric or expectedOutcome."
            ),
        ),
        ("llm-rubric: x", "t.yaml:3:3 a test case has no key 'llm-rubric' [spec-key] Use rubric."),
        (
            "contains: 1.0",
            (
                "t.yaml:3:13 'contains' is the number 1.0, which other programs may write differently"
                ' [spec-number] Put it in quotes: "1.0".'
            ),
        ),
    ],
)
def test_a_mistake_is_reported_with_its_place_and_a_way_out(line: str, text: str) -> None:
    assert problem(line) == text


@pytest.mark.parametrize("pattern", [".*", "^", "(?s).*", "'|'", "paris|"])
def test_a_pattern_that_matches_every_answer_is_an_error(pattern: str) -> None:
    found = problem(f"matches: {pattern}")
    assert found.startswith("t.yaml:3:12 ")
    assert "matches every answer, so it checks nothing [spec-value]" in found


def test_actions_with_input_are_calls_and_their_way_of_matching_is_that_of_the_case() -> None:
    line = "actions: [A, {name: B, input: {id: 7, to: {matches: '@'}}, exact: true}]\n  action_match: in_order"
    [found] = expectations(line)
    assert found.terms == {
        "calls": [{"name": "A"}, {"name": "B", "input": {"id": 7, "to": {"matches": "@"}}, "exact": True}],
        "match": "in_order",
    }


@pytest.mark.parametrize("line", ["actions: [A]", "expectedActions: [A]", "actions: [{name: A}]", "actions: {name: A}"])
def test_names_of_actions_have_no_calls(line: str) -> None:
    [found] = expectations(f"{line}\n  action_match: subset")
    assert (found.expected_value, found.terms) == ("['A']", {"match": "subset"})


def test_the_way_of_matching_of_the_defaults_is_replaced_by_that_of_a_case() -> None:
    own = "- {input: b, actions: [A], action_match: subset}"
    spec = f"defaults: {{action_match: superset}}\ntestCases:\n- {{input: a, actions: [A]}}\n{own}\n"
    cases = read_spec(spec.encode(), label="t.yaml").cases
    assert [case.turns[0].expectations[0].terms for case in cases] == [{"match": "superset"}, {"match": "subset"}]


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        ('{"name": "A", "input": {"id": 7}}', ""),
        ('["A", {"name": "B", "input": {"id": {"at_least": 5}}}]', ""),
        ('[{"name": "A"', "is not valid JSON"),
        ('{"name": "A", "input": {"id": {"at_least": "5"}}}', "not a number"),
    ],
)
def test_a_cell_of_a_table_has_calls_as_json(tmp_path: Path, cell: str, fault: str) -> None:
    with (tmp_path / "q.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["input", "actions"], ["Hi", cell]])
    (tmp_path / "spec.yaml").write_text("cases: q.csv\n")
    if fault:
        with pytest.raises(FormatError, match=fault):
            read_document(tmp_path / "spec.yaml", label="spec.yaml", name="spec")
        return
    [case] = read_document(tmp_path / "spec.yaml", label="spec.yaml", name="spec").evaluation.cases
    value = json.loads(cell)
    items = value if isinstance(value, list) else [value]
    calls = [{"name": item} if isinstance(item, str) else item for item in items]
    assert case.turns[0].expectations[0].terms == {"calls": calls}
    Draft202012Validator(SCHEMA).validate({"testCases": [{"input": "Hi", "actions": value}]})


@pytest.mark.parametrize("mode", ["in_order", "superset", "subset", "any_order"])
def test_no_actions_are_expected_exactly_in_every_mode(mode: str) -> None:
    [found] = expectations(f"actions: []\n  action_match: {mode}")

    assert found.terms["match"] == "exact"


def test_an_empty_list_of_checks_of_json_is_reported() -> None:
    assert "'json' is an empty list, which expects nothing" in problem("json: []")
