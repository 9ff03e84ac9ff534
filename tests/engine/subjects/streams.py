"""Streams of server-sent events on the loopback interface."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
DONE = "data: [DONE]\n\n"


def events(*values: JsonValue) -> str:
    return "".join(f"data: {json.dumps(value)}\n\n" for value in values)


def chunked(text: str) -> bytes:
    """Return a reply in the transfer encoding of streams, without its end."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + f"{len(text.encode()):x}\r\n".encode() + text.encode() + b"\r\n"


def streams(*parts: JsonValue | str) -> bytes:
    """Return a reply that streams events, or texts as they are."""
    return STREAM_HEAD + "".join(part if isinstance(part, str) else events(part) for part in parts).encode()


def chunk(delta: JsonValue, *, ended: str | None = None, **more: JsonValue) -> JsonValue:
    """Return a chunk of a chat completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": ended}
    return {"id": "c-1", "object": "chat.completion.chunk", "choices": [choice], **more}
