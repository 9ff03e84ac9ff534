"""Recorded sessions as `sf agent scorer run` reads them: the answer of each turn.

Source: @salesforce/agents, `agentScorers/types`, SessionView: a run is a turn, with its messages and steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from evalmeta.engine.answers import generated_data
from evalmeta.errors import MessageUnreadable, SubjectError
from evalmeta.model.json_value import read_json
from evalmeta.model.session_view import ACTION_STEP
from evalmeta.protocol.json_fields import list_of_objects, number, object_at, optional_text, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue


def is_session(document: JsonObject) -> bool:
    """Return whether a document is a recorded session: it has a list of runs."""
    return isinstance(document.get("runs"), list)


def read_session(session: JsonObject) -> Iterator[tuple[str, GeneratedData | None]]:
    """Yield the user's message of each turn with the agent's answer; None if the agent did not answer.

    Several messages of one speaker in a turn are lines of one text. Turns without a message of the user are left out.
    Raise MessageUnreadable, with the turn, if an answer is not valid.
    """
    session_id = optional_text(object_at(session, "sessionState"), "sessionId")
    for turn, run in enumerate(list_of_objects(session, "runs"), 1):
        utterance, outcome = (_said(run, role) for role in ("user", "agent"))
        if utterance is None:
            continue
        if outcome is None:
            yield utterance, None
            continue
        answer = {
            "outcome": outcome,
            "topic": optional_text(run, "topicName"),
            "actions": _actions(run),
            "latency_ms": number(run, "durationMs", None),
            "session_id": session_id,
        }
        try:
            yield utterance, generated_data(answer)
        except SubjectError as error:
            raise MessageUnreadable(f"turn {turn} of the session: {error}") from None


def _said(run: JsonObject, role: str) -> str | None:
    messages = list_of_objects(run, "messages")
    said = [text(message, "message") for message in messages if text(message, "actorRole").casefold() == role]
    return "\n".join(said) if said else None


def _actions(run: JsonObject) -> list[JsonObject] | None:
    """Return the actions among the steps; None if the session has no list of steps."""
    loop = object_at(run, "agentLoop")
    if not isinstance(loop.get("steps"), list):
        return None
    steps = list_of_objects(loop, "steps")
    return [_action(step) for step in steps if text(step, "type").upper() == ACTION_STEP]


def _action(step: JsonObject) -> JsonObject:
    given, output = (_value(step.get(key)) for key in ("input", "output"))
    named = given if isinstance(given, dict) or given is None else {"input": given}
    return {
        "name": text(step, "name"),
        "input": named,
        "output": output,
        "latency_ms": number(step, "durationMs", None),
    }


def _value(value: JsonValue) -> JsonValue:
    """Return the JSON that a text contains, or else the value itself; an empty text is None."""
    if not isinstance(value, str):
        return value
    try:
        return read_json(value) if value else None
    except orjson.JSONDecodeError:
        return value
