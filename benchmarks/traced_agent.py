"""An HTTP agent that takes some time for each answer, and exports what it did if it is asked with a `traceparent`.

python traced_agent.py SECONDS PORT: it prints its own port, and exports to PORT every 50 ms, as the SDK of
OpenTelemetry does with the settings that docs/subjects.md has.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import threading
import time
from http.client import HTTPConnection, HTTPException

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from traces import add_trace

REPLY = json.dumps({"answer": "They were sent to Paris.", "actions": [{"name": "find_order", "input": {"id": "0"}}]})
EXPORT_SECONDS = 0.05
ended: list[str] = []


def export(port: int) -> None:
    """Send the spans of the turns that have ended since the last export."""
    collector = HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {
        "Content-Type": "application/x-protobuf",
        "Authorization": f"Bearer {os.environ['EVALMETA_TRACES_TOKEN']}",
    }
    while True:
        time.sleep(EXPORT_SECONDS)
        turns, ended[:] = ended[:], []
        if not turns:
            continue
        request = ExportTraceServiceRequest()
        spans = request.resource_spans.add().scope_spans.add().spans
        for turn in turns:
            _, trace, parent, _ = turn.split("-")
            begin = len(spans)
            add_trace(spans, begin, calls=1)
            for span in spans[begin:]:
                span.trace_id = bytes.fromhex(trace)
            spans[begin].parent_span_id = bytes.fromhex(parent)
        for _ in range(2):
            # The end of a run closes its connections; exporters then open others.
            with contextlib.suppress(OSError, HTTPException):
                collector.request("POST", "/v1/traces", request.SerializeToString(), headers)
                assert collector.getresponse().read() == b""
                break
            collector.close()


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            lines = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines[1:] if line)
            await reader.readexactly(int(headers["content-length"]))
            await asyncio.sleep(float(sys.argv[1]))
            if "traceparent" in headers:
                ended.append(headers["traceparent"])
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(REPLY)}\r\n\r\n"
            writer.write(f"{head}{REPLY}".encode())
    writer.close()


async def main() -> None:
    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1_000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    threading.Thread(target=export, args=(int(sys.argv[2]),), daemon=True).start()
    asyncio.run(main())
