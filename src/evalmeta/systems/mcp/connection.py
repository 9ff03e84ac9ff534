"""Conversations with a server of MCP: its start, its list of tools, and calls, over HTTP or with a program."""

from __future__ import annotations

from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

import orjson

from evalmeta.engine.json_rpc import METHOD_NOT_FOUND, check_number, is_reply_to, request, result_of
from evalmeta.errors import EvalmetaError, SubjectError, SubjectRefused, SubjectUnreachable
from evalmeta.model.json_value import JsonObject, JsonValue, read_json
from evalmeta.protocol.json_fields import list_of_objects, object_at, text
from evalmeta.version import __version__

if TYPE_CHECKING:
    from evalmeta.engine.http_endpoint import Endpoint, Reply
    from evalmeta.engine.server_events import ServerEvent

# The newest version that begins with a handshake. Servers answer with the newest one that they know, too.
_VERSION: Final = "2025-11-25"
_INITIALIZED: Final = "notifications/initialized"
_ACCEPT: Final = "application/json, text/event-stream"
_MAX_PAGES: Final = 100
_MAX_TOOLS: Final = 10_000


class Tool(NamedTuple):
    """A tool of a server: the JSON Schema of its arguments, what it says of itself, and what its calls change.

    Attributes:
        only_reads: whether its calls change nothing.
        is_repeatable: whether a second call with the same arguments changes nothing.
    """

    name: str
    schema: JsonObject
    description: str
    only_reads: bool
    is_repeatable: bool


class Connection(Protocol):
    """A conversation with a server."""

    async def exchange(self, message: JsonObject) -> JsonValue:
        """Send a request, and return the message that replies to it."""
        ...

    async def notify(self, method: str) -> None:
        """Send a message that has no reply."""
        ...

    def use_version(self, version: str) -> None:
        """Note the version of the protocol that the server has chosen."""
        ...


class Client:
    """The client of a connection, which numbers its requests."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._number = 0

    async def start(self) -> None:
        """Agree with the server on a version of the protocol; raise SubjectError if it has no tools."""
        client: JsonObject = {"name": "evalmeta", "version": __version__}
        told: JsonObject = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": client}
        result = await self.request("initialize", told)
        self._connection.use_version(text(result, "protocolVersion") or _VERSION)
        await self._connection.notify(_INITIALIZED)
        if "tools" not in object_at(result, "capabilities"):
            raise SubjectError("the server of MCP has no tools")

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Return the result of a request; raise SubjectError if it is an error."""
        return result_of(await self.exchange(method, params))

    async def exchange(self, method: str, params: JsonObject) -> JsonValue:
        """Return the reply to a request, which may be an error; raise SubjectError if it is for another request."""
        self._number += 1
        number = self._number
        reply = await self._connection.exchange(request(method, params, number=number))
        check_number(reply, number=number)
        return reply

    async def list_tools(self) -> dict[str, Tool]:
        """Return the tools of the server by their names."""
        tools: dict[str, Tool] = {}
        params: JsonObject = {}
        for _ in range(_MAX_PAGES):
            result = await self.request("tools/list", params)
            tools |= {tool.name: tool for tool in map(_tool, list_of_objects(result, "tools"))}
            if len(tools) > _MAX_TOOLS:
                break
            cursor = text(result, "nextCursor")
            if not cursor:
                return tools
            params = {"cursor": cursor}
        raise SubjectError(f"the server of MCP has more than {_MAX_TOOLS:,} tools, or its list does not end")


def _tool(listed: JsonObject) -> Tool:
    says = text(listed, "description") or text(listed, "title")
    hints = object_at(listed, "annotations")
    only_reads = hints.get("readOnlyHint") is True
    is_repeatable = only_reads or hints.get("idempotentHint") is True
    return Tool(text(listed, "name"), object_at(listed, "inputSchema"), says, only_reads, is_repeatable)


class HttpConnection:
    """A session with a server over streamable HTTP."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._headers: dict[str, str] = {}

    def use_version(self, version: str) -> None:
        """Send the version with all later requests."""
        self._headers["MCP-Protocol-Version"] = version

    async def exchange(self, message: JsonObject) -> JsonValue:
        """Send a request, and return the reply, which may be an event of a stream."""
        reply = await self._send(message, assembly=ReplyEvent(message["id"]))
        if session := reply.headers.get("mcp-session-id"):
            self._headers["Mcp-Session-Id"] = session
        return reply.value

    async def notify(self, method: str) -> None:
        """Send a message that has no reply."""
        await self._send({"jsonrpc": "2.0", "method": method})

    async def _send(self, message: JsonObject, *, assembly: ReplyEvent | None = None) -> Reply:
        headers = {"Accept": _ACCEPT, **self._headers}
        try:
            return await self._endpoint.send(message, headers=headers, assembly=assembly, may_be_empty=True)
        except SubjectRefused as error:
            if error.status == HTTPStatus.NOT_FOUND and "Mcp-Session-Id" in self._headers:
                raise SubjectUnreachable("the server of MCP has ended the session", is_unprocessed=True) from None
            raise

    async def end(self) -> None:
        """End the session, which not every server supports."""
        if "Mcp-Session-Id" in self._headers:
            with suppress(EvalmetaError):
                await self._endpoint.send(None, method="DELETE", headers=self._headers, may_be_empty=True)


class ReplyEvent:
    """The event of a stream that replies to a request; notifications are ignored."""

    def __init__(self, number: JsonValue) -> None:
        self._number = number
        self._reply: JsonValue = None

    def add(self, event: ServerEvent) -> bool:
        """Add an event, and return whether it is the reply."""
        if is_reply_to(event.value, self._number) and "method" not in event.value:
            self._reply = event.value
        return self._reply is not None

    def value(self, *, is_done: bool) -> JsonValue:
        """Return the reply; raise SubjectUnreachable if there was none."""
        if self._reply is None:
            raise SubjectUnreachable("the stream of the server of MCP ended before its reply")
        return self._reply


class Line(NamedTuple):
    """What a line of a program is: the reply to a request, a request that needs an answer, or something to ignore.

    Of what is ignored, a text is not a message, such as one that the program prints.
    """

    kind: Literal["reply", "request", "other", "text"]
    answer: JsonObject = {}  # noqa: RUF012 - never changed


def classify(line: bytes, number: JsonValue) -> Line:
    """Return what a line is while the reply to the request with a number is expected.

    Lines that are not JSON are ignored, as by other clients: some programs print there.
    """
    try:
        message = read_json(line)
    except orjson.JSONDecodeError:
        return Line("text")
    if not isinstance(message, dict):
        return Line("text")
    if "method" not in message:
        return Line("reply" if is_reply_to(message, number) else "other")
    if "id" not in message:
        return Line("other")
    answer: JsonObject = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "ping":
        return Line("request", {**answer, "result": {}})
    error: JsonObject = {"code": METHOD_NOT_FOUND, "message": "evalmeta only calls tools"}
    return Line("request", {**answer, "error": error})
