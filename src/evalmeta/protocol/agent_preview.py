"""The preview API: a script of Agent Script is compiled, and a session talks to what was compiled.

Sources: the library @salesforce/agents 2.3.1, `src/agents/scriptAgent.ts`, `src/types.ts` and `test/mocks`; there is no
documentation. Paths are relative to `AGENT_API`.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from evalmeta.errors import MessageUnreadable
from evalmeta.protocol.agent_api import PREVIEWS_PATH
from evalmeta.protocol.json_fields import integer, list_of_objects, object_at, optional_text, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.problem import Problem


AGENT_API: Final = "/einstein/ai-agent"
SCRIPTS_PATH: Final = "/v1.1/authoring/scripts"
_ASSET: Final = "AFScript"
_SCRIPT_VERSION: Final = "2.0.0"
_SUCCESS: Final = "success"
_EMPLOYEE_AGENT: Final = "AgentforceEmployeeAgent"
_VARIABLE_TYPES: Final[Mapping[str, str]] = {"number": "Number", "boolean": "Boolean"}
_MILLISECONDS: Final = 1000
_ERRORS: Final[Mapping[int, str]] = {
    HTTPStatus.BAD_REQUEST: "BadRequestException",
    HTTPStatus.UNAUTHORIZED: "UnauthorizedException",
    HTTPStatus.FORBIDDEN: "ForbiddenException",
    HTTPStatus.NOT_FOUND: "NotFoundException",
    HTTPStatus.LOCKED: "LockedException",
    HTTPStatus.TOO_MANY_REQUESTS: "TooManyRequestsException",
}
_OTHER_ERROR: Final = "HttpServerErrorException"


@dataclass(frozen=True, slots=True)
class PreviewRequest:
    """A request for a session: what was compiled, whether actions are simulated, and the variables by their names."""

    definition: JsonObject
    is_simulated: bool
    variables: JsonObject


@dataclass(frozen=True, slots=True)
class PreviewMessage:
    """A message of the user; its number must be larger than those of the messages before it."""

    number: int
    text: str


def read_script_request(body: JsonObject) -> str:
    """Return the script to compile; raise MessageUnreadable if the request does not have exactly one."""
    scripts = [asset for asset in list_of_objects(body, "assets") if text(asset, "type") == _ASSET]
    source = optional_text(scripts[0], "content") if len(scripts) == 1 else None
    if source is None:
        raise MessageUnreadable(f"the request needs one asset of the type {_ASSET} with its content")
    return source


def script_body(source: str) -> JsonObject:
    """Return the request to compile a script."""
    asset: JsonObject = {"type": _ASSET, "name": _ASSET, "content": source}
    return {"assets": [asset], "afScriptVersion": _SCRIPT_VERSION}


def read_compiled(reply: JsonObject) -> tuple[JsonObject, list[str]]:
    """Return what was compiled from a script, or else its errors, each after its line and column."""
    definition = object_at(reply, "compiledArtifact")
    if text(reply, "status") == _SUCCESS and definition:
        return definition, []
    errors = [_compile_error_text(error) for error in list_of_objects(reply, "errors")]
    return {}, errors or ["the script was not compiled, and no reason was given"]


def _compile_error_text(error: JsonObject) -> str:
    line, column = integer(error, "lineStart", 0), integer(error, "colStart", 0)
    return f"{line}:{column}: {text(error, 'description')} [{text(error, 'errorType')}]"


def preview_body(
    definition: JsonObject,
    *,
    version: str,
    key: str,
    instance_url: str,
    bypass_user: bool,
    simulates: bool,
    variables: Iterable[JsonObject],
) -> JsonObject:
    """Return the request for a session with what was compiled; `version` is the name of the version to be published.

    With `bypass_user`, the agent acts as its own user, if the script names one and is not for employees. With
    `simulates`, its actions are simulated.
    """
    configuration = object_at(definition, "globalConfiguration")
    has_user = text(configuration, "defaultAgentUser") and text(configuration, "agentType") != _EMPLOYEE_AGENT
    named = {**object_at(definition, "agentVersion"), "developerName": version}
    return {
        "agentDefinition": {**definition, "agentVersion": named},
        "enableSimulationMode": simulates,
        "externalSessionKey": key,
        "instanceConfig": {"endpoint": instance_url},
        "variables": list(variables),
        "parameters": {},
        "streamingCapabilities": {"chunkTypes": ["Text"]},
        "richContentCapabilities": {},
        "bypassUser": bypass_user and bool(has_user),
        "executionHistory": [],
        "conversationContext": [],
    }


def state_types(definition: JsonObject) -> dict[str, str]:
    """Return the API's types of the variables of a script that are numbers or booleans, by their names."""
    declared = list_of_objects(object_at(definition, "agentVersion"), "stateVariables")
    kinds = {text(variable, "developerName"): _VARIABLE_TYPES.get(text(variable, "dataType")) for variable in declared}
    return {name: kind for name, kind in kinds.items() if kind}


def write_compiled(definition: JsonObject) -> JsonObject:
    """Return the reply with what was compiled from a script."""
    return _compiled(_SUCCESS, definition, [])


def write_uncompiled(problems: Iterable[Problem]) -> JsonObject:
    """Return the reply with the errors of a script that cannot be compiled."""
    return _compiled("failure", None, [_compile_error(problem) for problem in problems])


def _compiled(status: str, definition: JsonObject | None, errors: list[JsonValue]) -> JsonObject:
    return {
        "status": status,
        "compiledArtifact": definition,
        "errors": errors,
        "syntacticMap": {"blocks": []},
        "dslVersion": _SCRIPT_VERSION,
    }


def _compile_error(problem: Problem) -> JsonObject:
    place = problem.location
    line, column = place.line or 1, place.column or 1
    description = f"{problem.message}. {problem.hint}" if problem.hint else problem.message
    return {
        "errorType": problem.code,
        "description": description,
        "lineStart": line,
        "lineEnd": line,
        "colStart": column,
        "colEnd": column,
    }


def read_preview_request(body: JsonObject) -> PreviewRequest:
    """Return a request for a session; raise MessageUnreadable if it is not valid, or begins with a conversation."""
    definition = object_at(body, "agentDefinition")
    if not definition:
        raise MessageUnreadable("the request has no agentDefinition")
    for key in ("executionHistory", "conversationContext"):
        if body.get(key):
            raise MessageUnreadable(f"{key} is not supported; send the user's messages of the conversation instead")
    variables = {text(variable, "name"): _value_of(variable) for variable in list_of_objects(body, "variables")}
    variables.pop("", None)
    return PreviewRequest(definition, body.get("enableSimulationMode") is True, variables)


def _value_of(variable: JsonObject) -> JsonValue:
    """Return a variable's value; an Object is a list of its members, each with a name, a type and a value."""
    value = variable.get("value")
    if text(variable, "type") != "Object" or not isinstance(value, list):
        return value
    return {text(member, "name"): _value_of(member) for member in value if isinstance(member, dict)}


def read_preview_message(body: JsonObject) -> PreviewMessage:
    """Return the message in a request; raise MessageUnreadable if it is not valid, or changes variables."""
    message = object_at(body, "message")
    number, said = integer(message, "sequenceId", None), optional_text(message, "text")
    if number is None or not said or text(message, "type") != "Text":
        raise MessageUnreadable("a message needs a sequenceId, the type Text and a text")
    if body.get("variables"):
        raise MessageUnreadable("variables cannot change during a session; send them when it starts")
    return PreviewMessage(number, said)


def write_session(session_id: str, base_url: str, greeting: str) -> JsonObject:
    """Return the reply to a request for a session; without a greeting, the agent has no message yet."""
    messages: Sequence[JsonValue] = [write_message(greeting)] if greeting else []
    return {"sessionId": session_id, "_links": _links(base_url, session_id), "messages": list(messages)}


def write_answer(session_id: str, base_url: str, message: JsonObject) -> JsonObject:
    """Return the reply with a message of the agent, or with the end of the session."""
    return {"messages": [message], "_links": _links(base_url, session_id)}


def write_message(said: str, *, plan_id: str = "", is_handed_off: bool = False) -> JsonObject:
    """Return a message of the agent; nothing judges whether it is safe."""
    return {
        "type": "Escalate" if is_handed_off else "Inform",
        "id": str(uuid.uuid4()),
        "feedbackId": "",
        "planId": plan_id,
        "isContentSafe": True,
        "message": said,
        "result": [],
        "citedReferences": [],
    }


def write_session_end() -> JsonObject:
    """Return the message that ends a session."""
    return {"type": "SessionEnded", "id": str(uuid.uuid4()), "reason": "ClientRequest", "feedbackId": ""}


def _links(base_url: str, session_id: str) -> JsonObject:
    sessions = f"{base_url.rstrip('/')}{AGENT_API}{PREVIEWS_PATH}"
    session = f"{sessions}/{session_id}"
    return {
        "self": None,
        "messages": {"href": f"{session}/messages"},
        "session": {"href": sessions},
        "end": {"href": session},
    }


def write_error(path: str, message: str, *, status: int) -> JsonObject:
    """Return an error of the Agent API for a path below `AGENT_API`."""
    return {
        "status": status,
        "path": path,
        "requestId": str(uuid.uuid4()),
        "error": _ERRORS.get(status, _OTHER_ERROR),
        "message": message,
        "timestamp": int(time.time() * _MILLISECONDS),
        "expected": status < HTTPStatus.INTERNAL_SERVER_ERROR,
    }
