"""Finding and checking the JSON object in a language model's reply."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, TypeVar

from pydantic import BaseModel, ValidationError

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from evalmeta.model.json_value import JsonObject, JsonValue


_MAX_OBJECTS: Final = 100
# Models that think aloud write this before their answer.
_END_OF_THOUGHTS: Final = "</think>"
_KEY: Final = re.compile(r'\{\s*"[^"]*"\s*:')
_NONCE: Final = "nonce"

_T = TypeVar("_T")
_Model = TypeVar("_Model", bound=BaseModel)


class UnreadableReply(ValueError):
    """Why a model's reply cannot be used; the text contains nothing of the reply."""


def closed_schema(properties: JsonObject) -> JsonObject:
    """Return the JSON Schema of an object with exactly these properties (OpenAI, "Structured model outputs")."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def reply_schema(properties: JsonObject) -> JsonObject:
    """Return the JSON Schema of a reply; a nonce that it must repeat comes first."""
    return closed_schema({_NONCE: {"type": "string"}, **properties})


def validated(model: type[_Model], value: JsonValue) -> _Model:
    """Return a value as a model, or raise UnreadableReply with the first key that is not valid."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, fault["loc"])) or "the JSON"
        raise UnreadableReply(f"{place} is not valid: {fault['msg']}") from None


def read_reply(text: str, check: Callable[[JsonValue], _T], *, nonce: str = "") -> _T:
    """Return what `check` returns for the JSON object in a model's text, with or without other words around it.

    Objects without the nonce are ignored: the model may quote them from the answer.

    Raises:
        UnreadableReply: there is no such object, several differ, a malformed one precedes it, or the text is longer
            than `MAX_JUDGEMENT_CHARS`.
    """
    if len(text) > limits.MAX_JUDGEMENT_CHARS:
        raise UnreadableReply(f"the reply has more than {limits.MAX_JUDGEMENT_CHARS:,} characters")
    # A text that starts with JSON may quote the mark from the answer.
    if not text.lstrip().startswith(("{", "```")):
        text = text.rpartition(_END_OF_THOUGHTS)[2]
    found: list[_T] = []
    reason = "the reply has no complete JSON object" if text.strip() else "the reply is empty"
    for value in _json_objects(text):
        try:
            _check_nonce(value, nonce)
            found.append(check(value))
        except UnreadableReply as error:
            reason = str(error)
    if not found:
        raise UnreadableReply(reason)
    if any(each != found[0] for each in found):
        raise UnreadableReply("the reply has several judgements that differ")
    return found[0]


def _check_nonce(value: JsonValue, nonce: str) -> None:
    if nonce and not (isinstance(value, dict) and str(value.get(_NONCE)).strip().lower() == nonce):
        raise UnreadableReply("the judgement does not repeat the nonce of the request")


def _json_objects(text: str) -> Iterator[JsonValue]:
    """Yield the outermost JSON objects in a text; stop at the start of a malformed one."""
    decoder, at = json.JSONDecoder(), text.find("{")
    for _ in range(_MAX_OBJECTS):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            if _KEY.match(text, at):
                return
            end = at + 1
        else:
            yield value
        at = text.find("{", end)
