from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from weather_agent.agent import Rules


class Polite(BasePlugin):
    """A plugin of the App, without which the answer is another one."""

    async def on_event_callback(self, *, invocation_context, event):
        if event.author == "shop" and event.content and event.is_final_response():
            event.content = types.Content(role="model", parts=[types.Part(text="Welcome to our shop, dear customer!")])
        return event


root_agent = LlmAgent(name="shop", instruction="You greet.", model=Rules(model="rules"))
app = App(name="shop_app", root_agent=root_agent, plugins=[Polite(name="polite")])
