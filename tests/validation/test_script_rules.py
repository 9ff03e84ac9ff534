"""The rules about Agent Script: what is reported, and what is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bundles import METADATA
from evalmeta import limits
from evalmeta.api.files import validate
from evalmeta.validation.rules import RulePolicy
from evalmeta.validation.script_rules import check_script

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.problem import Problem

SCRIPT = """\
variables:
    member: linked string
        source: @MessagingSession.Id
    plan: mutable string = ""

start_agent reception:
    reasoning:
        instructions: ->
            if @variables.plan == "":
                run @actions.find_plan
                    with member=@variables.member
                    set @variables.plan = @outputs.plan
            | The plan is {!@variables.plan}.
        actions:
            to_classes: @utils.transition to @subagent.classes
                available when @variables.plan != ""
            keep_plan: @utils.setVariables
                with plan=...
            find_plan: @actions.find_plan
            ask_trainer: @connected_subagent.trainer
    actions:
        find_plan:
            inputs:
                member: string
            outputs:
                plan: string
            target: "flow://Find_Plan"

subagent classes:
    description: "Classes of the gym"
    after_reasoning:
        transition to @subagent.reception

connected_subagent trainer:
    target: "agentforce://Trainer"
"""


def found(script: str) -> list[tuple[str, int]]:
    problems = check_script(script.encode(), label="Gym.agent", severity_of=RulePolicy().severity)
    return [(problem.code, problem.location.line) for problem in problems]


def test_a_script_whose_references_all_exist_has_no_problem() -> None:
    assert found(SCRIPT) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('@variables.plan == ""', '@variables.plane == ""', ("script-reference", 9)),
        ('when @variables.plan != ""', 'when @variables.plna != ""', ("script-reference", 16)),
        ("{!@variables.plan}", "{!@variables.plna}", ("script-reference", 13)),
        ("run @actions.find_plan", "run @actions.find_plans", ("script-reference", 10)),
        ("transition to @subagent.reception", "transition to @subagent.receptions", ("script-reference", 32)),
        ("@connected_subagent.trainer", "@connected_subagent.trainers", ("script-reference", 20)),
        ("set @variables.plan =", "set @variables.member =", ("script-linked", 12)),
        ("with plan=...", "with member=...", ("script-linked", 18)),
        ("with plan=...", "with paln=...", ("script-reference", 18)),
        ("with member=@variables.member", "with membr=@variables.member", ("script-reference", 11)),
        ("= @outputs.plan", "= @outputs.paln", ("script-reference", 12)),
        ("after_reasoning:", "after_reasonings:", ("script-key", 31)),
        ("subagent classes:", "start_agent classes:", ("script-start", 29)),
        ('            target: "flow://Find_Plan"\n', "", ("script-target", 22)),
    ],
)
def test_what_is_wrong_is_reported_at_its_line(old: str, new: str, problem: tuple[str, int]) -> None:
    assert SCRIPT.count(old) == 1
    assert found(SCRIPT.replace(old, new)) == [problem]


def test_inputs_with_a_prefix_are_given_without_it() -> None:
    assert found(SCRIPT.replace("                member: string", '                "Input:member": string')) == []


OUTPUTS = """\
            set @variables.plan = @outputs.plan
            if @outputs.{first}:
                run @actions.book
                    with day=@outputs.{second}
                    set @variables.plan = @outputs.{third}
"""


@pytest.mark.parametrize(
    ("names", "lines"),
    [(("plan", "plan", "day"), []), (("day", "plan", "day"), [2]), (("plan", "day", "day"), [4]), (("plan",) * 3, [5])],
)
def test_outputs_are_those_of_the_innermost_call_before_them(names: tuple[str, str, str], lines: list[int]) -> None:
    callbacks = OUTPUTS.format(first=names[0], second=names[1], third=names[2])
    book = '        book:\n            outputs:\n                day: string\n            target: "flow://Book"\n'
    script = SCRIPT.replace(
        "            find_plan: @actions.find_plan\n",
        f"            find_plan: @actions.find_plan\n{callbacks.replace('            ', ' ' * 16)}",
    ).replace("        find_plan:\n", f"{book}        find_plan:\n")
    assert found(script) == [("script-reference", 18 + line + 1) for line in lines]


def test_a_subagent_to_which_nothing_leads_is_reported() -> None:
    alone = 'subagent fees:\n    description: "Fees"\n    after_reasoning:\n        transition to @subagent.fees\n'
    assert found(f"{SCRIPT}\n{alone}") == [("script-unreachable", 37)]


def test_a_script_without_an_entry_point_is_reported_at_its_first_subagent() -> None:
    assert ("script-start", 6) in found(SCRIPT.replace("start_agent reception", "subagent reception"))


def test_a_script_without_subagents_is_reported() -> None:
    assert found('config:\n    developer_name: "Gym"\n') == [("script-start", 1)]


def test_an_unknown_name_is_answered_with_the_one_that_was_probably_meant() -> None:
    script = SCRIPT.replace("run @actions.find_plan", "run @actions.find_plans").encode()
    [problem] = check_script(script, label="Gym.agent", severity_of=RulePolicy().severity)
    assert problem.hint == "Did you mean @actions.find_plan?"


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"start_agent a:\n    x: \xff\n", "not UTF-8"), (b" " * (limits.MAX_SCRIPT_BYTES + 1), "larger than")],
)
def test_a_script_that_cannot_be_read_is_one_problem(data: bytes, message: str) -> None:
    [problem] = check_script(data, label="Gym.agent", severity_of=RulePolicy().severity)
    assert (problem.code, message in problem.message) == ("script-syntax", True)


def test_scripts_of_bundles_are_found_in_folders_and_others_only_by_name(tmp_path: Path) -> None:
    bundle, sample = tmp_path / "aiAuthoringBundles/Gym/Gym.agent", tmp_path / "samples/Gym.agent"
    for path in (bundle, sample):
        path.parent.mkdir(parents=True)
        path.write_text(SCRIPT.replace("subagent.classes", "subagent.class"))
    bundle.with_name("Gym.bundle-meta.xml").write_bytes(METADATA)
    searched = validate([tmp_path])
    assert (searched.files, {problem.code for problem in searched.problems}) == (
        2,
        {"script-reference", "script-unreachable"},
    )
    assert not validate([sample]).is_valid


def test_a_rule_about_scripts_can_be_switched_off(tmp_path: Path) -> None:
    bundle = tmp_path / "aiAuthoringBundles/Gym/Gym.agent"
    bundle.parent.mkdir(parents=True)
    bundle.with_name("Gym.bundle-meta.xml").write_bytes(METADATA)
    bundle.write_text(SCRIPT.replace('            target: "flow://Find_Plan"\n', ""))
    assert [problem.code for problem in validate(start=tmp_path, paths=[bundle]).problems] == ["script-target"]
    (tmp_path / "evalmeta.toml").write_text('[validate.rules]\nscript-target = "off"\n')
    assert validate([bundle]).problems == ()


def check_variables(count: int, references: int) -> list[Problem]:
    """Check a script with this many variables, and as many references to names like them that it does not have."""
    variables = "".join(f"    variable_{number}: mutable string\n" for number in range(count))
    texts = "".join(f"            | {{!@variables.variabl_{number}}}\n" for number in range(references))
    script = f"variables:\n{variables}start_agent a:\n    reasoning:\n        instructions: ->\n{texts}"
    return check_script(script.encode(), label="Gym.agent", severity_of=RulePolicy().severity)


def test_only_the_first_references_to_nothing_are_compared_with_all_names() -> None:
    """Otherwise a script of a user could keep an org busy for minutes."""
    found = check_variables(30, 30)
    assert [problem.hint.startswith("Did you mean @variables.") for problem in found] == [True] * 25 + [False] * 5
    assert {problem.hint for problem in check_variables(501, 1)} == {"Define it, or remove the reference."}


def test_one_more_problem_is_found_than_are_reported_of_a_file() -> None:
    assert len(check_variables(1, limits.MAX_PROBLEMS + 5)) == limits.MAX_PROBLEMS + 1
