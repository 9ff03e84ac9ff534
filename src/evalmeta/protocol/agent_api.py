"""The Agent API: requests that start, continue and end a session, and their replies.

Sources: Salesforce, Agentforce Developer Guide, "Agent API Examples", "Send Agent Variables with the
Agent API" and "Agent API Considerations"; for plan traces, which the guide does not describe, the library
@salesforce/agents (`PlannerResponse`). Paths are relative to `.../einstein/ai-agent`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import orjson

from evalmeta import limits
from evalmeta.errors import MessageUnreadable
from evalmeta.model.generated_data import Action
from evalmeta.model.json_value import JsonObject, JsonValue, is_too_deep
from evalmeta.protocol.json_fields import list_of_objects, number, object_at, optional_text, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalmeta.model.definition import ContextVariable


NAMED_USER_PATH: Final = "/agentforce/bootstrap/nameduser"
END_HEADERS: Final[Mapping[str, str]] = {"x-session-end-reason": "UserRequest"}
VERSION: Final = "/v1"
SESSIONS_PATH: Final = f"{VERSION}/sessions"
PREVIEWS_PATH: Final = "/v1.1/preview/sessions"
# What plans of previews name instead of a topic, as forcedotcom/sf-skills observed; their steps have the topics.
REVIEW: Final = "review"
"""Evalmeta's own key of a step of a plan: where outputs are that were proposed, and that a person must review."""

_UNNAMED_TOPIC: Final = "DefaultTopic"
_ESCALATION: Final = "Escalate"
_MESSAGE_TYPES: Final = frozenset({"Inform", "Inquire", "Confirm", _ESCALATION})
_FAILURE_TYPES: Final = frozenset({"Failure", "Error"})
_CONTEXT: Final = "$Context."
_JWT: Final = re.compile(r"eyJ[^.]*\.[^.]*\.[^.]*", re.DOTALL)
# Salesforce Help, "Standard Variable Reference": the Testing API also accepts these names without a prefix.
_STANDARD: Final = frozenset({"ContactId", "EndUserContactId", "EndUserLanguage", "MessagingEndUserId", "RoutableId"})
_BOOLEANS: Final = frozenset({"true", "false"})
_TEXTS: Final = frozenset({"Text", "Date", "DateTime", "Ref"})
_KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "Boolean": bool,
    "Number": (int, float),
    "Money": (int, float),
    "Object": dict,
    "List": list,
}
_PROMPTS: Final = frozenset({"promptContent", "promptResponse"})


@dataclass(frozen=True, slots=True)
class AgentReply:
    """An agent's reply: the answer with a line for each message, its plan (empty if unknown), and a failure.

    After a handoff, a person has the conversation.
    """

    text: str
    plan_id: str = ""
    failure: str | None = None
    is_handed_off: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The topic and the actions of a plan, in order, and the trace as it is stored; None means unknown.

    Plans of scripts also have the transitions between subagents.
    """

    topic: str | None = None
    actions: tuple[Action, ...] | None = None
    trace: JsonValue = None
    transitions: tuple[str, ...] = ()


def start_path(agent_id: str) -> str:
    """Return the path to start a session with an agent."""
    return f"{VERSION}/agents/{quote(agent_id, safe='')}/sessions"


def messages_path(session_id: str, *, sessions: str = SESSIONS_PATH) -> str:
    """Return the path for messages of a session; `sessions` is the path of all sessions of its kind."""
    return f"{end_path(session_id, sessions=sessions)}/messages"


def end_path(session_id: str, *, sessions: str = SESSIONS_PATH) -> str:
    """Return the path to delete, which ends a session."""
    return f"{sessions}/{quote(session_id, safe='')}"


def plan_path(session_id: str, plan_id: str) -> str:
    """Return the path of a plan's trace; it is in the preview API for sessions of both kinds."""
    return f"{PREVIEWS_PATH}/{quote(session_id, safe='')}/plans/{quote(plan_id, safe='')}"


def start_body(*, key: str, instance_url: str, bypass_user: bool, variables: Iterable[JsonObject]) -> JsonObject:
    """Return the request for a session; `key` is a new UUID. With `bypass_user`, the agent acts as its own user."""
    return {
        "externalSessionKey": key,
        "instanceConfig": {"endpoint": instance_url},
        "streamingCapabilities": {"chunkTypes": ["Text"]},
        "variables": list(variables),
        "bypassUser": bypass_user,
    }


def text_body(sequence_id: int, utterance: str) -> JsonObject:
    """Return a message; the number must increase with every message of a session."""
    return {"message": {"sequenceId": sequence_id, "type": "Text", "text": utterance}, "variables": []}


def variables(context: Iterable[ContextVariable], types: Mapping[str, str]) -> list[JsonObject]:
    """Return context variables in the API's form; raise ValueError if a value does not have its type in `types`.

    Without a type in `types`, `true` and `false` in any case are Boolean, because a Boolean that is sent as Text is
    never true for the agent; other values are Text. Standard variables get their prefix `$Context.`; with that prefix,
    names of custom fields lose `__c`.
    """
    return [_variable(variable.name, variable.value, types.get(variable.name)) for variable in context]


def read_session_id(reply: JsonObject) -> str:
    """Return the id of a new session; raise MessageUnreadable if the reply has none."""
    if session_id := text(reply, "sessionId"):
        return session_id
    raise MessageUnreadable("the reply has no sessionId")


def read_reply(reply: JsonObject) -> AgentReply:
    """Read the reply to a message, ignoring messages without an answer or failure."""
    if not isinstance(reply.get("messages"), list):
        raise MessageUnreadable("the reply has no list of messages")
    messages = list_of_objects(reply, "messages")
    answers = [text(message, "message") for message in messages if text(message, "type") in _MESSAGE_TYPES]
    failures = [
        text(message, "message") or "no reason given" for message in messages if text(message, "type") in _FAILURE_TYPES
    ]
    plan_id = next(filter(None, (text(message, "planId") for message in messages)), "")
    is_handed_off = any(text(message, "type") == _ESCALATION for message in messages)
    failure = "; ".join(failures) if failures else None
    return AgentReply("\n".join(filter(None, answers)), plan_id, failure, is_handed_off)


def read_plan(trace: JsonObject) -> Plan:
    """Read a plan trace, which is empty in some orgs."""
    steps = list_of_objects(trace, "plan")
    topics = [text(step, "topic") for step in steps if text(step, "type") == "UpdateTopicStep"]
    named = text(trace, "topic")
    topic = next(filter(None, reversed(topics)), "") if named in {"", _UNNAMED_TOPIC} else named
    moves = [object_at(step, "data") for step in steps if text(step, "type") == "TransitionStep"]
    transitions = tuple(filter(None, (text(move, "to_agent") for move in moves)))
    actions = tuple(_action(step) for step in steps if text(step, "type") == "FunctionStep" and _function_name(step))
    known = actions if isinstance(trace.get("plan"), list) else None
    return Plan(topic or None, known, _storable(trace), transitions)


def read_token(reply: JsonObject) -> str:
    """Return the JWT in the reply of a token exchange, or an empty text."""
    token = optional_text(reply, "access_token") or ""
    return token if _JWT.fullmatch(token) else ""


def _variable(name: str, value: str, kind: str | None) -> JsonObject:
    kind = kind or ("Boolean" if value.strip().lower() in _BOOLEANS else "Text")
    named = name.removesuffix("__c") if name.startswith(_CONTEXT) else name
    return {"name": _CONTEXT + name if name in _STANDARD else named, "type": kind, "value": _value(name, value, kind)}


def _value(name: str, value: str, kind: str) -> JsonValue:
    if kind in _TEXTS:
        return value
    try:
        parsed: JsonValue = orjson.loads(value.lower() if kind == "Boolean" else value)
    except orjson.JSONDecodeError:
        parsed = None
    if parsed is None or not isinstance(parsed, _KINDS.get(kind, object)):
        raise ValueError(f"the context variable {name} is {value[:50]!r}, which is not a valid {kind}")
    return parsed


def _function_name(step: JsonObject) -> str:
    return text(object_at(step, "function"), "name")


def _action(step: JsonObject) -> Action:
    function = object_at(step, "function")
    latency = number(step, "executionLatency", None)
    return Action(
        _function_name(step),
        object_at(function, "input"),
        function.get("output"),
        latency if latency is not None and latency >= 0 else None,
        "; ".join(text(error, "message") for error in list_of_objects(function, "errors")) or None,
        text(step, REVIEW),
    )


def _storable(trace: JsonObject) -> JsonValue:
    """Return the trace, without its prompts if it is too large, or None if it is still too large."""
    if not trace or is_too_deep(trace):
        return None
    steps = list_of_objects(trace, "plan")
    shorter = [{name: value for name, value in step.items() if name not in _PROMPTS} for step in steps]
    spellings = (trace, {**trace, "plan": shorter})
    return next((spelling for spelling in spellings if len(json.dumps(spelling)) <= limits.MAX_ANSWER_CHARS), None)
