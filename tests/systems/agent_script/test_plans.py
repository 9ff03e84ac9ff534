"""The plans of turns: their transitions are those that the conversation made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.agent_script.parser import parse_script
from evalmeta.systems.agent_script.plans import TurnRecord, write_plan
from systems.agent_script.projects import converse, write_project

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.json_value import JsonValue

SCRIPT = """\
start_agent desk:
    description: "Decides"
    reasoning:
        instructions: "Help."
        actions:
            ask_clerk: @subagent.clerk
            human: @utils.escalate
    after_reasoning:
        transition to @subagent.evening
subagent clerk:
    description: "Knows"
    reasoning:
        instructions: "Answer."
subagent evening:
    description: "Later"
    reasoning:
        instructions: "Wait."
"""
RULES = """\
rules:
  - {subagent: desk, utterance: "*person*", call: human}
  - {subagent: desk, call: ask_clerk}
  - {subagent: clerk, answer: "Seven."}
  - {subagent: desk, answer: "At seven."}
"""


def transitions(folder: Path, utterance: str) -> list[JsonValue]:
    write_project(folder, script=SCRIPT, rules=RULES, doubles={})
    [answer] = converse(folder, utterance)
    plan = write_plan(TurnRecord("p1", "s1", utterance, answer, 1000), parse_script(SCRIPT).script)
    steps = plan["plan"]
    assert isinstance(steps, list)
    found = [step["data"] for step in steps if isinstance(step, dict) and step["type"] == "TransitionStep"]
    assert [data["to_agent"] for data in found if isinstance(data, dict)] == [*(answer.handoffs or ())]
    return [[*data.values()] for data in found if isinstance(data, dict)]


def test_a_subagent_that_another_calls_returns_to_it(tmp_path: Path) -> None:
    assert transitions(tmp_path, "When?") == [["desk", "clerk"], ["clerk", "desk"], ["desk", "evening"]]


def test_an_escalation_is_a_transition_to_a_person(tmp_path: Path) -> None:
    assert transitions(tmp_path, "A person") == [["desk", "human"]]
