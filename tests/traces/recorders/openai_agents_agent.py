"""The OpenAI Agents SDK with openinference: python openai_agents_agent.py FILE."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from agents import Agent, OpenAIResponsesModel, Runner, function_tool, trace
from openai import AsyncOpenAI
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from recording import provider

OpenAIAgentsInstrumentor().instrument(tracer_provider=provider())


def call(name, arguments, call_id):
    return {
        "type": "function_call",
        "id": f"f{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": json.dumps(arguments),
        "status": "completed",
    }


def text(words):
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"type": "message", "id": "m1", "role": "assistant", "status": "completed", "content": content}


SCRIPT = [
    call("transfer_to_orders", {}, "c1"),
    call("get_order", {"id": "10045"}, "c2"),
    text("Your order 10045 is on its way."),
]
USAGE = {
    "input_tokens": 10,
    "output_tokens": 3,
    "total_tokens": 13,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}


class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        reply = {"id": "r1", "object": "response", "created_at": 1, "model": "small", "status": "completed"}
        reply |= {
            "output": [SCRIPT.pop(0)],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": USAGE,
        }
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = AsyncOpenAI(base_url=f"http://127.0.0.1:{server.server_port}", api_key="none")


@function_tool
def get_order(id: str) -> dict:
    """Find an order."""
    return {"id": id, "state": "sent"}


def model():
    return OpenAIResponsesModel("small", client)


orders = Agent(name="Orders", tools=[get_order], model=model())
triage = Agent(name="Triage", handoffs=[orders], model=model())


async def main():
    with trace("shop", group_id="conversation-1"):
        await Runner.run(triage, "Where is order 10045?")


asyncio.run(main())
