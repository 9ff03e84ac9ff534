from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from evalmeta import ballerina
from evalmeta.ballerina import FunctionCall, TraceError
from evalmeta.errors import AgentFailed, FormatError, ProjectError, SubjectError
from evalmeta.model.generated_data import Action, GeneratedData
from systems.ballerina.ballerinasets import ADD, assistant, evalset, iteration, trace

if TYPE_CHECKING:
    from pathlib import Path


def agent(question: str) -> GeneratedData:
    """Answers as an agent does that has read the proposal's dataset; the second question it gets wrong."""
    names = ["readEmail", "summarizeEmail", "readCalendar", "bookCalendar"] if "unread" in question else ["sendEmail"]
    return GeneratedData("Done.", actions=tuple(map(Action, names)), latency_ms=1_500)


DATASET = [
    (
        "Summarize my unread emails and schedule a follow-up meeting.",
        ["readEmail", "summarizeEmail", "readCalendar", "bookCalendar"],
    ),
    ("Send an email to Raj and add a calendar invite.", ["sendEmail", "bookCalendar"]),
]


def test_the_proposals_plain_evaluation_counts_for_itself() -> None:
    passed = 0
    for question, expected_tools in DATASET:
        calls = ballerina.get_all_tool_calls(ballerina.trace_of(agent(question), question))
        passed += [call.name for call in calls] == expected_tools

    assert passed / len(DATASET) == 0.5


def test_tool_calls_that_an_agent_does_not_report_are_not_taken_for_none() -> None:
    with pytest.raises(SubjectError, match="the agent does not report its tool calls"):
        ballerina.get_all_tool_calls(ballerina.trace_of("We open at nine."))
    reported = ballerina.trace_of({"outcome": "We open at nine.", "actions": []})
    assert ballerina.get_all_tool_calls(reported) == []


def test_threads_are_loaded_by_their_ids(tmp_path: Path) -> None:
    path = tmp_path / "sessions.evalset.json"
    path.write_bytes(evalset(maths=[trace("4+9?", assistant("13"), toolCalls=[ADD])], empty=[]))

    threads = ballerina.load_conversation_threads(path)

    assert list(threads) == ["maths", "empty"]
    [found] = threads["maths"].traces
    assert ballerina.get_user_query(found) == "4+9?"
    assert ballerina.get_all_tool_calls(found) == [FunctionCall("add", {"a": 4, "b": 9})]
    assert ballerina.get_final_answer(found) == "13"
    assert ballerina.get_total_execution_time(found) == 2.25


def test_a_file_that_cannot_be_loaded_is_reported_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "sessions.evalset.json"
    with pytest.raises(ProjectError, match="cannot be read"):
        ballerina.load_conversation_threads(path)
    path.write_text('{"threads": [\n{"id": 1, "traces": []}]}')
    with pytest.raises(FormatError, match=r"sessions\.evalset\.json:2:8: 'id' of a thread is a number"):
        ballerina.load_conversation_threads(str(path))


def test_a_call_with_other_arguments_fails_with_the_difference() -> None:
    call = FunctionCall("sendEmail", {"to": "Ann"}, id="1")
    ballerina.assert_tool_call(call, FunctionCall("sendEmail", {"to": "Ann"}))
    with pytest.raises(AssertionError, match=r"'sendEmail' has other arguments: 'to' is 'Ann', expected 'Raj'$"):
        ballerina.assert_tool_call(call, FunctionCall("sendEmail", {"to": "Raj"}))


def test_every_function_works_on_any_answer() -> None:
    action = {"name": "add", "input": {"a": 4, "b": 9}, "output": 13}
    found = ballerina.trace_of({"outcome": "It is 13.", "actions": [action], "latency_ms": 250}, "4+9?")

    [call] = ballerina.get_all_tool_calls(found)
    ballerina.assert_tool_call(call, FunctionCall("add", {"a": 4, "b": 9}))
    assert ballerina.get_user_query(found) == "4+9?"
    assert ballerina.get_final_answer(found) == "It is 13."
    assert ballerina.get_total_execution_time(found) == 0.25
    assert ballerina.get_total_execution_time(found.iterations[0]) == 0.25
    assert [getattr(each, "content", None) for each in found.iterations[0].history] == ["4+9?", None, "13"]
    assert (ballerina.has_error(found), ballerina.get_errors(found)) == (False, [])


def test_the_trace_contains_the_agents_error() -> None:
    found = ballerina.trace_of(ConnectionError("nobody answers"), "4+9?")

    assert ballerina.has_error(found)
    assert ballerina.get_errors(found) == [TraceError("ConnectionError: nobody answers")]
    with pytest.raises(AgentFailed, match="nobody answers"):
        ballerina.get_final_answer(found)


def test_an_answer_with_a_trace_of_ballerinas_has_that_one() -> None:
    own = trace("4+9?", assistant("13"), iteration(assistant(None, ADD)), iteration("no time"))
    found = ballerina.trace_of({"outcome": "13", "trace": own})

    assert (found.id, len(found.iterations)) == ("trace of 4+9?", 2)
    assert ballerina.get_errors(found) == [TraceError("no time")]
    with pytest.raises(FormatError, match="a trace needs 'tools'"):
        ballerina.trace_of({"outcome": "13", "trace": {**own, "tools": None}})


def test_traces_in_other_forms_are_not_ballerina_traces() -> None:
    assert ballerina.trace_of({"outcome": "13", "trace": {"id": "x", "output": "y"}}).id == ""


def test_an_invalid_answer_is_refused() -> None:
    with pytest.raises(SubjectError, match="the agent returned"):
        ballerina.trace_of(object())
