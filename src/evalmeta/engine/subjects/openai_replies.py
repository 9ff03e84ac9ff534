"""Replies of endpoints that follow OpenAI's API, chat completions and responses, as GeneratedData."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.engine.answer_shapes import answer_of
from evalmeta.engine.answers import generated_data
from evalmeta.errors import SubjectError
from evalmeta.model.redaction import redacted
from evalmeta.protocol.json_fields import integer, list_of_objects, object_at, optional_text, text

if TYPE_CHECKING:
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue


_SHOWN_CHARS: Final = 300
# "incomplete" replies were cut at a limit of tokens or by a filter; what they contain was answered.
_STATUSES: Final = {"completed", "incomplete", ""}


def read_completion(reply: JsonValue, *, offers_tools: bool) -> GeneratedData:
    """Read a chat completion; without calls, the actions are only known if a reply would list them.

    An endpoint that was offered no tools may be an agent that calls its own and does not report them.
    """
    choices = list_of_objects(reply, "choices") if isinstance(reply, dict) else []
    message = choices[0].get("message") if choices else None
    if not isinstance(message, dict) or not isinstance(reply, dict):
        raise SubjectError(f"the agent's reply has no choices[0].message: {_shown(reply)}")
    ended = optional_text(choices[0], "finish_reason")
    actions = _calls_of_message(message)
    content = text_of(message.get("content"))
    outcome = content or optional_text(message, "refusal") or content
    if outcome is None and not actions:
        raise SubjectError(f"the agent's message has neither content nor tool_calls (finish_reason: {ended})")
    is_listed = bool(actions) or offers_tools or isinstance(message.get("tool_calls"), list)
    return generated_data(
        {
            "outcome": outcome or "",
            "actions": actions if is_listed else None,
            "tokens": _tokens(reply, "prompt_tokens", "completion_tokens"),
        }
    )


def read_response(reply: JsonValue, *, offers_tools: bool) -> GeneratedData:
    """Read a reply of the Responses API, whose calls are known as those of chat completions are."""
    if not isinstance(reply, dict) or not isinstance(reply.get("output"), list):
        raise SubjectError(f"the agent's reply has no list output: {_shown(reply)}")
    if (status := text(reply, "status")) not in _STATUSES:
        raise SubjectError(f"the agent's reply has the status {redacted(status)}, not completed: {_why(reply)}")
    # The rest is read as what a Python agent may return; there, an incomplete reply is an error.
    answer = answer_of({"output": reply["output"]})
    if answer is None or (status == "incomplete" and not (answer["outcome"] or answer["actions"])):
        raise SubjectError(f"the agent's output has neither a message nor a call: {_why(reply)}")
    is_listed = bool(answer["actions"]) or offers_tools
    tokens = _tokens(reply, "input_tokens", "output_tokens")
    return generated_data({**answer, "actions": answer["actions"] if is_listed else None, "tokens": tokens})


def text_of(content: JsonValue) -> str | None:
    """Return the text of a message's content, which may be a list of parts; refusals are text, too."""
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise SubjectError(f"the agent's content is {type(content).__name__}; expected text or a list of parts")
    texts = []
    for part in content:
        if isinstance(part, dict):
            texts.append(optional_text(part, "text") or optional_text(part, "refusal") or "")
        elif isinstance(part, str):
            texts.append(part)
        else:
            raise SubjectError(f"the agent's content holds {type(part).__name__}; expected text or parts with text")
    return "".join(texts)


def _tokens(reply: JsonObject, given: str, output: str) -> JsonObject | None:
    if not (usage := object_at(reply, "usage")):
        return None
    return {
        "input": integer(usage, given, None),
        "output": integer(usage, output, None),
        "cached": integer(object_at(usage, f"{given}_details"), "cached_tokens", None),
        "model": optional_text(reply, "model"),
    }


def _calls_of_message(message: JsonObject) -> list[JsonObject]:
    calls = [tool_call.get("function") for tool_call in list_of_objects(message, "tool_calls")]
    if message.get("function_call"):
        calls.append(message["function_call"])
    actions: list[JsonObject] = []
    for call in calls:
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            raise SubjectError(f"the agent's tool_calls hold a call without a function's name: {_shown(call)}")
        actions.append({"name": call["name"], "input": call.get("arguments")})
    return actions


def _why(reply: JsonObject) -> str:
    error, details = object_at(reply, "error"), object_at(reply, "incomplete_details")
    why = text(error, "message") or text(error, "code") or text(details, "reason")
    return redacted(why)[:_SHOWN_CHARS] or "no reason is given"


def _shown(value: JsonValue) -> str:
    return redacted(repr(value))[:_SHOWN_CHARS]
