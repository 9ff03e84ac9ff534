"""MLflow over OTLP: python mlflow_agent.py FILE; OpenAI's library asks a server on loopback."""

import json
import os
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from recording import hexadecimal


def usage(tokens_in, tokens_out):
    return {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}


CALL = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"id": "10045"}'}}
REPLIES = iter(
    [
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, usage(10, 3)),
        ({"role": "assistant", "content": "Your order 10045 is on its way."}, usage(20, 8)),
        ({"role": "assistant", "content": "You are welcome."}, usage(5, 1)),
    ]
)


class Server(BaseHTTPRequestHandler):
    """Answers as a model, and writes each request of OTLP as a line."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/traces":
            request = ExportTraceServiceRequest.FromString(body)
            with Path(sys.argv[1]).open("a") as file:
                file.write(json.dumps(hexadecimal(MessageToDict(request))) + "\n")
            reply = b""
        else:
            message, used = next(REPLIES)
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "small", "choices": [choice]}
            reply = json.dumps({**answer, "usage": used}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf" if not reply else "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


Path(sys.argv[1]).write_text("")
server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}/v1"
os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{address}/traces"
os.environ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"

import mlflow  # noqa: E402 - it reads the environment
from openai import OpenAI  # noqa: E402

folder = tempfile.TemporaryDirectory()
mlflow.set_tracking_uri(f"sqlite:///{folder.name}/mlflow.db")
mlflow.openai.autolog()
client = OpenAI(base_url=address, api_key="unused", max_retries=0)
PARAMETERS = {"type": "object", "properties": {"id": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "get_order", "parameters": PARAMETERS}}]


@mlflow.trace(span_type="RETRIEVER")
def search(query):
    return [mlflow.entities.Document("Orders are sent within a day.", metadata={"doc_uri": "docs/orders.md"}, id="d1")]


@mlflow.trace(span_type="TOOL")
def get_order(id):
    search("when are orders sent")
    return {"id": id, "state": "sent"}


@mlflow.trace(span_type="AGENT", name="order_desk")
def order_desk(messages):
    mlflow.update_current_trace(metadata={"mlflow.trace.session": "conversation-1"})
    while True:
        reply = client.chat.completions.create(model="small", messages=messages, tools=TOOLS).choices[0].message
        if not reply.tool_calls:
            return {"messages": [{"role": "assistant", "content": reply.content}]}
        messages = [*messages, reply.model_dump(exclude_none=True)]
        for call in reply.tool_calls:
            result = json.dumps(get_order(**json.loads(call.function.arguments)))
            messages = [*messages, {"role": "tool", "tool_call_id": call.id, "content": result}]


conversation = [{"role": "user", "content": "Where is order 10045?"}]
order_desk(conversation)
conversation += [
    {"role": "assistant", "content": "Your order 10045 is on its way."},
    {"role": "user", "content": "Thanks"},
]
order_desk(conversation)
