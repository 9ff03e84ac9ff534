"""Writes what an instrumented agent exports as JSON Lines of OTLP, a request for each span that ends."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

IDS = ("traceId", "spanId", "parentSpanId")


class FileExporter(SpanExporter):
    """Appends each export to a file; ids are hexadecimal, as OTLP demands of JSON."""

    def __init__(self, path):
        self.path = Path(path)
        self.path.write_text("")

    def export(self, spans):
        with self.path.open("a") as file:
            file.write(json.dumps(hexadecimal(MessageToDict(encode_spans(spans)))) + "\n")
        return SpanExportResult.SUCCESS


def hexadecimal(value):
    """Return a request whose ids are hexadecimal instead of base64; tracebacks, which name folders, are left out."""
    if isinstance(value, list):
        return [hexadecimal(item) for item in value if not is_traceback(item)]
    if not isinstance(value, dict):
        return value
    return {key: base64.b64decode(item).hex() if key in IDS else hexadecimal(item) for key, item in value.items()}


def is_traceback(value):
    """Return whether a value is an attribute with a traceback."""
    return isinstance(value, dict) and value.get("key") == "exception.stacktrace"


def provider():
    """Return the global provider of tracers, which exports to the file that the command line names."""
    made = TracerProvider(resource=Resource({"service.name": "shop"}))
    made.add_span_processor(SimpleSpanProcessor(FileExporter(sys.argv[1])))
    trace.set_tracer_provider(made)
    return made
