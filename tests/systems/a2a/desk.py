"""An agent that speaks A2A on the loopback interface, in the spelling of 1.0 or 0.3; the tests read its requests."""

from __future__ import annotations

import json
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from client.servers import http_reply, listening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from client.servers import Loopback
    from evalmeta.model.json_value import JsonObject, JsonValue


def message(version: str, *parts: JsonObject, context: str = "c1") -> JsonObject:
    """Return a result with a message."""
    if version == "1.0":
        return {"message": {"messageId": "m", "contextId": context, "role": "ROLE_AGENT", "parts": list(parts)}}
    return {"kind": "message", "messageId": "m", "contextId": context, "role": "agent", "parts": list(parts)}


def task(version: str, state: str, *artifacts: list[JsonObject], says: str = "", context: str = "c1") -> JsonObject:
    """Return a result with a task."""
    content: JsonObject = {"id": "t1", "contextId": context, "status": status(version, state, says)}
    if artifacts:
        content["artifacts"] = [{"artifactId": f"a{place}", "parts": parts} for place, parts in enumerate(artifacts)]
    return {"task": content} if version == "1.0" else {"kind": "task", **content}


def status(version: str, state: str, says: str = "") -> JsonObject:
    """Return the status of a task."""
    spelled = f"TASK_STATE_{state.upper().replace('-', '_')}" if version == "1.0" else state
    said = {"message": {"messageId": "m", "role": "agent", "parts": [{"text": says}]}} if says else {}
    return {"state": spelled, **said}


def status_update(version: str, state: str, says: str = "") -> JsonObject:
    """Return the result of an event that changes the status of a task."""
    update = {"taskId": "t1", "contextId": "c1", "status": status(version, state, says)}
    return {"statusUpdate": update} if version == "1.0" else {"kind": "status-update", "final": False, **update}


def artifact_update(version: str, name: str, *parts: JsonObject, append: bool = False) -> JsonObject:
    """Return the result of an event that adds to an artifact of a task."""
    update = {"taskId": "t1", "contextId": "c1", "artifact": {"artifactId": name, "parts": list(parts)}}
    update |= {"append": True} if append else {}
    return {"artifactUpdate": update} if version == "1.0" else {"kind": "artifact-update", **update}


def card(version: str, url: str, *, streams: bool = False) -> JsonObject:
    """Return an agent card."""
    common: JsonObject = {"name": "Desk", "capabilities": {"streaming": streams}}
    if version == "1.0":
        interfaces = [{"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]
        return {**common, "supportedInterfaces": interfaces}
    return {**common, "url": url, "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}


def stream(*results: JsonObject) -> bytes:
    """Return the reply with the events of a stream."""
    events = "".join(f"data: {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': result})}\r\n\r\n" for result in results)
    return http_reply(200, f": ping\r\n\r\n{events}".encode(), "Content-Type: text/event-stream")


def says(value: JsonValue, status: int = 200) -> bytes:
    return http_reply(status, json.dumps(value).encode(), "Content-Type: application/json")


def result(value: JsonObject) -> bytes:
    """Return a reply of JSON-RPC."""
    return says({"jsonrpc": "2.0", "id": 1, "result": value})


@contextmanager
def desk(
    answer: Callable[[JsonObject], bytes], *, version: str = "1.0", streams: bool = False, path: str = ""
) -> Iterator[Loopback]:
    """Serve the card of an agent whose interface is at `/rpc`, and answer the requests that it receives."""
    place: list[str] = []

    def reply(request: bytes) -> bytes:
        line = request.partition(b"\r\n")[0].decode()
        if line.startswith(f"GET {path}/.well-known/agent-card.json "):
            return says(card(version, f"{place[0]}/rpc", streams=streams))
        if not line.startswith("POST /rpc "):
            return says({"error": "not found"}, 404)
        return answer(json.loads(request.partition(b"\r\n\r\n")[2]))

    with listening(reply) as server:
        place.append(server.url)
        yield server


def in_turn(*replies: bytes) -> Callable[[JsonObject], bytes]:
    """Return what answers with these replies in turn."""
    numbers = count()
    return lambda _: replies[next(numbers)]


def calls(server: Loopback) -> list[JsonObject]:
    """Return the requests of JSON-RPC that a server received."""
    return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in server.requests if request.startswith(b"POST")]
