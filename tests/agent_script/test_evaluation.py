"""Expressions and templates have the values that the language gives them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from evalmeta.agent_script.evaluation import ScriptFault, converted, evaluate, render
from evalmeta.agent_script.nodes import If, Text
from evalmeta.agent_script.parser import parse_script

if TYPE_CHECKING:
    from evalmeta.agent_script.nodes import Expression, Reference
    from evalmeta.model.json_value import JsonValue

VALUES: dict[str, JsonValue] = {
    "score": 80,
    "text": "80",
    "half": 0.5,
    "name": "Ada",
    "empty": "",
    "yes": True,
    "spoken": "True",
    "none": None,
    "items": [{"id": "first"}, {"id": "second"}],
    "order": {"status": "sent"},
}


class Variables:
    def value_of(self, reference: Reference) -> JsonValue:
        return VALUES.get(reference.member) if reference.namespace == "variables" else reference.member


def value(source: str) -> JsonValue:
    return evaluate(expression(source), Variables())


def expression(source: str) -> Expression:
    procedure = f"start_agent a:\n  before_reasoning:\n    if {source}:\n      set @variables.x = 1\n"
    script, problems = parse_script(procedure)
    assert problems == ()
    [statement] = script.subagents[0].before_reasoning
    assert isinstance(statement, If)
    return statement.condition


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("@variables.score >= 80", True),
        ("@variables.text == 80", True),
        ("@variables.text is 80", False),
        ("@variables.text > 9", True),
        ('@variables.text > "9"', False),
        ("@variables.spoken == True", True),
        ("@variables.yes is True", True),
        ("@variables.score is True", False),
        ("@variables.none is None", True),
        ("@variables.none is not None", False),
        ('@variables.none == ""', False),
        ("@variables.none < 3", False),
        ("@variables.missing is None", True),
        ("not @variables.empty", True),
        ('@variables.empty or "guest"', "guest"),
        ("@variables.name and @variables.empty", ""),
        ("False and @variables.none.member", False),
        ("@variables.score + 1 * 2", 82),
        ("@variables.text + 1", "801"),
        ("@variables.text - 1", 79),
        ("-@variables.half", -0.5),
        ("@variables.score / 3 * 3", 80),
        ('"prefix_" + @variables.name', "prefix_Ada"),
        ("@variables.items[1].id", "second"),
        ("@variables.items[-1].id", "second"),
        ("@variables.order.status", "sent"),
        ('@variables.order["status"]', "sent"),
        ("@variables.order.missing is None", True),
        ("len(@variables.items)", 2),
        ("len([1] + [2, 3])", 3),
        ('@variables.text != "81"', True),
        ('@variables.name > "Abe"', True),
        ("@variables.spoken != False", True),
        ("max(@variables.text, 9)", 80),
        ("max(1, @variables.score, 3)", 80),
        ("min([4, 2])", 2),
        ('"big" if @variables.score > 50 else "small"', "big"),
        ("[1, @variables.half]", [1, 0.5]),
        ('{"a": @variables.score}', {"a": 80}),
        ('"{!@variables.name}: {!@variables.score + 1}"', "Ada: 81"),
        ("@actions.find_order", "find_order"),
    ],
)
def test_expressions_have_the_values_of_the_language(source: str, expected: JsonValue) -> None:
    result = value(source)
    assert result == expected
    assert isinstance(result, bool) == isinstance(expected, bool)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("@variables.none.member", "the member 'member' of None is read"),
        ("@variables.name.member", "of a text is read, which has none"),
        ("@variables.items[2]", "item 2 is read of a list with 2 items"),
        ("@variables.none[0]", "an item of None is read"),
        ("@variables.name > 3", "a text and a number cannot be compared"),
        ("@variables.items - 1", "'-' cannot be used with a list and a number"),
        ("@variables.score / 0", "cannot be calculated: "),
        ("len(3)", "len cannot be used with a number"),
        ("upper(@variables.name)", "upper is not a function"),
        ("name", "@variables.name"),
        ("not (-@variables.name)", "'-' cannot be used with a text"),
        ("max(1, @variables.name)", "max needs numbers"),
        ("min([])", "min needs numbers"),
        ("len(1, 2)", "len is not a function with 2 arguments"),
        ("@variables.score[0]", "the item '0' of a number is read, which has none"),
        ('@variables.items["a"]', "the item 'a' of a list is read, which has none"),
        ("...", "the model only chooses inputs"),
    ],
)
def test_what_has_no_value_is_a_fault_with_its_place(source: str, reason: str) -> None:
    with pytest.raises(ScriptFault, match=re.escape(reason)) as raised:
        value(source)
    assert raised.value.position.line == 3


def test_values_stand_in_texts_as_in_python_and_lists_as_json() -> None:
    text = "| {!@variables.none} {!@variables.yes} {!@variables.score / 2} {!@variables.half} {!@variables.items[0]}"
    script, _ = parse_script(f"start_agent a:\n  reasoning:\n    instructions: ->\n      {text}\n")
    [statement] = script.subagents[0].instructions
    assert isinstance(statement, Text)
    assert render(statement.template, Variables()).strip() == 'None True 40 0.5 {"id": "first"}'


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        ("12.50", "number", 12.5),
        ("12", "number", 12),
        ("many", "number", "many"),
        ("nan", "number", "nan"),
        ("true", "boolean", True),
        ("False", "boolean", False),
        (5, "string", "5"),
        ('["a"]', "list[string]", ["a"]),
        ('{"a": 1}', "object", {"a": 1}),
        ("[1]", "object", "[1]"),
        (None, "number", None),
        ("{", "object", "{"),
        (5, "list[string]", 5),
    ],
)
def test_texts_become_values_of_a_type_if_they_can(given: JsonValue, kind: str, expected: JsonValue) -> None:
    assert converted(given, kind) == expected


def test_a_text_that_grows_without_end_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VALUES, "name", "x" * 600_000)
    with pytest.raises(ScriptFault, match="a text has more than 1,000,000 characters"):
        value("@variables.name + @variables.name")
