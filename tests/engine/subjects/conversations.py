"""Agents on the loopback interface, with predefined answers; the tests read the requests."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from client.servers import http_reply
from evalmeta.model.definition import ContextVariable, HistoryMessage
from evalmeta.model.evaluation import Case, Turn

if TYPE_CHECKING:
    from client.servers import Loopback
    from evalmeta.engine.interfaces import Subject
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue

KEY = "canary-0123456789-key"
CASE = Case(
    1,
    (Turn("And now?"),),
    (HistoryMessage("user", "Hello"), HistoryMessage("agent", "Hi, who is it?", "Greeting")),
    (ContextVariable("tier", "gold"), ContextVariable("region", "EU")),
)


def says(reply: JsonValue, status: int = 200) -> bytes:
    return http_reply(status, json.dumps(reply).encode())


def talk(subject: Subject, *utterances: str, case: Case = CASE) -> list[GeneratedData]:
    """Open one session, send the utterances, and close everything."""

    async def go() -> list[GeneratedData]:
        session = await subject.open(case)
        try:
            return [await session.ask(utterance) for utterance in utterances]
        finally:
            await session.close()
            await subject.close()

    return asyncio.run(go())


def bodies(server: Loopback) -> list[dict[str, JsonValue]]:
    """Return the JSON bodies that a server received."""
    return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in server.requests]
