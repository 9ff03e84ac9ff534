"""Agents as Databricks calls them: with `model_input`, whose messages have the conversation.

Source: "Agent Evaluation input schema": a request that is a text becomes messages before it reaches the agent. A
function that asks for a text, such as `answer(question)`, receives the question as in `evalmeta.evaluate`.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

from evalmeta.errors import SettingsError

if TYPE_CHECKING:
    from evalmeta.engine.project_code import Function
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonValue

_TEXTS: Final = frozenset({"question", "query", "utterance", "text", "prompt", "message", "_"})
_OWN: Final = frozenset({"history", "context"})
_ROLES: Final = {"agent": "assistant"}


def takes_messages(agent: object) -> bool:
    """Return whether an agent receives the request with its messages, and not the question alone.

    Raise SettingsError for the address of a model, which evalmeta cannot load.
    """
    if isinstance(agent, str):
        raise SettingsError(
            f"the model {agent!r:.100} is an address that only MLflow can load",
            actions=["Pass mlflow.pyfunc.load_model(...), or a function that calls the endpoint."],
        )
    if not callable(agent) or inspect.isclass(agent):
        return hasattr(agent, "predict")
    try:
        parameters = [*inspect.signature(cast("Function", agent)).parameters.values()]
    except (TypeError, ValueError):
        return False
    if not parameters or _OWN.intersection(parameter.name for parameter in parameters):
        return False
    first = parameters[0]
    return first.name not in _TEXTS and first.annotation not in {str, "str"}


def with_messages(case: Case) -> Case:
    """Return a case whose agent receives the request as Databricks sends it."""
    said = [(message.role or "user", message.message or "") for message in case.history]
    turns = []
    for turn in case.turns:
        messages: JsonValue = [
            {"role": _ROLES.get(role, role), "content": text} for role, text in (*said, ("user", turn.utterance))
        ]
        turns.append(replace(turn, inputs={"messages": messages, **case.state}))
    return replace(case, turns=tuple(turns))
