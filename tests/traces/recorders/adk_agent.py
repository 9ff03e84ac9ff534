"""Google ADK: python adk_agent.py FILE; OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT brings the content."""

import asyncio

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from recording import provider

provider()
USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=10, candidates_token_count=3, total_token_count=13
)


class Scripted(BaseLlm):
    script: list = []

    async def generate_content_async(self, _request, stream=False):
        yield LlmResponse(content=types.Content(role="model", parts=[self.script.pop(0)]), usage_metadata=USAGE)


def get_order(id: str) -> dict:
    """Find an order."""
    return {"id": id, "state": "sent"}


def call(name, arguments):
    return types.Part(function_call=types.FunctionCall(name=name, args=arguments))


def text(words):
    return types.Part(text=words)


orders = LlmAgent(
    name="orders",
    description="Orders",
    model=Scripted(
        model="small",
        script=[call("get_order", {"id": "10045"}), text("Your order 10045 is on its way."), text("You are welcome.")],
    ),
    tools=[get_order],
)
triage = LlmAgent(
    name="triage",
    model=Scripted(model="small", script=[call("transfer_to_agent", {"agent_name": "orders"})]),
    sub_agents=[orders],
)


async def main():
    runner = InMemoryRunner(agent=triage, app_name="shop")
    session = await runner.session_service.create_session(app_name="shop", user_id="user")
    for question in ("Where is order 10045?", "Thanks"):
        message = types.Content(role="user", parts=[types.Part(text=question)])
        async for _ in runner.run_async(user_id="user", session_id=session.id, new_message=message):
            pass
    await runner.close()


asyncio.run(main())
