"""Servers of MCP that are programs: a message on each line of stdin and stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from evalmeta.engine.subjects.command import Process
from evalmeta.systems.mcp.connection import classify

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.systems.mcp.connection import Client


class ServerProcess(Process):
    """A running server; of its lines, only the reply to the last request is an answer.

    Attributes:
        client: who has started the conversation with the server; None until then.
    """

    may_write_unasked = True

    def __init__(self) -> None:
        super().__init__()
        self.client: Client | None = None
        self._number: JsonValue = None

    async def exchange(self, message: JsonObject) -> JsonValue:
        """Send a request, and return the reply; any error kills the program."""
        self._number = message["id"]
        return await self.ask(message)

    async def notify(self, method: str) -> None:
        """Send a message that has no reply."""
        self._write({"jsonrpc": "2.0", "method": method})

    def use_version(self, version: str) -> None:
        """Do nothing: only HTTP repeats the version."""

    def _write(self, message: JsonObject) -> None:
        self._stdin().write(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))

    def _deliver(self, end: int) -> None:
        while end >= 0:
            line = bytes(self._received[:end])
            del self._received[: end + 1]
            found = classify(line, self._number)
            if found.kind == "text":
                self._ignored = line.strip() or self._ignored
            elif found.kind == "request":
                self._write(found.answer)
            elif found.kind == "reply" and self._answer is not None and not self._answer.done():
                self._answer.set_result(line)
            end = self._received.find(b"\n")
