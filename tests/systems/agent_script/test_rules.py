"""A scripted model: which rule applies, and what a file of rules may contain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import FormatError, SubjectError
from systems.agent_script.projects import SHOP, converse, write_project

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("utterance", "expected"),
    [
        ("Is my BIKE ready?", "bike"),
        ("good   morning", "greeting"),
        ("Good morning!", "other"),
        ("[a] is a list (of 1)", "brackets"),
        ("tea?", "drink"),
        ("coffee", "drink"),
    ],
)
def test_the_first_rule_whose_utterance_fits_is_used(tmp_path: Path, utterance: str, expected: str) -> None:
    rules = """\
rules:
  - {utterance: "*bike*", answer: bike}
  - {utterance: good morning, answer: greeting}
  - {utterance: "[a] is *(of 1)", answer: brackets}
  - {utterance: ["tea?", "coffee"], answer: drink}
  - {answer: other}
"""
    write_project(tmp_path, rules=rules)
    assert converse(tmp_path, utterance)[0].outcome == expected


def test_conditions_and_answers_are_expressions_of_the_language(tmp_path: Path) -> None:
    rules = """\
rules:
  - {when: "@variables.verified and @variables.price > 10", answer: "{!@variables.price + 1} euros"}
  - {answer: "{!@system_variables.user_input} from {!@variables.customer_id}"}
"""
    write_project(tmp_path, rules=rules)
    context = {"verified": "true", "price": "20", "CustomerId": "C1"}
    assert converse(tmp_path, "Hi", context=context)[0].outcome == "21 euros"
    assert converse(tmp_path, "Hi", context=context | {"price": "9"})[0].outcome == "Hi from C1"


def test_a_rule_is_used_once_in_a_turn(tmp_path: Path) -> None:
    rules = (
        "rules:\n  - {subagent: reception, call: to_repairs}\n  - {call: keep, with: {ticket: A}}\n  - {answer: ok}\n"
    )
    write_project(tmp_path, rules=rules)
    first, second = converse(tmp_path, "a", "b")
    assert first.outcome == second.outcome == "ok"


def test_a_condition_with_single_quotes_is_one_mistake_that_says_what_to_write(tmp_path: Path) -> None:
    write_project(tmp_path, rules="rules:\n- {when: \"@variables.ticket == 'A'\", answer: ok}\n")
    with pytest.raises(FormatError) as raised:
        converse(tmp_path, "a")
    [problem] = raised.value.problems
    assert problem.hint == 'Write strings as "text".'


@pytest.mark.parametrize(
    "answer", ["{answer: ok}", "{utterance: '*', answer: ok}", "{utterance: [b, '*'], answer: ok}"]
)
def test_a_rule_below_one_that_always_answers_is_refused(tmp_path: Path, answer: str) -> None:
    write_project(tmp_path, rules=f"rules:\n- {answer}\n- {{subagent: reception, call: to_repairs}}\n")
    with pytest.raises(FormatError) as raised:
        converse(tmp_path, "a")
    [problem] = raised.value.problems
    assert problem.message == "the rule is never used, because the rule in line 2 always answers"
    assert problem.location.line == 3


def test_rules_below_an_answer_still_choose_the_inputs_of_run(tmp_path: Path) -> None:
    script = SHOP.replace("with id=@variables.customer_id", "with id=...")
    rules = (
        "rules:\n- {subagent: reception, call: to_repairs}\n- {answer: ok}\n- {call: check_customer, with: {id: C1}}\n"
    )
    write_project(tmp_path, script=script, rules=rules)
    assert converse(tmp_path, "a")[0].outcome == "ok"


def test_a_subagent_that_is_asked_and_the_one_that_asks_have_an_answer_each(tmp_path: Path) -> None:
    script = SHOP.replace("to_repairs: @utils.transition to @subagent.repairs", "to_repairs: @subagent.office")
    rules = "rules:\n- {call: to_repairs}\n- {answer: office}\n- {answer: reception}\n"
    write_project(tmp_path, script=script, rules=rules)
    assert converse(tmp_path, "a")[0].outcome == "reception"


def test_without_a_rule_the_error_says_what_could_be_called_and_which_rule_to_add(tmp_path: Path) -> None:
    write_project(tmp_path, rules="rules:\n  - {call: to_office}\n")
    with pytest.raises(SubjectError) as raised:
        converse(tmp_path, "Invoice, please")
    text = "no rule of rules/Bike_Shop.yaml applies in reception, where to_repairs, human can be called"
    assert str(raised.value) == f"{text}; these are not available now: to_office (line 2)"
    assert '  - utterance: "Invoice, please"\n    subagent: reception' in raised.value.actions[0]


def test_a_value_that_a_rule_cannot_read_is_an_error_with_its_line(tmp_path: Path) -> None:
    write_project(tmp_path, rules="rules:\n  - {answer: 'It is {!@outputs.state}'}\n")
    with pytest.raises(SubjectError, match=r"rules/Bike_Shop\.yaml:2: @outputs\.state has no value"):
        converse(tmp_path, "a")


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ("{subagent: repair, answer: a}", "the script has no subagent 'repair' Did you mean 'repairs'?"),
        ("{call: to_repair}", "no subagent of the script can call 'to_repair' Did you mean 'to_repairs'?"),
        ("{call: human, answer: a}", "a rule has either 'call' or 'answer'"),
        ("{utterance: a}", "a rule has either 'call' or 'answer'"),
        ("{answer: a, with: {b: 1}}", "'with' belongs to 'call'"),
        ("{answr: a}", "a rule has no key 'answr'"),
        ("{when: '@variables.', answer: a}", "'when' cannot be read: "),
        ("{answer: '{!@variables.price'}", "'answer' cannot be read: the expression {! is not closed"),
        ("{when: '@variables.verified }', answer: a}", "'when' is not one condition"),
        ("{when: '', answer: a}", "'when' cannot be read: an expression is missing"),
        ("{when: '@variables.verifid', answer: a}", "@variables.verifid has no value in rules Did you mean '@var"),
        ("{answer: '{!@outputs.costs}'}", "@outputs.costs has no value in rules Did you mean '@outputs.cost'?"),
        ("{answer: '{!@MessagingSession.Id}'}", "@MessagingSession.Id has no value in rules"),
        ("{subagent: reception, call: look_up}", "the subagent 'reception' cannot call 'look_up'"),
        ("{call: find_ticket}", "no subagent of the script can call 'find_ticket'"),
        ("{call: look_up}", "look_up needs number The script leaves to the model: number."),
        ("{call: look_up, with: {number: '7', detail: true}}", "look_up has no input detail"),
        ("{call: keep, with: {customer_id: C2}}", "keep has no input customer_id The script leaves to the model: tick"),
        ("{call: to_repairs, with: {why: x}}", "to_repairs has no input why The script leaves to the model: nothing."),
    ],
)
def test_a_rule_that_can_never_be_right_is_refused_with_its_place(tmp_path: Path, rule: str, fault: str) -> None:
    write_project(tmp_path, rules=f"rules:\n  - {rule}\n")
    with pytest.raises(FormatError) as raised:
        converse(tmp_path, "a")
    assert any(fault in f"{problem.message} {problem.hint}" for problem in raised.value.problems)
    assert {problem.location.line for problem in raised.value.problems} == {2}


TWO_ENTRIES = """\
start_agent first:
    actions:
        find_book:
            inputs:
                title: string
            target: "flow://Find_Book"
    reasoning:
        instructions: "First"
        actions:
            on: @utils.transition to @subagent.second
            find: @actions.find_book
subagent second:
    actions:
        find_author:
            inputs:
                author: string
            target: "flow://Find_Author"
    reasoning:
        instructions: "Second"
        actions:
            find: @actions.find_author
"""


def test_a_rule_whose_inputs_do_not_fit_where_it_is_used_is_an_error_with_its_line(tmp_path: Path) -> None:
    rules = "rules:\n  - {subagent: first, call: on}\n  - {call: find, with: {title: Emma}}\n  - {answer: fine}\n"
    write_project(tmp_path, script=TWO_ENTRIES, rules=rules, doubles={})
    with pytest.raises(SubjectError, match=r"rules/Bike_Shop\.yaml:3: find has no input title"):
        converse(tmp_path, "a")


def test_the_inputs_of_a_run_that_a_rule_chooses_are_checked(tmp_path: Path) -> None:
    script = SHOP.replace("with id=@variables.customer_id", "with id=...")
    rules = "rules:\n  - {subagent: reception, call: to_repairs}\n  - {call: check_customer, with: {ids: C1}}\n"
    write_project(tmp_path, script=script, rules=rules)
    with pytest.raises(FormatError, match=r":3:\d+: check_customer has no input ids"):
        converse(tmp_path, "a")


@pytest.mark.parametrize("text", ["", "rules: []\n", "- answer: a\n"])
def test_a_file_without_rules_is_refused(tmp_path: Path, text: str) -> None:
    write_project(tmp_path, rules=text)
    with pytest.raises(FormatError, match="rules"):
        converse(tmp_path, "a")
