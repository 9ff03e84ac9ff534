"""A conversation's history and context variables as agents are told them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated import GeneratedData
    from evalmeta.model.jsonvalue import JsonValue

__all__ = ["Message", "context_of", "exchanged", "history_of", "plain_text"]

Message: TypeAlias = dict[str, str | None]


def history_of(case: Case) -> list[Message]:
    """Gives what was said before the case begins: mappings with role (`user` or `agent`), message and topic."""
    return [{"role": entry.role, "message": entry.message, "topic": entry.topic} for entry in case.history]


def exchanged(utterance: str, generated: GeneratedData) -> tuple[Message, Message]:
    """Gives what one turn adds to the history."""
    return (
        {"role": "user", "message": utterance, "topic": None},
        {"role": "agent", "message": generated.outcome, "topic": generated.topic},
    )


def context_of(case: Case) -> dict[str, JsonValue]:
    """Gives by their names what the session's state holds, and the values of the context variables."""
    return {**case.state, **{variable.name: variable.value for variable in case.context_variables}}


def plain_text(value: JsonValue) -> str:
    """Gives a value as text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
