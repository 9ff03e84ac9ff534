"""A language model behind an endpoint for chat completions, which chooses the steps of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.engine.subjects.openai_replies import read_completion
from evalmeta.errors import SubjectError
from evalmeta.protocol.json_fields import list_of_objects, object_at, text
from evalmeta.systems.agent_script.models import Decision, ToolCall

if TYPE_CHECKING:
    from evalmeta.engine.http_endpoint import Endpoint
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.systems.agent_script.models import Chooser, Request

_PATH: Final = "/chat/completions"


class ChatModel:
    """A model that is asked with the instructions, the conversation and the tools of each request."""

    def __init__(self, endpoint: Endpoint, model: str, *, url: str, extra: JsonObject) -> None:
        self._endpoint = endpoint
        self._path = "" if url.rstrip("/").endswith(_PATH) else _PATH
        self._extra = extra
        self.name = model

    def open(self, case: Case) -> Chooser:
        """Return the model itself: each request has the whole conversation."""
        return self

    async def choose(self, request: Request) -> Decision:
        """Send a request; raise SubjectError if the reply is neither a text nor calls."""
        system: list[JsonObject] = [{"role": "system", "content": request.instructions}] if request.instructions else []
        body: dict[str, JsonValue] = {**self._extra, "model": self.name, "messages": [*system, *request.messages]}
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
                }
                for tool in request.tools
            ]
        if request.must_call:
            body["tool_choice"] = {"type": "function", "function": {"name": request.tools[0].name}}
        reply = (await self._endpoint.send(body, self._path)).value
        generated = read_completion(reply, offers_tools=True)
        message = object_at(list_of_objects(reply, "choices")[0], "message") if isinstance(reply, dict) else {}
        ids = [text(call, "id") for call in list_of_objects(message, "tool_calls")]
        actions = generated.actions or ()
        names = [*ids, *[""] * len(actions)]
        calls = tuple(
            ToolCall(action.name, action.input, identifier) for action, identifier in zip(actions, names, strict=False)
        )
        if not calls and not generated.outcome:
            raise SubjectError(f"the model {self.name} answered with an empty text")
        return Decision(generated.outcome, calls, generated.tokens)

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()
