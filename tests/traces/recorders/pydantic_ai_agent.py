"""pydantic-ai: python pydantic_ai_agent.py FILE VERSION."""

import asyncio
import sys

from pydantic_ai import Agent, InstrumentationSettings
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from recording import provider

Agent.instrument_all(InstrumentationSettings(tracer_provider=provider(), version=int(sys.argv[2])))


def model(messages, _):
    if len(messages) == 1:
        return ModelResponse(parts=[ToolCallPart("get_order", {"id": "10045"})])
    return ModelResponse(parts=[TextPart("Your order 10045 is on its way.")])


def failing_model(_messages, _info):
    return ModelResponse(parts=[ToolCallPart("cancel_order", {"id": "1"})])


agent = Agent(FunctionModel(model), name="order_desk", instructions="You are the order desk.")


@agent.tool_plain
def get_order(id: str) -> dict:
    return {"id": id, "state": "sent"}


@agent.tool_plain
def cancel_order(id: str) -> dict:
    raise ValueError(f"no such order: {id}")


async def main():
    await agent.run("Where is order 10045?", conversation_id="conversation-1")
    try:
        await agent.run("Cancel order 1", model=FunctionModel(failing_model), conversation_id="conversation-2")
    except ValueError as error:
        print(error)


asyncio.run(main())
