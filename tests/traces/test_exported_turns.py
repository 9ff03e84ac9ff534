from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.generated_data import Action, GeneratedData, Passage, Tokens
from evalmeta.traces.exported_turns import CASE, TURN, exported_turns, turn_attributes
from evalmeta.traces.otlp import read_file
from evalmeta.traces.requests import request_lines
from evalmeta.traces.spans import Span, Trace, traces_of

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue
    from evalmeta.traces.turns import TracedTurn

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
BEGIN = 1_795_187_104_000_000_000

texts = st.text(st.characters(exclude_categories=["Cs"]))
values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts | st.just('{"a": [1]}'),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
counts = st.none() | st.integers(0, 10**6)
milliseconds = st.none() | st.integers(0, 10**6).map(lambda tenths: tenths / 10)
actions = st.builds(
    Action, texts, st.dictionaries(texts, values, max_size=2), values, milliseconds, st.none() | texts
)  # fmt: skip
fields: dict[str, st.SearchStrategy[object]] = {
    "outcome": texts,
    "topic": st.none() | texts,
    "actions": st.none() | st.lists(actions, max_size=3).map(tuple),
    "latency_ms": milliseconds,
    "session_id": st.none() | st.text("abc", min_size=1),
    "tokens": st.none() | st.builds(Tokens, st.integers(0, 9), counts, counts, st.sampled_from(["", "gpt-9"])),
    "retrieved": st.none() | st.lists(st.builds(Passage, texts, st.none() | texts), max_size=2).map(tuple),
    "is_json": st.booleans(),
    "first_token_ms": milliseconds,
    "trace": values,
    "state": st.none() | st.dictionaries(texts, values, max_size=2),
    "handoffs": st.none() | st.lists(texts, max_size=2).map(tuple),
    "traceparent": st.none() | st.just(f"00-{TRACE}-{SPAN}-01"),
}
answers = st.builds(GeneratedData, **fields)


def exported(utterance: str, generated: GeneratedData | None, *, error: str | None = None) -> Span:
    latency = generated.latency_ms if generated else None
    end = BEGIN + round((latency or 0) * 1e6)
    attributes = {**turn_attributes(utterance, generated), TURN: 1, CASE: 7}
    return Span(TRACE, SPAN, "", "invoke_agent", BEGIN, end, attributes, error=error)


def imported(*spans: Span) -> list[TracedTurn] | None:
    (trace,) = traces_of(read_file("\n".join(request_lines(spans)).encode(), label="t.jsonl"))
    return exported_turns(trace)


def test_no_value_of_an_answer_is_forgotten() -> None:
    assert {field.name for field in dataclasses.fields(GeneratedData)} == fields.keys()


@given(texts, answers)
def test_what_a_turn_said_is_the_same_after_export_and_import(utterance: str, answer: GeneratedData) -> None:
    turns = imported(exported(utterance, answer))
    assert turns is not None
    assert [(turn.utterance, turn.generated(), turn.case, turn.error) for turn in turns] == [
        (utterance, answer, 7, None)
    ]


def test_turns_come_in_their_order_whatever_their_times_are() -> None:
    first, second = (exported(text, GeneratedData(text)) for text in ("one", "two"))
    second = second._replace(span_id="1" * 16, start_ns=BEGIN - 5, attributes={**second.attributes, TURN: 2})
    turns = imported(second, first)
    assert turns is not None
    assert [turn.utterance for turn in turns] == ["one", "two"]


def test_a_turn_that_failed_has_its_error_also_if_the_agent_answered() -> None:
    for answer in (None, GeneratedData("half")):
        turns = imported(exported("q", answer, error="no answer within 5 s"))
        assert turns is not None
        assert turns[0].error == "no answer within 5 s"


@pytest.mark.parametrize("key", ["gen_ai.input.messages", "gen_ai.output.messages"])
def test_messages_that_were_cut_are_unknown_and_noted(key: str) -> None:
    span = exported("question", GeneratedData("answer", actions=()))
    cut = span._replace(attributes={**span.attributes, key: str(span.attributes[key])[:-9]})
    turns = imported(cut)
    assert turns is not None
    (turn,) = turns
    is_input = key == "gen_ai.input.messages"
    assert ((turn.utterance is None), (turn.answer is None), (turn.actions is None)) == (
        is_input,
        not is_input,
        not is_input,
    )
    assert [f"{key} of 'invoke_agent' was cut" in note for note in turn.findings] == [True]


def test_a_trace_of_an_agent_is_not_one_of_a_test_run() -> None:
    agent = Span(TRACE, SPAN, "", "chat", BEGIN, BEGIN, {"gen_ai.operation.name": "chat"}, scope="shop")
    assert exported_turns(Trace(TRACE, [agent])) is None


def test_the_trace_of_a_case_whose_turn_was_lost_is_that_of_its_agent() -> None:
    case = Span(TRACE, SPAN, "", "test case 1", BEGIN, BEGIN, {CASE: 1}, scope="evalmeta")
    agent = Span(TRACE, "2" * 16, SPAN, "chat", BEGIN, BEGIN, {"gen_ai.operation.name": "chat"}, scope="shop")
    assert exported_turns(Trace(TRACE, [case])) == []
    assert exported_turns(Trace(TRACE, [case, agent])) is None


def test_spans_of_the_agent_below_a_turn_change_nothing() -> None:
    turn = exported("q", GeneratedData("a", topic="Orders", actions=()))._replace(scope="evalmeta")
    agent = Span(
        TRACE, "2" * 16, SPAN, "execute_tool x", BEGIN, BEGIN, {"gen_ai.operation.name": "execute_tool"}, scope="shop"
    )
    assert exported_turns(Trace(TRACE, [turn, agent])) == exported_turns(Trace(TRACE, [turn]))
