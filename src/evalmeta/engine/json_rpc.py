"""JSON-RPC 2.0, which the protocols of agents and of tools are written in: requests, and what their replies say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.errors import SubjectError
from evalmeta.model.json_value import json_text
from evalmeta.model.redaction import redacted
from evalmeta.protocol.json_fields import text

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue

METHOD_NOT_FOUND: Final = -32601
_SHOWN_CHARS: Final = 300


def request(method: str, params: JsonObject, *, number: int = 1) -> JsonObject:
    """Return a request, whose reply has the same number."""
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def is_reply_to(reply: JsonObject, number: JsonValue) -> bool:
    """Return whether the id of a reply is the number of a request, as JSON values: true is not 1."""
    known = reply.get("id")
    return known == number and not isinstance(known, bool)


def check_number(reply: JsonValue, *, number: JsonValue = 1) -> None:
    """Raise SubjectError if a response is for another request; errors need no id, because it may not be known."""
    if not isinstance(reply, dict) or reply.keys().isdisjoint({"result", "error"}) or is_reply_to(reply, number):
        return
    known = reply.get("id")
    if known is not None:
        raise SubjectError(f"the reply is for request {_shown(known)}, not {number}")
    if "error" not in reply:
        raise SubjectError(f"the reply has no id, so it may not be for request {number}")


def _shown(known: JsonValue) -> str:
    return redacted(f'"{known}"' if isinstance(known, str) else json_text(known))[:_SHOWN_CHARS]


def result_of(reply: JsonValue) -> JsonObject:
    """Return the result in a reply; raise SubjectError if it reports an error, or is not a reply."""
    if isinstance(reply, dict):
        if isinstance(error := reply.get("error"), dict):
            raise SubjectError(f"the agent returned the error {error_in_words(error)}")
        if isinstance(result := reply.get("result"), dict):
            return result
    raise SubjectError("the agent's reply is not a response of JSON-RPC with a result or an error")


def error_in_words(error: JsonObject) -> str:
    """Return the code and the beginning of the message of an error."""
    message = redacted(text(error, "message"))[:_SHOWN_CHARS] or "without a message"
    return f"{text(error, 'code') or 'without a code'}: {message}"
