"""Proposed tests expect what the agent did, whatever its arguments look like."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalmeta import evaluate
from evalmeta.api.trace_tests import propose_tests
from evalmeta.api.traces import import_traces, write_recordings
from evalmeta.errors import FormatError
from evalmeta.model.generated_data import Action

if TYPE_CHECKING:
    from evalmeta.traces.turns import TracedTurn

RECORDING = Path(__file__).parents[1] / "traces/recordings/openai_agents.jsonl"


def turn_with(given: dict[str, object]) -> TracedTurn:
    """Return a recorded turn in which the agent made another call."""
    [turn] = import_traces([RECORDING]).turns
    return turn._replace(actions=(Action("act", input=given),))  # type: ignore[arg-type] # JSON of several types


@pytest.mark.parametrize(
    ("given", "other"),
    [
        ({"contains": "x"}, {"contains": "xy"}),
        ({"filter": {"at_least": 3}}, {"filter": 4}),
        ({"filter": {"atleast": 3}}, {"filter": {"atleast": 4}}),
        ({"rows": [[1, 2], [3.5]]}, {"rows": [[1, 2], [3.6]]}),
        ({"a: b": "on", "1": None}, {"a: b": "on", "1": 0}),
        ({"flag": True, "text": "- x\n# y: 007"}, {"flag": False, "text": "- x\n# y: 007"}),
    ],
)
def test_arguments_are_expected_literally(tmp_path: Path, given: dict[str, object], other: dict[str, object]) -> None:
    proposed = propose_tests([turn := turn_with(given)], {1: turn})
    (tmp_path / "t.yaml").write_bytes(proposed.content.replace(b"    review: true\n", b""))

    def run(arguments: dict[str, object]) -> bool:
        answer = {"outcome": "Done", "topic": "Orders", "actions": [{"name": "act", "input": arguments}]}
        return evaluate(tmp_path / "t.yaml", lambda _: answer).succeeded

    assert (run(given), run(other)) == (True, False)


@pytest.mark.parametrize("number", [1e-07, 0.1234567891234, 12345678901234567890, 2.0])
def test_a_number_that_yaml_does_not_hold_exactly_is_not_expected_and_said(number: float) -> None:
    proposed = propose_tests([turn := turn_with({"id": "1", "n": number})], {1: turn})
    assert str(number).encode() not in proposed.content
    assert b'id: "1"' in proposed.content
    assert proposed.noted == (1,)


def test_what_is_unknown_is_not_expected_and_a_case_that_checks_nothing_is_left_out() -> None:
    known, blank = turn_with({}), turn_with({})._replace(trace_id="b", session="", topic=None, actions=None)
    proposed = propose_tests([known, blank], {1: known, 2: blank})
    assert (proposed.cases, [left.trace_id for left in proposed.left_out]) == (1, ["b"])
    assert proposed.left_out[0].why == "neither its topic nor its actions are known"


def test_a_conversation_ends_before_a_turn_that_no_test_can_ask() -> None:
    turns = [turn_with({})._replace(session="s", started_ns=place) for place in range(3)]
    turns[1] = turns[1]._replace(answer=None)
    proposed = propose_tests(turns, dict(enumerate(turns, 1)))
    whys = [left.why for left in proposed.left_out]
    assert (proposed.turns, whys) == (1, ["its answer is unknown", "an earlier turn of its conversation is left out"])


def test_a_trace_that_is_not_whole_becomes_no_test_and_no_recorded_answer(tmp_path: Path) -> None:
    whole = turn_with({})
    partial = whole._replace(is_whole=False, trace_id="0" * 32, session="")
    proposed = propose_tests([whole, partial], {1: whole, 2: partial})
    assert [(turn.trace_id, turn.why) for turn in proposed.left_out] == [("0" * 32, "its trace is incomplete")]
    assert write_recordings(tmp_path / "recordings.jsonl", [whole, partial]) == 1
    with pytest.raises(FormatError, match="no whole trace"):
        write_recordings(tmp_path / "other.jsonl", [partial])
