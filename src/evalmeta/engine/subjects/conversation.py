"""A conversation as agents receive it: its history, its context, and the arguments of tool calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from evalmeta.model.json_value import read_json

if TYPE_CHECKING:
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue

Message: TypeAlias = dict[str, str | None]


def history_of(case: Case) -> list[Message]:
    """Return a case's history: mappings with role (`user` or `agent`), message and topic."""
    return [{"role": entry.role, "message": entry.message, "topic": entry.topic} for entry in case.history]


def turn_messages(utterance: str, generated: GeneratedData) -> tuple[Message, Message]:
    """Return the two messages that a turn adds to the history."""
    return (
        {"role": "user", "message": utterance, "topic": None},
        {"role": "agent", "message": generated.outcome, "topic": generated.topic},
    )


def context_of(case: Case) -> dict[str, JsonValue]:
    """Return the session's state and the context variables by their names."""
    return {**case.state, **{variable.name: variable.value for variable in case.context_variables}}


def plain_text(value: JsonValue) -> str:
    """Return a string as it is, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def parse_arguments(value: JsonValue) -> JsonValue:
    """Return the arguments of a tool call, also if they are JSON text; other text becomes `{"arguments": text}`."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return {}
    try:
        arguments = read_json(value)
    except ValueError:
        return {"arguments": value}
    return arguments if isinstance(arguments, dict) else {"arguments": value}
