"""Server-sent events that make one answer: WHATWG HTML, 9.2.6, "Interpreting an event stream"."""

from __future__ import annotations

import asyncio
import codecs
import re
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import orjson

from evalmeta import limits
from evalmeta.errors import SubjectError
from evalmeta.model.json_value import JsonObject, JsonValue, is_too_deep, read_json
from evalmeta.model.redaction import redacted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
# What OpenAI and the servers that follow its API send after the last event.
_DONE: Final = b"[DONE]"
_SHOWN_CHARS: Final = 200


class ServerEvent(NamedTuple):
    """An event of a stream: its name, which is often empty, and its JSON object."""

    name: str
    value: JsonObject


class Assembly(Protocol):
    """Makes one JSON value of the events of an answer."""

    def add(self, event: ServerEvent) -> bool:
        """Add an event, and return whether it was the last one; raise SubjectError if it reports an error."""
        ...

    def value(self, *, is_done: bool) -> JsonValue:
        """Return the whole value; `is_done` says that the endpoint has ended the stream itself.

        Raise SubjectUnreachable if events are missing.
        """
        ...


async def assemble(
    address: str, pieces: AsyncIterator[bytes], assembly: Assembly, *, redact: Callable[[bytes], bytes]
) -> JsonValue:
    """Read the events of a stream until the last one, and return what was made of them, without known secrets."""
    splitter, size, is_over, is_done = _Splitter(), 0, False, False
    try:
        async with asyncio.timeout(None) as end:
            async for piece in pieces:
                # The rest is read so that the connection can be used again, unless the endpoint keeps it open.
                if is_over:
                    continue
                size += len(piece)
                _check_size(address, size, splitter.size)
                for name, data in splitter.feed(piece):
                    is_done = data.strip() == _DONE
                    if is_over := is_done or assembly.add(ServerEvent(name, _decoded(address, redact(data)))):
                        end.reschedule(asyncio.get_running_loop().time() + limits.STREAM_END_SECONDS)
                        break
    except Exception:
        # How the connection ends does not matter after the last event.
        if not is_over:
            raise
    # Some servers end the connection instead of the last line.
    is_done = is_done or splitter.rest().strip() == _DONE
    value: JsonValue = orjson.loads(redact(orjson.dumps(assembly.value(is_done=is_done))))
    return value


def _check_size(address: str, size: int, event: int) -> None:
    if size > limits.MAX_STREAM_BYTES:
        raise SubjectError(f"{address} streamed more than {limits.MAX_STREAM_BYTES:,} bytes")
    if event > limits.MAX_ENDPOINT_BYTES:
        raise SubjectError(f"{address} streamed an event of more than {limits.MAX_ENDPOINT_BYTES:,} bytes")


def _decoded(address: str, data: bytes) -> JsonObject:
    what = f"an event in the stream of {address}"
    shown = redacted(data[:_SHOWN_CHARS].decode(errors="replace"))
    try:
        value = read_json(data)
    except orjson.JSONDecodeError as error:
        raise SubjectError(f"{what} is not valid JSON ({error}): {shown}") from None
    if not isinstance(value, dict):
        raise SubjectError(f"{what} is not a JSON object: {shown}")
    if is_too_deep(value):
        raise SubjectError(f"{what} is nested more than {limits.MAX_JSON_DEPTH} levels deep")
    return value


class _Splitter:
    """Splits a stream of bytes into the names and data of events; comments, ids and retry times are ignored."""

    def __init__(self) -> None:
        self._line = bytearray()
        self._is_first = True
        self._name = ""
        self._data: list[bytes] = []

    @property
    def size(self) -> int:
        """Return the number of bytes of the event that is not complete."""
        return len(self._line) + sum(map(len, self._data))

    def feed(self, piece: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the events that a piece completes."""
        self._line += piece
        # A long line is not searched again for each of its pieces.
        if not _LINE_END.search(piece):
            return
        # A line feed may follow a carriage return.
        held = self._line.endswith(b"\r")
        *lines, rest = _LINE_END.split(bytes(self._line[:-1] if held else self._line))
        self._line = bytearray(rest + b"\r" if held else rest)
        for line in lines:
            if event := self._read(line):
                yield event

    def rest(self) -> bytes:
        """Return the data of an event that was not ended with an empty line."""
        self._read(bytes(self._line).rstrip(b"\r"))
        return b"\n".join(self._data)

    def _read(self, line: bytes) -> tuple[str, bytes] | None:
        if self._is_first:
            line, self._is_first = line.removeprefix(codecs.BOM_UTF8), False
        if not line:
            event = (self._name, b"\n".join(self._data)) if self._data else None
            self._name, self._data = "", []
            return event
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"event":
            self._name = value.decode(errors="replace")
        elif field == b"data":
            self._data.append(value)
        return None
