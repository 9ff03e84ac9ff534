from __future__ import annotations

import json

import pytest

from evalmeta.systems.adk.reader import read_adk_file
from evalmeta.systems.adk.writer import respell
from systems.adk.adkfiles import MULTI_TURN, STATEFUL, case, content, eval_set, turn

RICH = case(
    "rich",
    {
        **turn("a", "b", [("find", {"toolUses": 1, "user_id": 2})]),
        "rubrics": [{"rubricId": "r", "rubricContent": {"textProperty": "short"}}],
        "appDetails": {"agentDetails": {"My_agent": {}}},
        "finalResponse": content("b", "model"),
    },
    sessionInput={"appName": "a", "userId": "u", "state": {"evalId": 1}},
    finalSessionState={"userId": 1},
)


@pytest.mark.parametrize("data", [eval_set(MULTI_TURN, STATEFUL), eval_set(RICH, description="d", unknownKey=[1])])
def test_an_eval_set_comes_back_from_the_other_spelling_as_it_was(data: bytes) -> None:
    there = respell(data, label="t", name="t", dialect="python")
    back = respell(there.content, label="t", name="t", dialect="typescript")

    assert json.loads(back.content) == json.loads(data)
    assert b"eval_cases" in there.content
    assert b"evalCases" not in there.content
    assert there.losses == back.losses == ()
    assert read_adk_file(there.content, label="t").cases == read_adk_file(data, label="t").cases


def test_an_array_of_the_form_before_becomes_an_eval_set() -> None:
    data = b'[{"query": "a", "reference": "b", "expected_tool_use": [{"tool_name": "c", "mock_tool_output": 1}]}]'
    written = respell(data, label="t", name="old", dialect="typescript")

    assert json.loads(written.content)["evalSetId"] == "old"
    assert [str(loss) for loss in written.losses] == [
        "line 1: 'mock_tool_output' is ignored: evalmeta does not replace tools"
    ]


def test_messages_before_the_answer_are_lost_where_they_would_mean_that_no_calls_are_expected() -> None:
    said = [{"author": "home", "text": "One moment."}]
    rows = [{"query": "a", "expected_intermediate_agent_responses": said}]
    written = respell(json.dumps(rows).encode(), label="old", name="old", dialect="python")

    assert [turn.calls for case in read_adk_file(written.content, label="new").cases for turn in case.turns] == [None]
    assert [str(loss).partition(";")[0] for loss in written.losses] == ["turn 1 of 'old': its intermediate responses"]
