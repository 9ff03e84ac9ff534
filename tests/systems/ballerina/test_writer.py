from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import evalmeta
from evalmeta import ballerina
from evalmeta.api.runs.finished import FinishedRun, FinishedRuns
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run_options import RunOptions
from systems.ballerina import ballerinasets

if TYPE_CHECKING:
    from pathlib import Path

FIND = {"name": "find_order", "input": {"id": 3, "exact": True}, "output": {"state": "sent"}}
CASES = [
    {"name": "Where", "input": "Where is my order?", "contains": "way"},
    {"input": "Are you down?", "contains": "way"},
    {"turns": [{"input": "Hello", "contains": "way"}, {"input": "And now?", "contains": "way"}]},
]


def agent(utterance: str) -> object:
    if "down" in utterance:
        raise ConnectionError("nobody answers")
    return {"outcome": f"{utterance} On its <b>way</b>, \u2028 all.", "topic": "Orders", "actions": [FIND]}


def saved(run: FinishedRun | FinishedRuns, path: Path) -> dict[str, ballerina.ConversationThread]:
    """Return what Ballerina's own way of reading finds in the file that a run is saved as."""
    with pytest.warns(UserWarning, match="cannot hold everything. Not kept: "):
        run.save(path, "ballerina")
    return ballerina.load_conversation_threads(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.evalset.json"


def test_threads_have_the_questions_answers_calls_and_errors_of_a_run(path: Path) -> None:
    threads = saved(evalmeta.evaluate(CASES, agent), path)

    assert list(threads) == ["Where", "case 2", "case 3"]
    [where] = threads["Where"].traces
    assert ballerina.get_user_query(where) == "Where is my order?"
    assert ballerina.get_final_answer(where) == "Where is my order? On its <b>way</b>, \u2028 all."
    assert ballerina.get_all_tool_calls(where) == [ballerina.FunctionCall("find_order", {"id": 3, "exact": True})]
    assert ballerina.ChatFunctionMessage("find_order", '{"state":"sent"}') in where.iterations[0].history
    [failed] = threads["case 2"].traces
    assert [error.message.rpartition(": ")[2] for error in ballerina.get_errors(failed)] == ["nobody answers"]
    first, second = threads["case 3"].traces
    assert (ballerina.get_user_query(first), ballerina.get_user_query(second)) == ("Hello", "And now?")
    assert first.start_time <= first.end_time <= second.start_time <= second.end_time
    assert where.start_time.year >= 2026


def test_the_saved_conversations_are_a_test_that_the_same_agent_passes(path: Path) -> None:
    saved(evalmeta.evaluate([CASES[0], CASES[2]], agent), path)
    finished = evalmeta.evaluate(path, agent)

    assert finished.succeeded, finished.report()
    assert finished.summary.total == 2
    assert not evalmeta.evaluate(path, lambda _: {"outcome": "No.", "actions": []}).succeeded


def test_an_agent_that_reports_no_actions_has_no_list_of_calls(path: Path) -> None:
    [thread] = saved(evalmeta.evaluate(CASES[:1], lambda _: "On its way."), path).values()
    assert (thread.traces[0].tool_calls, thread.traces[0].iterations) == (None, ())

    [quiet] = saved(evalmeta.evaluate(CASES[:1], lambda _: {"outcome": "way", "actions": []}), path).values()
    assert quiet.traces[0].tool_calls == ()


def test_iterations_runs_and_equal_names_have_threads_of_their_own(path: Path) -> None:
    twice = evalmeta.evaluate([CASES[0], CASES[0]], agent, options=RunOptions(iterations=2))
    expected = ["Where, iteration 1", "Where, iteration 1 (2)", "Where, iteration 2", "Where, iteration 2 (2)"]
    assert list(saved(twice, path)) == expected

    both = FinishedRuns([evalmeta.evaluate(CASES[:1], agent, name=name) for name in ("One", "Two")])
    assert list(saved(both, path)) == ["One: Where", "Two: Where"]


def test_the_trace_that_an_agent_reported_is_kept(path: Path) -> None:
    own = ballerinasets.trace("What is 7 - 3?", ballerinasets.assistant("4"), ballerinasets.iteration("overloaded"))
    answer = GeneratedData("4", actions=(), trace=json.loads(json.dumps(own)))
    [thread] = saved(evalmeta.evaluate(CASES[:1], lambda _: answer), path).values()

    [trace] = thread.traces
    assert (trace.id, trace.tools[0].name) == ("trace of What is 7 - 3?", "add")
    assert ballerina.get_errors(trace) == [ballerina.TraceError("overloaded")]
    assert ballerina.get_total_execution_time(trace) == 2.25


def test_what_is_not_kept_is_named_in_the_file(path: Path) -> None:
    saved(evalmeta.evaluate(CASES, agent), path)
    assert json.loads(path.read_text())["description"] == "Not kept: 2 verdicts, 3 topics."


def test_a_state_and_handoffs_are_counted_as_not_kept(path: Path) -> None:
    stateful = {"outcome": "Yes.", "state": {"cart": 1}, "handoffs": ["Orders"]}
    saved(evalmeta.evaluate(CASES[2:], lambda _: stateful), path)
    assert json.loads(path.read_text())["description"] == "Not kept: 1 verdict, 2 session states, 2 handoff lists."


def test_the_format_is_one_of_the_commands_too() -> None:
    from evalmeta.report import file_name, format_names

    assert "ballerina" in format_names()
    assert file_name("ballerina", "4KB1") == "test-result-4KB1.evalset.json"
