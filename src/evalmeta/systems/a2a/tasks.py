"""Tasks and messages, in the spelling of 1.0 and of 0.3: streams of their changes, and the answers in them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.answers import generated_data, plain_text
from evalmeta.engine.json_rpc import check_number, result_of
from evalmeta.errors import SubjectError, SubjectUnreachable
from evalmeta.model.redaction import redacted
from evalmeta.protocol.json_fields import list_of_objects, object_at, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.engine.server_events import ServerEvent
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue

_MESSAGE: Final = "message"
_TASK: Final = "task"
_STATUS: Final = "statusUpdate"
_ARTIFACT: Final = "artifactUpdate"
# 0.3 says what a result is in a key of it, 1.0 in the key around it.
_KINDS: Final = {_MESSAGE: _MESSAGE, _TASK: _TASK, "status-update": _STATUS, "artifact-update": _ARTIFACT}
_RUNNING: Final = frozenset({"submitted", "working"})
_USER: Final = frozenset({"user", "ROLE_USER"})
_ASKS_USER: Final = "input-required"
_ASKS_LOGIN: Final = "auth-required"
_COMPLETED: Final = "completed"
_ENDINGS: Final = {
    "failed": "failed",
    "rejected": "was rejected by the agent",
    "canceled": "was cancelled",
    "cancelled": "was cancelled",
    _ASKS_LOGIN: "waits for a login or another authorization, which a case cannot give",
}
_SHOWN_CHARS: Final = 300


class Answer(NamedTuple):
    """An answer, the id of its conversation, and that of the task that the user's next message continues, if any."""

    generated: GeneratedData
    context_id: str
    waiting_task: str


class TaskStream:
    """The task that the events of a stream describe, or the message.

    With `continues`, the first event may have the task as it was before the question, which waits for the user.
    """

    def __init__(self, *, continues: bool = False) -> None:
        self.first_part: float | None = None
        self._continues = continues
        self._number: JsonValue = None
        self._content: JsonObject = {}
        self._artifacts: dict[str, JsonObject] = {}

    @property
    def task_id(self) -> str:
        """Return the id of the task while it runs; empty if it does not, or is not known."""
        return text(self._content, "id") if is_running(self._content) else ""

    def add(self, event: ServerEvent) -> bool:
        """Add an event, and return whether the agent waits for the user now, or has answered."""
        check_number(event.value)
        self._number = event.value.get("id")
        kind, content = _kind_and_content(result_of(event.value))
        if kind == _ARTIFACT:
            self._add_artifact(content)
        elif kind == _STATUS:
            ids: JsonObject = {"id": content.get("taskId"), "contextId": content.get("contextId")}
            self._content = {**self._content, **ids, "kind": _TASK, "status": object_at(content, "status")}
        else:
            self._content = {**content, "kind": kind}
            self._artifacts |= {text(artifact, "artifactId"): artifact for artifact in _artifacts(content)}
        is_old = self._continues and kind == _TASK and _state(content) == _ASKS_USER
        is_over = kind == _MESSAGE or (bool(_state(self._content)) and not is_running(self._content))
        if (kind in {_MESSAGE, _ARTIFACT} or is_over) and self.first_part is None:
            self.first_part = time.perf_counter()
        return is_over and not is_old

    def value(self, *, is_done: bool) -> JsonValue:
        """Return the task or the message; raise SubjectUnreachable if there is none."""
        if not self._content:
            raise SubjectUnreachable("the agent's stream ended before its answer was complete")
        if self._content.get("kind") == _MESSAGE:
            return {"id": self._number, "result": self._content}
        return {"id": self._number, "result": {**self._content, "artifacts": list(self._artifacts.values())}}

    def _add_artifact(self, update: JsonObject) -> None:
        ids: JsonObject = {"id": update.get("taskId"), "contextId": update.get("contextId")}
        self._content = {"kind": _TASK, "status": {"state": "working"}, **self._content, **ids}
        artifact = object_at(update, "artifact")
        known = self._artifacts.get(name := text(artifact, "artifactId"))
        if known and update.get("append") is True:
            parts = _joined(list_of_objects(known, "parts"), list_of_objects(artifact, "parts"))
            artifact = {**known, "parts": parts}
        self._artifacts[name] = artifact


def _joined(parts: list[JsonObject], more: list[JsonObject]) -> list[JsonValue]:
    """Return the parts of an artifact with those that are appended: text continues the text before it."""
    if parts and more and "text" in parts[-1] and "text" in more[0]:
        last: JsonObject = {**parts[-1], "text": text(parts[-1], "text") + text(more[0], "text")}
        return [*parts[:-1], last, *more[1:]]
    return [*parts, *more]


def _kind_and_content(result: JsonObject) -> tuple[str, JsonObject]:
    if kind := _KINDS.get(text(result, "kind")):
        return kind, result
    for kind in _KINDS.values():
        if isinstance(content := result.get(kind), dict):
            return kind, content
    # A task that was asked for has no key around it.
    if "status" in result:
        return _TASK, result
    raise SubjectError("the agent's reply is neither a message nor a task of A2A")


def task_or_message(result: JsonObject) -> JsonObject:
    """Return the task or the message in a result, with its kind; raise SubjectError if it is another result."""
    kind, content = _kind_and_content(result)
    return {**content, "kind": kind}


def _state(content: JsonObject) -> str:
    """Return the state of a task in the spelling of 0.3; empty for a message."""
    state = text(object_at(content, "status"), "state")
    return state.removeprefix("TASK_STATE_").lower().replace("_", "-")


def is_running(content: JsonObject) -> bool:
    """Return whether the agent still works on a task."""
    return _state(content) in _RUNNING


def _artifacts(task: JsonObject) -> list[JsonObject]:
    return list_of_objects(task, "artifacts")


def read_answer(content: JsonObject, *, session: str) -> Answer:
    """Return the answer in a task or a message; raise SubjectError if the task has not been completed.

    It is the message, or the parts of the task's artifacts, or what its status says. A question to the user is an
    answer, too.
    """
    context_id = text(content, "contextId") or session
    if content.get("kind") == _MESSAGE:
        _check_is_agents(content)
        outcome = _value(list_of_objects(content, "parts"))
        return Answer(generated_data({"outcome": outcome, "session_id": context_id or None}), context_id, "")
    state = _state(content)
    message = object_at(object_at(content, "status"), "message")
    said = list_of_objects(message, "parts")
    if state not in {_COMPLETED, _ASKS_USER}:
        ending = _ENDINGS.get(state, f"is in the state {state[:_SHOWN_CHARS]!r}, which evalmeta does not know")
        reason = redacted(plain_text(_value(said)))[:_SHOWN_CHARS]
        raise SubjectError(f"the agent's task {ending}{f': {reason}' if reason else ''}")
    made = [part for artifact in _artifacts(content) for part in list_of_objects(artifact, "parts")]
    parts = (said or made) if state == _ASKS_USER else (made or said)
    if parts is said:
        _check_is_agents(message)
    answer = {"outcome": _value(parts), "session_id": context_id or None, "state": {"task_state": state}}
    return Answer(generated_data(answer), context_id, text(content, "id") if state == _ASKS_USER else "")


def _check_is_agents(message: JsonObject) -> None:
    """Raise SubjectError if a message is the user's, such as the question sent back."""
    if text(message, "role") in _USER:
        raise SubjectError(f"the agent's reply is a message with the role {text(message, 'role')}, not an answer")


def _value(parts: Sequence[JsonObject]) -> JsonValue:
    """Return the value of a single part with data, or else a line for each part."""
    if len(parts) == 1 and parts[0].get("data") is not None:
        return parts[0]["data"]
    return "\n".join(map(_line, parts))


def _line(part: JsonObject) -> str:
    if "text" in part:
        return text(part, "text")
    if "data" in part:
        return plain_text(part["data"])
    file = object_at(part, "file") or part
    name = text(file, "url") or text(file, "uri") or text(file, "filename") or text(file, "name")
    return name or f"a file ({text(file, 'mediaType') or text(file, 'mimeType') or 'of an unknown type'})"
