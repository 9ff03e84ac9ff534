"""Doubles of actions: rows, functions and recorded calls, and calls that none of them answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import FormatError, SubjectError
from evalmeta.model.generated_data import Action
from evalmeta.systems.agent_script.doubles import Outcome, RecordedDouble
from systems.agent_script.projects import DOUBLES, SHOP, TICKETS, converse, write_project

if TYPE_CHECKING:
    from pathlib import Path

RULES = """\
rules:
  - {subagent: reception, call: to_repairs}
  - {call: look_up, with: {number: "7"}}
  - {answer: "{!@variables.price}"}
"""
CUSTOMER = {"CustomerId": "C1"}


def test_an_unrecorded_call_is_an_error_that_names_it_and_prints_the_row(tmp_path: Path) -> None:
    write_project(tmp_path, rules=RULES, doubles={"check_customer": DOUBLES["check_customer"]})
    with pytest.raises(SubjectError) as raised:
        converse(tmp_path, "a", context=CUSTOMER)
    inputs = '{"detail": true, "number": "7"}'
    assert str(raised.value) == f"no double answers the action find_ticket with the inputs {inputs}"
    row = f'- inputs: {inputs}\n  outputs: {{"state": "example state", "cost": 1}}\n  review: true'
    assert raised.value.actions == (
        f"Add this row to actions/find_ticket.yaml, with its own outputs instead of these examples:\n\n{row}",
        "Or write example outputs of all actions: evalmeta generate doubles Bike_Shop",
    )


def test_the_printed_row_answers_the_call(tmp_path: Path) -> None:
    write_project(tmp_path, rules=RULES, doubles={"check_customer": DOUBLES["check_customer"]})
    with pytest.raises(SubjectError) as raised:
        converse(tmp_path, "a", context=CUSTOMER)
    row = raised.value.actions[0].partition("\n\n")[2]
    (tmp_path / "actions/find_ticket.yaml").write_text(row)
    (tmp_path / "actions/notify.yaml").write_text(DOUBLES["notify"])
    assert converse(tmp_path, "a", context=CUSTOMER)[0].outcome == "1"


def test_a_function_of_the_project_answers_what_no_row_answers(tmp_path: Path) -> None:
    write_project(tmp_path, rules=RULES, doubles={"find_ticket": '- {inputs: {number: "8"}, error: no}\n'})
    functions = """\
async def check_customer(id):
    return {"known": id == "C1"}
def find_ticket(number, detail):
    return {"cost": int(number) * 2, "state": "x"}
def notify(text):
    return {"sent": True}
"""
    (tmp_path / "shop_doubles.py").write_text(functions)
    assert converse(tmp_path, "a", context=CUSTOMER, functions="shop_doubles")[0].outcome == "14"


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ("{inputs: {nummer: 1}, outputs: {cost: 1}}", "the action find_ticket has no input 'nummer'"),
        ("{outputs: {costs: 1}}", "the action find_ticket has no output 'costs'"),
        ("{outputs: {cost: 1}, error: e}", "a row has either 'outputs' or 'error'"),
        ("{inputs: {number: '1'}}", "a row has either 'outputs' or 'error'"),
        ("{outputs: {cost: 1}, delay: -1}", "'delay' is not a number of seconds"),
        ("{outputs: {cost: 1}, wait: 1}", "a row has no key 'wait'"),
        ("{outputs: {cost: 1}}\n- {outputs: {cost: 2}}", "the row is never used"),
        (
            "{inputs: {number: '7'}, error: e}\n- {inputs: {number: '7', detail: true}, outputs: {cost: 2}}",
            "the row is never used, because the row in line 1 answers the same calls",
        ),
    ],
)
def test_a_row_that_can_never_be_right_is_refused(tmp_path: Path, row: str, fault: str) -> None:
    write_project(tmp_path, rules=RULES, doubles={**DOUBLES, "find_ticket": f"- {row}\n"})
    with pytest.raises(FormatError) as raised:
        converse(tmp_path, "a")
    assert any(fault in problem.message for problem in raised.value.problems)


def test_an_output_of_a_double_that_the_action_does_not_declare_is_an_error_with_its_line(tmp_path: Path) -> None:
    write_project(tmp_path, rules=RULES, doubles={"check_customer": DOUBLES["check_customer"]})
    (tmp_path / "wrong_doubles.py").write_text("def find_ticket(number, detail):\n    return {'costs': 5}\n")
    fault = r"Bike_Shop\.agent:44:9: a double of find_ticket returned costs, which the action does not declare"
    with pytest.raises(SubjectError, match=fault):
        converse(tmp_path, "a", context=CUSTOMER, functions="wrong_doubles")


def test_an_output_that_a_double_omits_is_none(tmp_path: Path) -> None:
    write_project(tmp_path, rules=RULES, doubles={**DOUBLES, "find_ticket": "- outputs: {state: x}\n"})
    assert converse(tmp_path, "a", context=CUSTOMER)[0].outcome == "None"


def test_subagents_whose_actions_share_a_name_share_its_rows(tmp_path: Path) -> None:
    office = "subagent office:\n"
    second = """\
    actions:
        find_ticket:
            inputs:
                invoice: number
            outputs:
                sum: number
            target: "flow://Find_Invoice"
    before_reasoning:
        run @actions.find_ticket
            with invoice=1
            set @variables.price = @outputs.sum
"""
    rules = "rules:\n  - {subagent: reception, call: to_office}\n  - {answer: '{!@outputs.sum}'}\n"
    rows = f"{TICKETS}- inputs: {{invoice: 1}}\n  outputs: {{sum: 4}}\n"
    script = SHOP.replace(office, office + second)
    write_project(tmp_path, script=script, rules=rules, doubles={**DOUBLES, "find_ticket": rows})
    assert converse(tmp_path, "a", context={"verified": "true"})[0].outcome == "4"

    (tmp_path / "actions/find_ticket.yaml").write_text("- inputs: {invoice: 1}\n  outputs: {sum: 4, cost: 4}\n")
    with pytest.raises(FormatError, match="has no output 'cost'"):
        converse(tmp_path, "a", context={"verified": "true"})


def test_a_delay_is_part_of_the_latency_of_the_action(tmp_path: Path) -> None:
    rows = "- {outputs: {cost: 1, state: x}, delay: 0.05}\n"
    write_project(tmp_path, rules=RULES, doubles={**DOUBLES, "find_ticket": rows})
    [answer] = converse(tmp_path, "a", context=CUSTOMER)
    assert ((answer.actions or ())[1].latency_ms or 0) >= 50


@pytest.mark.parametrize(
    ("returned", "fault"),
    [
        ("[True]", "check_customer must return a mapping of outputs"),
        ("float('nan')", "check_customer returned no valid JSON: "),
        ("{'known': object()}", "check_customer returned no valid JSON: "),
    ],
)
def test_a_function_that_returns_no_mapping_of_json_is_an_error_that_names_it(
    tmp_path: Path, returned: str, fault: str
) -> None:
    write_project(tmp_path, rules=RULES, doubles={})
    name = f"doubles_{abs(hash(returned))}"
    (tmp_path / f"{name}.py").write_text(f"def check_customer(id):\n    return {returned}\n")
    with pytest.raises(SubjectError, match=fault):
        converse(tmp_path, "a", context=CUSTOMER, functions=name)


@pytest.mark.parametrize("content", ["{outputs: {cost: 1}}", "[]"])
def test_a_file_without_a_list_of_rows_is_refused(tmp_path: Path, content: str) -> None:
    write_project(tmp_path, rules=RULES, doubles={**DOUBLES, "find_ticket": content})
    with pytest.raises(FormatError) as raised:
        converse(tmp_path, "a")
    assert "the file has no list of rows" in [problem.message for problem in raised.value.problems]


def test_the_last_recorded_call_with_the_same_inputs_answers_and_others_are_unknown() -> None:
    calls = [
        Action("find", {"a": 1, "b": 2}, {"cost": 1}),
        Action("find", {"b": 2, "a": 1}, {"cost": 2}),
        Action("find", {"a": 3}, "locked", error="the archive is locked"),
        Action("find", {"a": 5}, {"cost": 1}, review="actions/find.yaml:3"),
    ]
    double = RecordedDouble(calls)
    outcomes = [asyncio.run(double.run(inputs)) for inputs in ({"a": 1, "b": 2}, {"a": 3}, {"a": 4}, {"a": 5})]
    assert outcomes == [
        Outcome({"cost": 2}),
        Outcome({}, "the archive is locked"),
        None,
        Outcome({"cost": 1}, review="actions/find.yaml:3"),
    ]
