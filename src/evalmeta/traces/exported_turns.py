"""Turns that evalmeta has judged, as attributes of spans and back, so that an imported run has the same verdicts.

Values have the names of the GenAI conventions. What these have no name for begins with `evalmeta.`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.generated_data import Action, GeneratedData, Passage
from evalmeta.model.json_value import decoded, read_json
from evalmeta.model.steps import step_tree, trace_with_actions
from evalmeta.traces import conventions
from evalmeta.traces.messages import is_cut
from evalmeta.traces.requests import SCOPE, plain_json
from evalmeta.traces.turns import TracedTurn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.traces.spans import Span, Trace

TURN: Final = "evalmeta.turn.number"
CASE: Final = "evalmeta.case.number"
RUN: Final = "evalmeta.run.id"
TEST: Final = "test.suite.name"
_TOPIC: Final = "evalmeta.turn.topic"
_TRACE: Final = "evalmeta.turn.trace"
_STATE: Final = "evalmeta.turn.state"
_HANDOFFS: Final = "evalmeta.turn.handoffs"
_TRACEPARENT: Final = "evalmeta.turn.traceparent"
_UNREPORTED: Final = "evalmeta.turn.unreported"
_INPUT: Final = "gen_ai.input.messages"
_OUTPUT: Final = "gen_ai.output.messages"
_TYPE: Final = "gen_ai.output.type"
_DOCUMENTS: Final = "gen_ai.retrieval.documents"
_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
_MICROSECOND: Final = 6


def turn_attributes(
    utterance: str, generated: GeneratedData | None, *, unanswered: GeneratedData | None = None
) -> dict[str, JsonValue]:
    """Return what a turn says as attributes; those that are unknown are None.

    `unanswered` is what is known of a turn without an answer.
    """
    asked = _messages([("user", [{"type": "text", "content": utterance}])])
    attributes: dict[str, JsonValue] = {"gen_ai.operation.name": "invoke_agent", _INPUT: asked}
    if generated is None:
        return attributes if unanswered is None else {**attributes, **_unanswered(unanswered)}
    tokens, first_ms = generated.tokens, generated.first_token_ms
    if tokens:
        attributes["gen_ai.response.model"] = tokens.model or None
        attributes["gen_ai.usage.input_tokens"] = tokens.input
        attributes["gen_ai.usage.output_tokens"] = tokens.output
        attributes["gen_ai.usage.cache_read.input_tokens"] = tokens.cached
    if generated.retrieved is not None:
        documents: list[JsonValue] = [
            {"id": found.uri} | ({} if found.content is None else {"content": found.content})
            for found in generated.retrieved
        ]
        attributes[_DOCUMENTS] = plain_json(documents)
    missing = [name for name in ("actions", "latency_ms") if getattr(generated, name) is None]
    return {
        **attributes,
        _OUTPUT: _messages(_said(generated)),
        _TYPE: "json" if generated.is_json else "text",
        "gen_ai.conversation.id": generated.session_id,
        _FIRST_CHUNK: None if first_ms is None else first_ms / 1000,
        _TOPIC: generated.topic,
        _TRACE: None if generated.trace is None else plain_json(generated.trace),
        _STATE: None if generated.state is None else plain_json(generated.state),
        _HANDOFFS: None if generated.handoffs is None else list(generated.handoffs),
        _TRACEPARENT: generated.traceparent,
        _UNREPORTED: missing or None,
    }


def _unanswered(known: GeneratedData) -> dict[str, JsonValue]:
    """Return the steps of a turn without an answer; its actions would be those of one."""
    trace = trace_with_actions(known)
    return {_TRACE: None if trace is None else plain_json(trace), _TRACEPARENT: known.traceparent}


def _messages(messages: Sequence[tuple[str, list[JsonValue]]]) -> str:
    return plain_json([{"role": role, "parts": parts} for role, parts in messages if parts])


def _said(generated: GeneratedData) -> list[tuple[str, list[JsonValue]]]:
    """Return the messages of an answer: the calls, their results, and the text."""
    calls: list[JsonValue] = []
    responses: list[JsonValue] = []
    for number, action in enumerate(generated.actions or (), 1):
        call: dict[str, JsonValue] = {"type": "tool_call", "id": f"call_{number}", "name": action.name}
        calls.append(call | ({"arguments": action.input} if action.has_details else {}))
        response: dict[str, JsonValue] = {"type": "tool_call_response", "id": call["id"], "response": action.output}
        known: dict[str, JsonValue] = {"error": action.error, "latency_ms": action.latency_ms}
        known = {name: value for name, value in known.items() if value is not None}
        if known or action.output is not None:
            responses.append(response | known)
    return [("assistant", calls), ("tool", responses), ("assistant", [{"type": "text", "content": generated.outcome}])]


def exported_turns(trace: Trace) -> list[TracedTurn] | None:
    """Return the turns in a trace of a test run that evalmeta exported, in order; None if it is another trace.

    Spans of the agent below a turn say nothing new: evalmeta has judged what the turn says.
    """
    spans = [span for span in trace.spans.values() if isinstance(span.attributes.get(TURN), int)]
    if spans:
        return [_turn(span) for span in sorted(spans, key=_number)]
    return [] if all(span.scope == SCOPE for span in trace.spans.values()) else None


def _number(span: Span) -> int:
    number = span.attributes[TURN]
    return number if isinstance(number, int) else 0


def _turn(span: Span) -> TracedTurn:
    attributes, answer = span.attributes, _answer(span)
    case = attributes.get(CASE)
    utterance = next((_text(part.get("content")) for part in _parts(span, _INPUT)), None)
    known = {"topic": _TOPIC, "utterance": _INPUT, "answer": _OUTPUT, "actions": _OUTPUT, "tokens": "gen_ai.usage"}
    cut = [key for key in (_INPUT, _OUTPUT, _DOCUMENTS, _TRACE, _STATE) if is_cut(attributes.get(key))]
    turn = TracedTurn(
        span.trace_id,
        utterance,
        None,
        None,
        None,
        (),
        None,
        None,
        None,
        conventions.session_of(span),
        span.start_ns,
        conventions.error_of(span),
        {name: f"{key} of the turn of a test run" for name, key in known.items()},
        tuple(f"{key} of {span.name!r} was cut: raise or remove the limit of attributes" for key in cut),
        case=case if isinstance(case, int) else None,
        run=" ".join(filter(None, (_text(attributes.get(key)) for key in (TEST, RUN)))),
    )
    if answer is None:
        return turn._replace(steps=step_tree(GeneratedData("", trace=_json(attributes.get(_TRACE)))))
    return turn._replace(
        answer=answer.outcome,
        topic=answer.topic,
        actions=answer.actions,
        agents=(answer.topic,) if answer.topic else (),
        tokens=answer.tokens,
        retrieved=answer.retrieved,
        latency_ms=answer.latency_ms,
        exported=answer,
    )


def _answer(span: Span) -> GeneratedData | None:
    """Return the answer as the run judged it; None if there was none, or its messages were cut."""
    attributes = span.attributes
    said = [part for part in _parts(span, _OUTPUT) if part.get("type") == "text"]
    if not said:
        return None
    missing, first, topic = (attributes.get(key) for key in (_UNREPORTED, _FIRST_CHUNK, _TOPIC))
    unreported = missing if isinstance(missing, list) else []
    state, handoffs = _json(attributes.get(_STATE)), attributes.get(_HANDOFFS)
    return GeneratedData(
        _text(said[-1].get("content")),
        topic=topic if isinstance(topic, str) else None,
        actions=None if "actions" in unreported else tuple(_actions(span)),
        latency_ms=None if "latency_ms" in unreported else span.latency_ms,
        session_id=conventions.session_of(span) or None,
        tokens=conventions.tokens_of(span),
        trace=_json(attributes.get(_TRACE)),
        retrieved=_passages(span),
        is_json=attributes.get(_TYPE) == "json",
        first_token_ms=round(first * 1000, _MICROSECOND) if isinstance(first, float | int) else None,
        state=state if isinstance(state, dict) else None,
        handoffs=tuple(map(_text, handoffs)) if isinstance(handoffs, list) else None,
        traceparent=_text(attributes.get(_TRACEPARENT)) or None,
    )


def _parts(span: Span, key: str) -> Iterator[JsonObject]:
    """Yield the parts of the messages in an attribute; none if it is absent or was cut."""
    messages = decoded(span.attributes.get(key))
    for message in messages if isinstance(messages, list) else ():
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict):
                yield part


def _actions(span: Span) -> Iterator[Action]:
    parts = list(_parts(span, _OUTPUT))
    responses = {part.get("id"): part for part in parts if part.get("type") == "tool_call_response"}
    for part in parts:
        if part.get("type") == "tool_call":
            response = responses.get(part.get("id"), {})
            arguments, latency, error = part.get("arguments"), response.get("latency_ms"), response.get("error")
            yield Action(
                _text(part.get("name")),
                arguments if isinstance(arguments, dict) else {},
                response.get("response"),
                latency if isinstance(latency, float | int) else None,
                error if isinstance(error, str) else None,
            )


def _passages(span: Span) -> tuple[Passage, ...] | None:
    documents = decoded(span.attributes.get(_DOCUMENTS))
    if not isinstance(documents, list):
        return None
    found = [document for document in documents if isinstance(document, dict)]
    contents = [document.get("content") for document in found]
    return tuple(
        Passage(_text(document.get("id")), content if isinstance(content, str) else None)
        for document, content in zip(found, contents, strict=True)
    )


def _json(value: JsonValue) -> JsonValue:
    """Return the value in an attribute with JSON; None if it is absent or was cut."""
    try:
        return read_json(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""
