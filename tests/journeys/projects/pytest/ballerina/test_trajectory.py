"""The first example of the proposal: names of the called tools, with a data provider that reads a file."""

import json
from pathlib import Path

import pytest
from desk import run

from evalmeta import ballerina as ai
from evalmeta import evaluation


def tool_call_order_data_set():
    rows = json.loads(Path(__file__).with_name("tool_calls.json").read_text())
    return [pytest.param(row["input"], row["expectedTools"], id=row["input"][:20]) for row in rows]


@evaluation(confidence=0.8, iterations=2)
@pytest.mark.parametrize(("question", "expected_tools"), tool_call_order_data_set())
def test_evaluate_tool_call_order(question, expected_tools):
    trace = run(question)
    tool_calls = ai.get_all_tool_calls(trace)
    assert [tool.name for tool in tool_calls] == expected_tools
