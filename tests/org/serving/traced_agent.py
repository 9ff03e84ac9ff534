"""An agent that says only its answer, and exports what it did as OTLP a little later: children first, and twice."""

from __future__ import annotations

import json
import os
import secrets
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request


def span(trace: str, parent: str, span_id: str, name: str, **attributes: str) -> dict[str, object]:
    now = time.time_ns()
    pairs = [{"key": key.replace("__", "."), "value": {"stringValue": text}} for key, text in attributes.items()]
    times = {"startTimeUnixNano": str(now), "endTimeUnixNano": str(now + 1_000_000)}
    return {"traceId": trace, "spanId": span_id, "parentSpanId": parent, "name": name, "attributes": pairs, **times}


def post(body: bytes, **headers: str) -> int:
    """Send a request to the receiver, and return its status."""
    header, _, token = os.environ["OTEL_EXPORTER_OTLP_HEADERS"].partition("=")
    request = urllib.request.Request(  # noqa: S310 - on loopback
        os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"],
        data=body,
        headers={"Content-Type": "application/json", header: urllib.parse.unquote(token), **headers},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:  # noqa: S310 - on loopback
            return int(reply.status)
    except urllib.error.HTTPError as refusal:
        return refusal.code


def send(*spans: dict[str, object]) -> None:
    assert post(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()) == 200


def send_damaged() -> None:
    """Send what a receiver refuses: damaged gzip, damaged protobuf, a wrong token."""
    assert post(b"\x1f\x8b123456789", **{"Content-Encoding": "gzip"}) == 400
    assert post(b"\xff\xff", **{"Content-Type": "application/x-protobuf"}) == 400
    assert post(b"{}", authorization="Bearer other") == 401


def export(traceparent: str, question: str) -> None:
    kind, _, order = question.partition(" ")
    _, trace, parent, _ = traceparent.split("-")
    root, tool = secrets.token_hex(8), secrets.token_hex(8)
    if kind == "foreign":
        trace = secrets.token_hex(16)
    agent = span(
        trace, parent, root, "invoke_agent desk", gen_ai__operation__name="invoke_agent", gen_ai__agent__name="desk"
    )
    call = span(
        trace,
        root,
        tool,
        "execute_tool get_order",
        gen_ai__operation__name="execute_tool",
        gen_ai__tool__name="get_order",
        gen_ai__tool__call__arguments=json.dumps({"id": order}),
        gen_ai__tool__call__result="sent",
    )
    if kind in {"damaged", "lost"}:
        send_damaged()
    if kind == "lost":
        return
    time.sleep(0.02)
    send(call)
    if kind != "endless":
        time.sleep(0.02)
        send(agent, call)


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        question = asked["utterance"]
        if not question.startswith("silent"):
            threading.Thread(target=export, args=(asked["traceparent"], question)).start()
        answer = {"outcome": f"Order {question.partition(' ')[2]} is on its way."}
        if question.startswith("other"):
            answer["actions"] = ["cancel_order"]
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
