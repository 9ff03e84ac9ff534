"""Statements of procedures that cannot be read are problems with their line, and the rest is read."""

from __future__ import annotations

import pytest

from agent_script.scripts import subagent
from evalmeta.agent_script.nodes import If, Set, Transition
from evalmeta.agent_script.parser import parse_script

BRANCHES = """\
    before_reasoning:
        if @variables.a:
            set @variables.x = 1
        {branch}
            set @variables.x = 2
        {last}
            set @variables.x = 3
"""


@pytest.mark.parametrize(
    ("branch", "last", "message"),
    [
        ("elif @variables.b:", "else:", "'elif' is not a statement of Agent Script"),
        ("else:", "else if @variables.c:", "a branch follows the `else` of an `if`"),
    ],
)
def test_a_branch_of_another_language_is_one_problem_and_its_statements_are_still_read(
    branch: str, last: str, message: str
) -> None:
    script, problems = parse_script(subagent(BRANCHES.format(branch=branch, last=last)))
    assert [(problem.message, problem.position.line) for problem in problems] == [(message, 5)]
    [statement] = script.subagents[0].before_reasoning
    assert isinstance(statement, If)
    assert statement.otherwise


def test_else_if_is_a_condition_of_the_branch_before_it() -> None:
    text = BRANCHES.format(branch="else if @variables.b:", last="else:")
    script, problems = parse_script(subagent(text))
    assert problems == ()
    [first] = script.subagents[0].before_reasoning
    assert isinstance(first, If)
    [second] = first.otherwise
    assert isinstance(second, If)
    assert [type(statement) for statement in second.otherwise] == [Set]


def test_a_transition_has_the_inputs_that_stand_behind_it() -> None:
    body = "    before_reasoning:\n        transition to @subagent.two, with a=1, b=@variables.x\n"
    script, problems = parse_script(subagent(body))
    assert problems == ()
    [statement] = script.subagents[0].before_reasoning
    assert isinstance(statement, Transition)
    assert [given.name for given in statement.inputs] == ["a", "b"]
