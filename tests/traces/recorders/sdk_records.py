"""A span with a parent, a link and an error, and a log event of it, as the SDK of OpenTelemetry encodes them.

python sdk_records.py ../recordings/sdk.jsonl
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, set_span_in_context
from recording import hexadecimal

TRACE, PARENT, SPAN = 0x0AF7651916CD43DD8448EB211C80319C, 0x0123456789ABCDEF, 0xB7AD6B7169203331
ATTRIBUTES = {"text": "Grüße", "count": 7, "share": 0.5, "yes": True, "list": ["a", "b"]}


def context(span_id):
    return SpanContext(TRACE, span_id, is_remote=False)


scope = InstrumentationScope("evalmeta", "1", "https://opentelemetry.io/schemas/gen-ai/0.1.0")
resource = Resource({"service.name": "evalmeta", "service.version": "1"})
span = ReadableSpan(
    "invoke_agent Orders",
    context(SPAN),
    context(PARENT),
    resource,
    ATTRIBUTES,
    links=[Link(context(PARENT))],
    kind=SpanKind.INTERNAL,
    instrumentation_scope=scope,
    status=Status(StatusCode.ERROR, "no such order"),
    start_time=1_795_187_104_000_000_000,
    end_time=1_795_187_104_250_000_000,
)
log = LogRecord(
    timestamp=1_795_187_104_250_000_000,
    observed_timestamp=1_795_187_104_250_000_000,
    context=set_span_in_context(NonRecordingSpan(context(SPAN))),
    event_name="gen_ai.evaluation.result",
    attributes=ATTRIBUTES,
)
requests = [encode_spans([span]), encode_logs([ReadableLogRecord(log, resource, scope)])]
lines = [json.dumps(hexadecimal(MessageToDict(request))) + "\n" for request in requests]
Path(sys.argv[1]).write_text("".join(lines))
