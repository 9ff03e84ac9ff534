"""A conversation as the session view of the Session Trace Data Model, which prompts of custom scorers read.

Source: @salesforce/agents, `agentScorers/types`, SessionView. Ids and times are left out, because they differ in
every run and judge nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.definition import HistoryMessage
    from evalmeta.model.generated_data import Action, GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import EarlierTurn


ACTION_STEP: Final = "ACTION_STEP"
"""The type of a step that invoked an action (ssot__AiAgentInteractionStepType__c)."""


def session_view(
    history: Sequence[HistoryMessage], earlier: Iterable[EarlierTurn], utterance: str, generated: GeneratedData
) -> JsonObject:
    """Return the conversation up to an answer, a run for each turn; unknown actions are null."""
    runs: list[JsonValue] = []
    messages: list[JsonValue] = []
    for message in history:
        messages.append(_message(message.role or "user", message.message or ""))
        if message.role == "agent":
            runs.append(_run(message.topic, messages, None))
            messages = []
    if messages:
        runs.append(_run(None, messages, None))
    for question, answer in (*((turn.utterance, turn.generated) for turn in earlier), (utterance, generated)):
        said = [_message("user", question), _message("agent", answer.outcome)]
        runs.append(_run(answer.topic, said, answer.actions))
    return {"metrics": {"turns": len(runs)}, "runs": runs}


def transcript_of(session: JsonObject) -> str:
    """Return who said what in a session, a line for each message."""
    messages = (thing for run in _objects(session.get("runs")) for thing in _objects(run.get("messages")))
    return "\n".join(f"{message.get('actorRole', '')}: {message.get('message', '')}" for message in messages)


def _objects(value: JsonValue) -> Iterator[JsonObject]:
    return (each for each in value if isinstance(each, Mapping)) if isinstance(value, list) else iter(())


def _message(role: str, text: str) -> JsonObject:
    return {"message": text, "actorRole": role}


def _run(topic: str | None, messages: Sequence[JsonValue], actions: Sequence[Action] | None) -> JsonObject:
    steps: JsonValue = None if actions is None else [_step(action) for action in actions]
    return {"topicName": topic, "messages": list(messages), "agentLoop": {"steps": steps}}


def _step(action: Action) -> JsonObject:
    texts = (json.dumps(value, ensure_ascii=False) for value in (action.input, action.output))
    return {"type": ACTION_STEP, "name": action.name, **dict(zip(("input", "output"), texts, strict=True))}
