from contextlib import AsyncExitStack

from google.adk.agents import LlmAgent

from weather_agent.agent import Rules, get_weather


async def get_agent_async():
    """Return the agent, and what closes the connections of its tools."""
    agent = LlmAgent(name="async_agent", instruction="You report.", model=Rules(model="rules"), tools=[get_weather])
    return agent, AsyncExitStack()
