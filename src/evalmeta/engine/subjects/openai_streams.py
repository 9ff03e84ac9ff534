"""Streams of endpoints that follow OpenAI's API: their events become the reply that is sent without a stream."""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from evalmeta.engine.subjects.openai_replies import text_of
from evalmeta.errors import SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.model.redaction import redacted
from evalmeta.protocol.http import failure_of_status
from evalmeta.protocol.json_fields import integer, list_of_objects, object_at, optional_text, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.engine.server_events import ServerEvent
    from evalmeta.model.json_value import JsonObject, JsonValue


_SHOWN_CHARS: Final = 300
# The codes and types of errors that a status would tell: "Error codes" of OpenAI and Azure.
_ERROR_STATUSES: Final[Mapping[str, int]] = {
    "insufficient_quota": HTTPStatus.PAYMENT_REQUIRED,
    **dict.fromkeys(
        ("rate_limit_exceeded", "rate_limit_error", "too_many_requests", "requests", "tokens"),
        HTTPStatus.TOO_MANY_REQUESTS,
    ),
    **dict.fromkeys(
        ("server_overloaded", "server_is_overloaded", "overloaded_error", "engine_overloaded", "slow_down"),
        HTTPStatus.SERVICE_UNAVAILABLE,
    ),
    **dict.fromkeys(("timeout", "request_timeout"), HTTPStatus.GATEWAY_TIMEOUT),
}
_INCOMPLETE: Final = "the agent's stream ended before its answer was complete"
# The parts of an answer in the Responses API: text, refusals, and what tools are called with.
_PARTS: Final = ("response.output_text.delta", "response.refusal.delta", "_call_arguments.delta", "_call_input.delta")


class _Stream:
    """When the first part of an answer arrived; errors in a stream."""

    def __init__(self) -> None:
        self.first_part: float | None = None

    def note_part(self) -> None:
        """Note the time of the first part of the answer."""
        if self.first_part is None:
            self.first_part = time.perf_counter()

    def _check(self, error: JsonValue) -> None:
        """Raise the error that an event reports.

        A rate limit before the first part is as one without a stream; after it, the agent may have acted.
        """
        if not error:
            return
        fields: JsonObject = error if isinstance(error, dict) else {"message": str(error)}
        message = text(fields, "message") or text(fields, "code") or "without a message"
        shown = f"the agent's stream reports an error: {redacted(message)[:_SHOWN_CHARS]}"
        failure = failure_of_status(_status_of(fields))
        if failure.is_unprocessed and self.first_part is None:
            raise SubjectBusy(shown)
        if failure.is_transient:
            raise SubjectUnreachable(shown)
        raise SubjectError(shown)


def _status_of(error: JsonObject) -> int:
    """Return the HTTP status that an error would have; 0 if it is not known."""
    names = [text(error, key) for key in ("code", "type", "status", "status_code")]
    statuses = [_ERROR_STATUSES.get(name, int(name) if name.isascii() and name.isdigit() else 0) for name in names]
    return next(filter(None, statuses), 0)


def _error_in(event: ServerEvent) -> JsonValue:
    """Return the error that an event reports; empty if it reports none."""
    error = event.value.get("error")
    return error or (event.value if "error" in {event.name, event.value.get("type")} else None)


class CompletionStream(_Stream):
    """Makes a chat completion of its chunks: OpenAI API reference, "The chat completion chunk object"."""

    def __init__(self) -> None:
        super().__init__()
        self._choices = 0
        self._texts: dict[str, list[str]] = {}
        self._calls: list[_Call] | None = None
        self._old_call: _Call | None = None
        self._ended: str | None = None
        self._usage: JsonValue = None
        self._model: JsonValue = None

    def add(self, event: ServerEvent) -> bool:
        """Add a chunk; the last one has the usage and no choice, so none is known to be the last."""
        self._check(_error_in(event))
        self._usage = event.value.get("usage") or self._usage
        self._model = event.value.get("model") or self._model
        for choice in list_of_objects(event.value, "choices"):
            if integer(choice, "index", 0) == 0:
                self._add_choice(choice)
        return False

    def value(self, *, is_done: bool) -> JsonValue:
        """Return the chat completion."""
        if not is_done and self._ended is None:
            raise SubjectUnreachable(_INCOMPLETE)
        message: dict[str, JsonValue] = {name: "".join(texts) for name, texts in self._texts.items()}
        if self._calls is not None:
            message["tool_calls"] = [{"function": call.function()} for call in self._calls]
        if self._old_call:
            message["function_call"] = self._old_call.function()
        choices: list[JsonValue] = [{"message": message, "finish_reason": self._ended}] if self._choices else []
        return {"choices": choices, "usage": self._usage, "model": self._model}

    def _add_choice(self, choice: JsonObject) -> None:
        self._choices += 1
        self._ended = optional_text(choice, "finish_reason") or self._ended
        # Servers that do not stream may send the whole message.
        delta = object_at(choice, "delta") or object_at(choice, "message")
        for name in ("content", "refusal"):
            piece = text_of(delta.get(name))
            if piece is not None:
                self._texts.setdefault(name, []).append(piece)
            if piece:
                self.note_part()
        if isinstance(delta.get("tool_calls"), list):
            self._calls = self._calls or []
            for call in list_of_objects(delta, "tool_calls"):
                self._add_call(call, self._calls)
        if old := object_at(delta, "function_call"):
            self.note_part()
            self._old_call = self._old_call or _Call(None, "")
            self._old_call.add(old)

    def _add_call(self, delta: JsonObject, calls: list[_Call]) -> None:
        self.note_part()
        index, call_id = integer(delta, "index", None), text(delta, "id")
        call = next((call for call in reversed(calls) if call.index == index), None)
        # Some servers send whole calls, all with the same index or without one.
        if call is None or (call_id and call.id and call_id != call.id):
            call = _Call(index, call_id)
            calls.append(call)
        call.id = call.id or call_id
        call.add(object_at(delta, "function"))


class _Call:
    """A call of a function whose arguments arrive in pieces."""

    def __init__(self, index: int | None, call_id: str) -> None:
        self.index = index
        self.id = call_id
        self._name: str | None = None
        self._pieces: list[str] = []
        self._whole: JsonObject | None = None

    def add(self, function: JsonObject) -> None:
        name, arguments = optional_text(function, "name"), function.get("arguments")
        if name and name != self._name:
            self._name = (self._name or "") + name
        if isinstance(arguments, str):
            self._pieces.append(arguments)
        elif isinstance(arguments, dict):
            self._whole = arguments

    def function(self) -> JsonObject:
        """Return the function's name and arguments."""
        arguments: JsonValue = "".join(self._pieces) if self._whole is None else self._whole
        return {"name": self._name, "arguments": arguments}


class ResponseStream(_Stream):
    """Makes a reply of the Responses API of its events: OpenAI API reference, "Streaming events"."""

    def __init__(self) -> None:
        super().__init__()
        self._items: list[JsonObject] = []
        self._response: JsonObject = {}

    def add(self, event: ServerEvent) -> bool:
        """Add an event; the last one has the whole reply."""
        kind = text(event.value, "type") or event.name
        response = object_at(event.value, "response")
        self._check(_error_in(event) or (response.get("error") if kind == "response.failed" else None))
        if kind.endswith(_PARTS):
            self.note_part()
        if kind == "response.output_item.done":
            self._note_part_of(item := object_at(event.value, "item"))
            self._items.append(item)
        if kind not in {"response.completed", "response.incomplete", "response.failed"}:
            return False
        self._response = response
        return True

    def value(self, *, is_done: bool) -> JsonValue:
        """Return the reply; its items are those that were streamed if the last event does not repeat them."""
        if not self._response and not (is_done and self._items):
            raise SubjectUnreachable(_INCOMPLETE)
        return {**self._response, "output": self._response.get("output") or self._items}

    def _note_part_of(self, item: JsonObject) -> None:
        # Some servers send whole items without their parts.
        if text(item, "type") != "reasoning":
            self.note_part()
