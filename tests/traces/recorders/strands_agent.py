"""Strands Agents: python strands_agent.py FILE; OTEL_SEMCONV_STABILITY_OPT_IN chooses the form of its spans."""

import asyncio
import json

from recording import provider
from strands import Agent, tool
from strands.models.model import Model

provider()


class Scripted(Model):
    def __init__(self, *script):
        self.script = list(script)

    def update_config(self, **_):
        pass

    def get_config(self):
        return {"model_id": "small"}

    async def structured_output(self, *_, **__):
        yield {}

    async def stream(self, *_, **__):
        step = self.script.pop(0)
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(step, str):
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": step}}}
        else:
            yield {"contentBlockStart": {"start": {"toolUse": {"name": step[0], "toolUseId": step[2]}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(step[1])}}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(step, str) else "tool_use"}}
        yield {
            "metadata": {
                "usage": {"inputTokens": 10, "outputTokens": 3, "totalTokens": 13},
                "metrics": {"latencyMs": 5},
            }
        }


@tool
def get_order(id: str) -> dict:
    """Find an order."""
    return {"id": id, "state": "sent"}


@tool
def cancel_order(id: str) -> dict:
    """Cancel an order."""
    raise ValueError(f"no such order: {id}")


script = (("get_order", {"id": "10045"}, "c1"), ("cancel_order", {"id": "1"}, "c2"), "Your order 10045 is on its way.")
agent = Agent(
    model=Scripted(*script, "You are welcome."),
    tools=[get_order, cancel_order],
    name="Orders",
    callback_handler=None,
    trace_attributes={"session.id": "conversation-1"},
)


async def main():
    for question in ("Where is order 10045?", "Thanks"):
        await agent.invoke_async(question)


asyncio.run(main())
