from __future__ import annotations

import asyncio
import json
import operator
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx

from evalmeta import limits
from evalmeta.api import trace_receiving
from evalmeta.api.trace_receiving import receive_traces
from evalmeta.org.serving.trace_receiver import TOKEN_VARIABLE
from org.serving.traced_agent import span

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from evalmeta.api.trace_receiving import Exporter, ReceivedTraces

TOKEN = "top-secret"  # noqa: S105 - of no server


def test_a_request_that_has_begun_is_still_received_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    root = span(secrets.token_hex(16), "", secrets.token_hex(8), "invoke_agent desk")
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [root]}]}]}).encode()
    exporters: list[Exporter] = []

    async def main() -> ReceivedTraces:
        receiving = asyncio.create_task(
            receive_traces(
                port=0, on_start=exporters.append, on_turn=lambda _: None, on_refusal=lambda _: None, folder=tmp_path
            )
        )
        while not exporters:
            await asyncio.sleep(0.005)
        port = int(exporters[0].url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = f"POST /v1/traces HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body[:9])
        await asyncio.sleep(0.1)
        receiving.cancel()
        await asyncio.sleep(0.1)
        writer.write(body[9:])
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        writer.close()
        return await receiving

    received = asyncio.run(main())
    assert [trace.trace_id for trace in received.traces] == [root["traceId"]]


def test_what_has_arrived_is_returned_when_the_task_is_cancelled_and_the_port_is_free(tmp_path: Path) -> None:
    async def receive(port: int) -> tuple[ReceivedTraces, int]:
        exporters: list[Exporter] = []
        receiving = asyncio.create_task(
            receive_traces(
                port=port, on_start=exporters.append, on_turn=lambda _: None, on_refusal=lambda _: None, folder=tmp_path
            )
        )
        while not exporters:
            await asyncio.sleep(0.005)
        receiving.cancel()
        return await receiving, int(exporters[0].url.rpartition(":")[2])

    async def main() -> None:
        received, port = await receive(0)
        assert received.traces == ()
        assert (await receive(port))[1] == port

    asyncio.run(main())


def test_a_cancellation_counts_in_the_moment_in_which_a_trace_arrives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    roots = [span(secrets.token_hex(16), "", secrets.token_hex(8), "invoke_agent desk") for _ in range(2)]
    requests = [{"resourceSpans": [{"scopeSpans": [{"spans": [root]}]}]} for root in roots]
    monkeypatch.setattr(limits, "TRACE_QUIET_SECONDS", 60)

    async def main() -> ReceivedTraces:
        exporters: list[Exporter] = []
        receiving = asyncio.create_task(
            receive_traces(
                port=0, on_start=exporters.append, on_turn=lambda _: None, on_refusal=lambda _: None, folder=tmp_path
            )
        )
        while not exporters:
            await asyncio.sleep(0.005)
        add = operator.attrgetter("_ArrivedTraces.add")(trace_receiving)

        def add_and_cancel(*args: object, **options: object) -> None:
            add(*args, **options)
            receiving.cancel()

        async with httpx.AsyncClient(headers={"authorization": f"Bearer {TOKEN}"}) as client:
            url = f"{exporters[0].url}/v1/traces"
            await client.post(url, json=requests[0])
            monkeypatch.setattr("evalmeta.api.trace_receiving._ArrivedTraces.add", add_and_cancel)
            with suppress(httpx.HTTPError):
                await client.post(url, json=requests[1])
        ended, _ = await asyncio.wait({receiving}, timeout=30)
        assert ended
        return receiving.result()

    assert [trace.trace_id for trace in asyncio.run(main()).traces] == [root["traceId"] for root in roots]
