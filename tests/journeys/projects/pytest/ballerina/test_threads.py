"""Recorded conversations as the data of an evaluation: the agent must make the same calls again."""

from pathlib import Path

import pytest
from desk import run

from evalmeta import ballerina as ai
from evalmeta import evaluation

THREADS = ai.load_conversation_threads(Path(__file__).with_name("sessions.evalset.json"))


@evaluation(min_pass_rate=1.0)
@pytest.mark.parametrize("thread", THREADS.values(), ids=THREADS)
def test_calls_are_those_of_the_recorded_conversation(thread):
    for recorded in thread.traces:
        trace = run(ai.get_user_query(recorded))
        assert not ai.has_error(trace), ai.get_errors(trace)
        calls, expected = ai.get_all_tool_calls(trace), ai.get_all_tool_calls(recorded)
        assert len(calls) == len(expected)
        for actual, wanted in zip(calls, expected, strict=True):
            ai.assert_tool_call(actual, wanted)
        assert ai.get_total_execution_time(trace) <= 5
