"""A server of MCP in the wire format, without a library: as a program, or as what answers requests over HTTP."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

PROGRAM = (sys.executable, __file__)
TOOLS = [
    {
        "name": "get_order",
        "description": "Order by id.",
        "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
        "annotations": {"readOnlyHint": True},
    },
    {
        "name": "refund",
        "inputSchema": {"type": "object", "properties": {"id": {"enum": ["7"]}}, "required": ["id"]},
        "annotations": json.loads(os.environ.get("HINTS", "{}")),
    },
    {"name": "count", "inputSchema": {"type": "object"}},
]
RESULTS = {
    "structured": {"content": [{"type": "text", "text": '{"id": "7"}'}], "structuredContent": {"id": "7"}},
    "wrapped": {"content": [{"type": "text", "text": "5"}], "structuredContent": {"result": 5}},
    "whole": {"content": [{"type": "text", "text": '{"result": 5}'}], "structuredContent": {"result": 5}},
    "json": {"content": [{"type": "text", "text": '{"id": "7"}'}]},
    "text": {"content": [{"type": "text", "text": "It is sent."}]},
    "number": {"content": [{"type": "text", "text": "5"}]},
    "empty": {"content": []},
    "error": {"content": [{"type": "text", "text": "no such order"}], "isError": True},
    "mixed": {
        "content": [
            {"type": "text", "text": "Here:"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "A note."}},
            {"type": "resource_link", "uri": "https://x.example/a.pdf", "name": "a"},
        ]
    },
    "nothing": {},
}


def reply(message: dict, state: dict) -> dict | None:  # noqa: PLR0911 - a return for each method
    """Return the reply to a message; None for a notification. `state` is that of the connection."""
    method, params = message["method"], message.get("params", {})
    if "id" not in message:
        return None
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        tools = {} if os.environ.get("NO_TOOLS") else {"tools": {}}
        info = {"name": "shop", "version": "1"}
        return {**answer, "result": {"protocolVersion": "2024-11-05", "capabilities": tools, "serverInfo": info}}
    if method == "tools/list":
        # A page for each tool.
        place = int(params.get("cursor", 0))
        more = {"nextCursor": str(place + 1)} if place + 1 < len(TOOLS) else {}
        return {**answer, "result": {"tools": [TOOLS[place]], **more}}
    if params["name"] == "count":
        state["count"] = state.get("count", 0) + 1
        text = str(state["count"])
        return {**answer, "result": {"content": [{"type": "text", "text": f"call {text}"}]}}
    order = params["arguments"].get("id")
    if order == "invalid":
        return {**answer, "error": {"code": -32602, "message": "id is not valid"}}
    if order == "broken":
        return {**answer, "error": {"code": -32603, "message": "out of order"}}
    if order == "slow":
        time.sleep(float(os.environ.get("SLOW", "20")))
    if order == "exit":
        sys.stderr.write("the disk is full\n")
        sys.exit(3)
    return {**answer, "result": RESULTS.get(order, RESULTS["text"])}


def act(tool: str) -> None:
    """Note a call in the file EFFECTS, and die if the tool is DIES_IN."""
    if effects := os.environ.get("EFFECTS"):
        with Path(effects).open("a", encoding="utf-8") as file:
            file.write(f"{tool}\n")
    if tool == os.environ.get("DIES_IN"):
        sys.exit(3)


def write(text: str) -> None:
    """Write text to stdout at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def main() -> None:
    """Answer the lines of stdin, with a banner, a notification and requests of the server among the lines."""
    state: dict = {}
    write("Shop server, version 1\n")
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "tools/call":
            noise = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x"}}
            ask = {"jsonrpc": "2.0", "id": message["id"], "method": "sampling/createMessage", "params": {}}
            write(json.dumps(noise) + "\n" + json.dumps(ask) + "\n")
            refusal = json.loads(sys.stdin.readline())
            assert refusal["error"]["code"] == -32601, refusal
            write(json.dumps({"jsonrpc": "2.0", "id": 99, "method": "ping"}) + "\n")
            assert json.loads(sys.stdin.readline()) == {"jsonrpc": "2.0", "id": 99, "result": {}}
            act(message["params"]["name"])
        answer = reply(message, state) if "method" in message else None
        if answer is not None:
            # Half of the next line may already be there.
            write(json.dumps(answer) + '\n{"jsonrpc": "2.0", ')
            write('"method": "notifications/message"}\n')


if __name__ == "__main__":
    main()
