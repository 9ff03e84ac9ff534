from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import pytest

from evalmeta.cli.commands.validate import rule
from evalmeta.validation.rules import find_rule, list_rules, read_page

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Program = Callable[..., Outcome]


def test_a_rule_is_explained_by_its_page(evalmeta: Program) -> None:
    assert evalmeta("rule", "history-order") == (0, read_page(find_rule("history-order")), "")


def test_a_page_is_rendered_where_colour_is_wanted(evalmeta: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")

    shown = click.unstyle(evalmeta("rule", "xml-root").out)

    assert "**" not in shown
    assert "```" not in shown
    assert "<AiEvaluationSuite" in shown


def test_without_a_code_every_rule_is_listed(evalmeta: Program) -> None:
    head, *rows = evalmeta("rule").out.splitlines()

    assert head.split() == ["Code", "Orgs", "Documented", "Demand"]
    assert [row.split()[0] for row in rows] == [entry.code for entry in list_rules()]
    demand = "`name` is a valid API name. Orgs also accept a label."
    assert f"name-format                  warning  error       {demand}" in rows


def test_a_rule_is_printed_as_json(evalmeta: Program) -> None:
    envelope = json.loads(evalmeta("rule", "history-topic", "--json").out)

    assert envelope["result"] == {
        "code": "history-topic",
        "documented": "error",
        "orgs": "warning",
        "demand": "Every message of the agent has a topic.",
        "page": read_page(find_rule("history-topic")),
    }


def test_every_rule_is_printed_as_json(evalmeta: Program) -> None:
    result = json.loads(evalmeta("rule", "--json").out)["result"]

    assert [each["code"] for each in result] == [entry.code for entry in list_rules()]


def test_an_unknown_code_is_refused_with_the_closest_code(evalmeta: Program) -> None:
    done = evalmeta("rule", "history-ordr")

    assert (done.code, done.out) == (2, "")
    assert "the rule 'history-ordr' cannot be found" in done.err
    assert "Did you mean history-order?" in done.err


@pytest.mark.parametrize(("begun", "codes"), [("test-", ["test-cases-missing", "test-cases-too-many"]), ("zz", [])])
def test_a_shell_completes_codes(begun: str, codes: list[str]) -> None:
    (argument,) = (param for param in rule.params if param.name == "code")

    found = argument.shell_complete(click.Context(rule), begun)

    assert [item.value for item in found] == codes
