"""Doubles that are proposed for actions that nothing answers, and the cases that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bundles import write_bundle
from evalmeta.agent_script.parser import parse_script
from evalmeta.formats.yaml_source import json_value, read_yaml
from evalmeta.systems.agent_script.proposed_doubles import proposed_rows
from evalmeta.systems.agent_script.subject import AgentScriptSubject
from evalmeta.systems.agent_script.tools import actions_of
from systems.agent_script.projects import DOUBLES, converse, write_project

if TYPE_CHECKING:
    from pathlib import Path

RULES = """\
rules:
  - {subagent: reception, call: to_repairs}
  - {call: look_up, with: {number: "7"}}
  - {answer: "{!@variables.price}"}
"""
CUSTOMER = {"CustomerId": "C1"}
SUBJECT = AgentScriptSubject(adapter="agent_script", bundle="Bike_Shop")


def proposed(outputs: str, *more: str) -> object:
    """Return the rows for an action `a`, which subagents define with these outputs."""
    blocks = (
        f"subagent s{number}:\n    actions:\n        a:\n            outputs:\n"
        + "".join(f"                {line}\n" for line in declared.splitlines())
        for number, declared in enumerate([outputs, *more])
    )
    script, problems = parse_script("".join(blocks))
    assert problems == ()
    return json_value(read_yaml(proposed_rows(actions_of(script)["a"]), label="rows").value)


@pytest.mark.parametrize(
    ("declared", "example"),
    [
        ("ticket_state: string", "example ticket state"),
        ("cost: number", 1),
        ("is_known: boolean", True),
        ("order: object", {}),
        ("tags: list[string]", ["example tags"]),
        ("sums: list[number]", [1]),
        ("rows: list[object]", [{}]),
        ('day: object\n    complex_data_type_name: "lightning__dateType"', "2026-01-15"),
        ("error_message: string", None),
        ("has_failed: boolean", False),
    ],
)
def test_an_output_has_an_example_of_its_type_that_is_no_failure(declared: str, example: object) -> None:
    name = declared.partition(":")[0]
    assert proposed(declared) == [{"outputs": {name: example}, "review": True}]


def test_an_action_without_outputs_has_nothing_to_review() -> None:
    assert proposed("") == [{"outputs": {}}]


def test_actions_with_one_name_get_the_outputs_that_they_share() -> None:
    assert proposed("cost: number\nstate: string", "cost: number") == [{"outputs": {"cost": 1}, "review": True}]
    assert proposed("cost: number", "state: string") == [{"outputs": {}, "review": True}]


def test_only_actions_that_nothing_answers_get_a_file_and_the_agent_then_answers(tmp_path: Path) -> None:
    write_project(tmp_path, rules=RULES, doubles={"check_customer": DOUBLES["check_customer"]})
    files = SUBJECT.proposed_doubles(tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in files] == [
        "actions/find_ticket.yaml",
        "actions/notify.yaml",
    ]
    for path, content in files.items():
        path.write_bytes(content)
    assert SUBJECT.proposed_doubles(tmp_path) == {}
    [answer] = converse(tmp_path, "a", context=CUSTOMER)
    assert answer.outcome == "1"
    assert [action.review for action in answer.actions or ()] == [
        "",
        "actions/find_ticket.yaml:3",
        "actions/notify.yaml:3",
    ]


def test_a_function_answers_an_action_too(tmp_path: Path) -> None:
    write_project(tmp_path, rules=RULES, doubles={"check_customer": DOUBLES["check_customer"]})
    (tmp_path / "bike_doubles.py").write_text("def find_ticket(number, detail):\n    return {'cost': 2}\n")
    bound = SUBJECT.model_copy(update={"functions": "bike_doubles"})
    assert [path.name for path in bound.proposed_doubles(tmp_path)] == ["notify.yaml"]


def test_with_several_agents_new_files_are_the_agents_own_and_come_before_shared_ones(tmp_path: Path) -> None:
    write_project(tmp_path, rules=RULES)
    write_bundle(tmp_path / "force-app/main/default", "Other")
    (tmp_path / "actions/find_ticket.yaml").unlink()
    [(path, content)] = SUBJECT.proposed_doubles(tmp_path).items()
    assert path == tmp_path / "actions/Bike_Shop/find_ticket.yaml"
    path.parent.mkdir()
    path.write_bytes(content)
    assert path in SUBJECT.identity(tmp_path)[1]
    (tmp_path / "actions/find_ticket.yaml").write_text("- outputs: {number_of_another_agent: 1}\n")
    assert converse(tmp_path, "a", context=CUSTOMER)[0].outcome == "1"
