from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta.model.generated_data import Action, GeneratedData, Tokens
from evalmeta.model.steps import Step, StepKind, StepTree, step_tree, trace_with_actions, tree_json

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue

FIND = Action("find_order", {"id": 7}, {"state": "sent"}, 40.0)
MODEL = Step(StepKind.MODEL, "gpt", 1.5, 1200.0, "Where?", "Sent.", tokens=Tokens(300, 12))
TREE = StepTree(
    (Step(StepKind.AGENT, "desk", 0.0, steps=(MODEL, Step(StepKind.TOOL, start_ms=1300.0, action=0))),), 2, 90
)


def answer(trace: JsonValue, *actions: Action) -> GeneratedData:
    return GeneratedData("Sent.", actions=actions, trace=trace)


def test_a_tree_is_read_as_it_was_written_and_a_tool_step_has_what_its_action_has() -> None:
    tree = step_tree(answer(tree_json(TREE), FIND))

    assert tree
    (agent,) = tree.steps
    assert agent.steps[0] == MODEL
    assert agent.steps[1] == Step(StepKind.TOOL, "find_order", 1300.0, 40.0, {"id": 7}, {"state": "sent"}, action=0)
    assert (tree.left_out_steps, tree.left_out_bytes) == (2, 90)


def test_the_action_counts_if_a_trace_says_something_else_of_it() -> None:
    trace: JsonValue = {
        "steps": [{"kind": "tool", "name": "other", "input": {"id": 1}, "duration_ms": 1, "error": "no", "action": 0}]
    }

    tree = step_tree(answer(trace, Action("find_order", {"id": 7}, None, 40.0, "not found")))

    assert tree
    assert tree.steps == (Step(StepKind.TOOL, "find_order", None, 40.0, {"id": 7}, error="not found", action=0),)


def test_what_only_the_step_knows_is_kept() -> None:
    trace: JsonValue = {"steps": [{"kind": "tool", "duration_ms": 3, "error": "refused", "action": 0}]}

    tree = step_tree(answer(trace, Action("find_order")))

    assert tree
    assert (tree.steps[0].name, tree.steps[0].duration_ms, tree.steps[0].error) == ("find_order", 3, "refused")


def test_an_action_that_the_answer_does_not_have_leaves_the_step_as_it_is() -> None:
    tree = step_tree(answer({"steps": [{"kind": "tool", "action": 5}]}, FIND))

    assert tree
    assert tree.steps == (Step(StepKind.TOOL, action=5),)


@pytest.mark.parametrize(
    "trace",
    [
        None,
        "steps",
        [],
        {},
        {"steps": 2},
        {"steps": [2]},
        {"steps": [{"kind": "planner"}]},
        {"steps": [{"kind": []}]},
        {"steps": [{"name": "desk"}]},
        {"steps": [{"kind": "agent", "plan": []}]},
        {"steps": [{"kind": "agent", "name": 7}]},
        {"steps": [{"kind": "agent", "start_ms": "0"}]},
        {"steps": [{"kind": "agent", "start_ms": True}]},
        {"steps": [{"kind": "tool", "action": -1}]},
        {"steps": [{"kind": "model", "tokens": 7}]},
        {"steps": [], "left_out": 3},
        {"steps": [], "plan": []},
    ],
)
def test_a_trace_in_another_form_is_the_agents_own_and_stays_as_it_is(trace: JsonValue) -> None:
    assert step_tree(answer(trace)) is None
    assert trace_with_actions(answer(trace)) == trace


def test_checks_get_steps_with_what_their_actions_have() -> None:
    assert trace_with_actions(answer({"steps": [{"kind": "tool", "action": 0}]}, FIND)) == {
        "steps": [
            {
                "kind": "tool",
                "name": "find_order",
                "duration_ms": 40.0,
                "input": {"id": 7},
                "output": {"state": "sent"},
                "action": 0,
            }
        ]
    }
