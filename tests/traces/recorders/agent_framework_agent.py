"""Microsoft Agent Framework: python agent_framework_agent.py FILE [sensitive]."""

import asyncio
import json
import sys

from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, Message
from agent_framework.observability import ChatTelemetryLayer, enable_instrumentation
from recording import provider

provider()
enable_instrumentation(enable_sensitive_data="sensitive" in sys.argv)


class Scripted(FunctionInvocationLayer, ChatTelemetryLayer, BaseChatClient):
    def __init__(self, *script):
        super().__init__()
        self.script = list(script)

    def _inner_get_response(self, *, messages, stream, options, **_):
        async def reply():
            step = self.script.pop(0)
            if isinstance(step, str):
                content = Content.from_text(step)
            else:
                content = Content.from_function_call("c1", step[0], arguments=json.dumps(step[1]))
            usage = {"input_token_count": 10, "output_token_count": 3, "total_token_count": 13}
            return ChatResponse(messages=[Message("assistant", [content])], usage_details=usage)

        return reply()


def get_order(id: str) -> dict:
    """Find an order."""
    return {"id": id, "state": "sent"}


async def main():
    model = Scripted(("get_order", {"id": "10045"}), "Your order 10045 is on its way.")
    await Agent(model, name="Orders", tools=[get_order]).run("Where is order 10045?")


asyncio.run(main())
