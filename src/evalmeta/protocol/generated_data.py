"""The Testing API's generatedData, an agent's answer and actions, as JSON and back."""

from __future__ import annotations

import orjson

from evalmeta import limits
from evalmeta.errors import MessageUnreadable
from evalmeta.model.expectations import parse_actions, render_actions
from evalmeta.model.generated_data import Action, GeneratedData, Passage, Tokens, invoked_actions
from evalmeta.model.json_value import JsonObject, JsonValue, is_too_deep, read_json
from evalmeta.protocol.json_fields import integer, list_of_objects, number, object_at, optional_text, text


def read_generated(source: JsonObject) -> GeneratedData:
    """Read generatedData; without a list of names or details, the actions are unknown."""
    calls = _parsed(source.get("invokedActions"))
    invoked = [_read_action(value) for value in _flatten(calls)]
    sequence = source.get("actionsSequence")
    is_same = sequence == render_actions(action.name for action in invoked)
    names = None if is_same else _action_names(sequence)
    is_reported = is_same or names is not None or isinstance(calls, list | dict)
    actions = tuple(invoked) if names is None else tuple(_take(invoked, name) for name in names)
    tokens, trace = object_at(source, "tokens"), source.get("trace")
    spent = [integer(tokens, key, None) for key in ("input", "output")]
    retrieved = list_of_objects(source, "retrieved")
    passages = tuple(Passage(text(value, "uri"), optional_text(value, "content")) for value in retrieved)
    state, handoffs = source.get("sessionState"), source.get("handoffs")
    if is_too_deep(trace) or is_too_deep(state):
        raise MessageUnreadable("the trace or the session's state is nested too deeply")
    return GeneratedData(
        outcome=text(source, "outcome") or text(source, "generatedResponse"),
        topic=optional_text(source, "topic"),
        actions=actions if is_reported else None,
        latency_ms=number(source, "latencyMilliseconds", None),
        session_id=optional_text(source, "sessionId"),
        tokens=None if spent == [None, None] else _read_tokens(tokens),
        trace=trace,
        retrieved=passages if "retrieved" in source else None,
        is_json=source.get("outcomeIsJson") is True,
        first_token_ms=number(source, "firstTokenMilliseconds", None),
        state=state if isinstance(state, dict) else None,
        handoffs=_action_names(handoffs) if isinstance(handoffs, list) else None,
        traceparent=optional_text(source, "traceparent"),
    )


def write_generated(generated: GeneratedData) -> JsonObject:
    """Write generatedData; unknown actions are empty texts, because Salesforce's clients decode both as text."""
    tokens, actions = generated.tokens, generated.actions
    passages = [{"uri": passage.uri, "content": passage.content} for passage in generated.retrieved or ()]
    return {
        "type": "AGENT",
        "topic": generated.topic,
        "actionsSequence": "" if actions is None else render_actions(action.name for action in actions),
        "invokedActions": "" if actions is None else orjson.dumps(invoked_actions(actions)).decode(),
        "outcome": generated.outcome,
        "sessionId": generated.session_id,
        "latencyMilliseconds": generated.latency_ms,
        **({"tokens": write_tokens(tokens)} if tokens else {}),
        **({} if generated.trace is None else {"trace": generated.trace}),
        **({} if generated.retrieved is None else {"retrieved": passages}),
        **({"outcomeIsJson": True} if generated.is_json else {}),
        **({} if generated.first_token_ms is None else {"firstTokenMilliseconds": generated.first_token_ms}),
        **({} if generated.state is None else {"sessionState": generated.state}),
        **({} if generated.handoffs is None else {"handoffs": list(generated.handoffs)}),
        **({} if generated.traceparent is None else {"traceparent": generated.traceparent}),
    }


def write_tokens(tokens: Tokens) -> JsonObject:
    """Write the tokens of an answer, as agents report them."""
    cached: JsonObject = {} if tokens.cached is None else {"cached": tokens.cached}
    model: JsonObject = {"model": tokens.model} if tokens.model else {}
    return {"input": tokens.input, "output": tokens.output, **cached, **model}


def _read_tokens(source: JsonObject) -> Tokens:
    given, output, cached = (integer(source, key, None) for key in ("input", "output", "cached"))
    return Tokens(given, output, cached, text(source, "model"))


def _read_action(source: JsonObject) -> Action:
    function = object_at(source, "function")
    latency = source.get("executionLatency")
    inputs, output = object_at(function, "input"), function.get("output")
    if is_too_deep(inputs) or is_too_deep(output):
        raise MessageUnreadable(f"an action's input or output is nested more than {limits.MAX_JSON_DEPTH} levels deep")
    return Action(
        name=text(function, "name"),
        input=inputs,
        output=None if output == {} else output,
        latency_ms=float(latency) if isinstance(latency, int | float) else None,
        error=optional_text(source, "error"),
        review=text(source, "review"),
    )


def _flatten(value: JsonValue) -> list[JsonObject]:
    """Return the objects inside nested lists, in order."""
    objects: list[JsonObject] = []
    pending = [value]
    while pending:
        here = pending.pop()
        if isinstance(here, dict):
            objects.append(here)
        elif isinstance(here, list):
            pending.extend(reversed(here))
    return objects


def _parsed(value: JsonValue) -> JsonValue:
    try:
        return read_json(value) if isinstance(value, str) and value.strip() else value
    except orjson.JSONDecodeError:
        return None


def _action_names(value: JsonValue) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return parse_actions(value)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else None


def _take(invoked: list[Action], name: str) -> Action:
    place = next((index for index, action in enumerate(invoked) if action.name == name), None)
    return Action(name) if place is None else invoked.pop(place)
