"""An agent of google-adk whose model follows rules, so that it answers without a network."""

import re

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.genai import types

CITY = re.compile("London|Tokyo|Atlantis")


def get_weather(city: str) -> dict:
    """Return the weather in a city."""
    if city == "Atlantis":
        return {"error": "no such city"}
    return {"weather": {"London": "rainy", "Tokyo": "cloudy"}[city]}


def remember_city(city: str, tool_context) -> dict:
    """Keep a city in the state of the session."""
    tool_context.state["city"] = city
    return {"kept": city}


def call(name, **args):
    return types.Part(function_call=types.FunctionCall(name=name, args=args))


class Rules(BaseLlm):
    """A model that answers by rules, from the last message and the instruction."""

    async def generate_content_async(self, llm_request, stream=False):
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=10, candidates_token_count=3, total_token_count=13
        )
        content = types.Content(role="model", parts=self.parts(llm_request))
        yield LlmResponse(content=content, usage_metadata=usage)

    def parts(self, request):
        said = [part.text for content in request.contents for part in content.parts if part.text]
        last = request.contents[-1].parts[-1]
        if last.function_response:
            return [types.Part(text=self.report(last.function_response))]
        asked = next((text for text in reversed(said) if not text.startswith("For context")), "")
        instruction = str(request.config.system_instruction)
        if "You handle bookings" in instruction:
            return [types.Part(text="Your booking is confirmed.")]
        if "weather" in asked or "What about" in asked:
            return [call("get_weather", city=CITY.search(asked)[0])]
        if "Remember" in asked:
            return [call("remember_city", city=CITY.search(asked)[0])]
        if "booking" in asked:
            return [call("transfer_to_agent", agent_name="bookings")]
        if "first city" in asked:
            return [types.Part(text=f"You asked for {CITY.search(' '.join(said))[0]}.")]
        if "balance" in asked:
            return [types.Part(text=f"Your balance is {re.search('balance=([0-9]+)', instruction)[1]}.")]
        if "break" in asked:
            raise RuntimeError("the model is down")
        return [types.Part(text="Hello! How can I help you?")]

    def report(self, response):
        if "error" in (response.response or {}):
            return "I do not know that city."
        return {
            "get_weather": f"It is {(response.response or {}).get('weather')}.",
            "remember_city": "I will remember it.",
        }.get(response.name, "Done.")


bookings = LlmAgent(
    name="bookings", description="Bookings.", instruction="You handle bookings.", model=Rules(model="rules")
)
root_agent = LlmAgent(
    name="weather_agent",
    instruction="You report the weather. balance={balance?}",
    model=Rules(model="rules"),
    tools=[get_weather, remember_city],
    sub_agents=[bookings],
)
