from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from evalmeta.engine.server_events import ServerEvent
from evalmeta.errors import SubjectError, SubjectUnreachable
from evalmeta.systems.mcp.connection import Client, ReplyEvent, classify

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b'{"id": 7, "result": {}}', "reply"),
        (b'{"id": 7, "error": {}}', "reply"),
        (b'{"id": 6, "result": {}}', "other"),
        (b'{"id": "7", "result": {}}', "other"),
        (b'{"id": 7, "method": "ping"}', "request"),
        (b'{"method": "notifications/progress"}', "other"),
        (b"[]", "text"),
        (b"Listening ...", "text"),
    ],
)
def test_only_the_reply_to_the_request_is_one(line: bytes, kind: str) -> None:
    assert classify(line, 7).kind == kind


def test_a_stream_is_read_until_the_reply_to_the_request() -> None:
    reply = ReplyEvent(7)
    others: list[JsonObject] = [
        {"id": 6, "result": {}},
        {"id": 7, "method": "ping"},
        {"method": "notifications/message"},
    ]
    assert not any(reply.add(ServerEvent("message", event)) for event in others)
    with pytest.raises(SubjectUnreachable, match="ended before its reply"):
        reply.value(is_done=True)
    assert reply.add(ServerEvent("message", {"id": 7, "result": {"a": 1}}))
    assert reply.value(is_done=False) == {"id": 7, "result": {"a": 1}}


class EndlessServer:
    """A server whose list of tools has always another page."""

    async def exchange(self, message: JsonObject) -> JsonValue:
        return {"id": message["id"], "result": {"tools": [{"name": "again"}], "nextCursor": "again"}}

    async def notify(self, method: str) -> None:
        pass

    def use_version(self, version: str) -> None:
        pass


def test_a_list_of_tools_that_does_not_end_is_an_error() -> None:
    with pytest.raises(SubjectError, match="or its list does not end"):
        asyncio.run(Client(EndlessServer()).list_tools())
