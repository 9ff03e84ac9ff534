"""A conversation's history and context variables as agents are told them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated import GeneratedData

__all__ = ["Message", "context_of", "exchanged", "history_of"]

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


def context_of(case: Case) -> dict[str, str]:
    """Gives the values of the context variables by their names."""
    return {variable.name: variable.value for variable in case.context_variables}
