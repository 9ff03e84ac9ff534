"""An agent behind an endpoint for chat completions: OpenAI API reference, "Create chat completion"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field
from pydantic import JsonValue as AnyJson

from evalmeta.engine.answers import context_of, generated_data, parse_arguments, plain_text
from evalmeta.engine.interfaces import NothingToClose, SimpleSubject, Subject
from evalmeta.engine.subjects.http import fill_headers, header_variables
from evalmeta.errors import SettingsError, SubjectError
from evalmeta.model.redaction import address_in_words, redacted
from evalmeta.model.settings import SubjectSettings
from evalmeta.protocol.json_fields import integer, list_of_objects, object_at, optional_text

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.http_endpoint import Endpoint
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.login import SignIn


_PATH: Final = "/chat/completions"
_SHOWN_CHARS: Final = 300
# Messages of tools become the user's: the API only accepts them after the call that they answer.
_ROLES: Final = {"agent": "assistant", "system": "system"}


class OpenAISubject(SubjectSettings):
    """An endpoint for OpenAI's chat completions; `url` with or without `/chat/completions` at its end.

    `api_key_env` is the environment variable with the key. `system` is sent as the first message. `extra` is added to
    every request (temperature, tools ...). `${NAME}` in a header is replaced by an environment variable.
    """

    agent = "an endpoint that supports OpenAI's chat completions"

    adapter: Literal["openai"]
    model: str
    url: str = "https://api.openai.com/v1"
    api_key_env: str = ""
    system: str = ""
    extra: dict[str, AnyJson] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> Subject:
        """Return a subject for an endpoint for chat completions; raise SettingsError if a setting is not valid."""
        from evalmeta.engine.http_endpoint import Endpoint

        if self.extra.get("stream"):
            raise SettingsError(
                "the subject's extra asks for a stream, which evalmeta does not support",
                actions=("Remove stream from the subject's extra in evalmeta.toml.",),
            )
        headers, secrets, credential = fill_headers(self.headers, api_key_env=self.api_key_env)
        endpoint = Endpoint(self.url, headers=headers, secrets=secrets, credential=credential)
        return SimpleSubject(lambda case: _Session(self, endpoint, case), close=endpoint.close)

    def key_variables(self) -> tuple[str, ...]:
        """Return the environment variables in headers, too."""
        return (*super().key_variables(), *header_variables(self.headers))

    def identity(self, root: Path) -> tuple[str, list[Path]]:
        """Return the model and the address."""
        return f"openai {self.model} at {address_in_words(self.url)}", []


class _Session(NothingToClose):
    """Keep the messages: the endpoint is stateless."""

    def __init__(self, settings: OpenAISubject, endpoint: Endpoint, case: Case) -> None:
        self._settings = settings
        self._endpoint = endpoint
        context = "".join(f"\n{name}: {plain_text(value)}" for name, value in context_of(case).items())
        instructions = [settings.system, context and f"Context:{context}"]
        self._messages: list[JsonObject] = [{"role": "system", "content": text} for text in instructions if text]
        for entry in case.history:
            role = _ROLES.get((entry.role or "").lower(), "user")
            self._messages.append({"role": role, "content": entry.message or ""})

    async def ask(self, utterance: str) -> GeneratedData:
        asked: list[JsonObject] = [*self._messages, {"role": "user", "content": utterance}]
        extra, url = self._settings.extra, self._settings.url
        body: JsonObject = {**extra, "model": self._settings.model, "messages": asked}
        path = "" if urlsplit(url).path.rstrip("/").endswith(_PATH) else _PATH
        reply = (await self._endpoint.send(body, path)).value
        generated = _read(reply, offers_tools=bool(extra.get("tools") or extra.get("functions")))
        # Tool calls are left out: the API wants each one's result after it, which only the agent knows.
        answered: list[JsonObject] = [{"role": "assistant", "content": generated.outcome}] if generated.outcome else []
        self._messages = asked + answered
        return generated


def _read(reply: JsonValue, *, offers_tools: bool) -> GeneratedData:
    """Read the reply; without calls, the actions are only known if the reply lists them or the request offered tools.

    An endpoint that was offered no tools may be an agent that calls its own and does not report them.
    """
    choices = list_of_objects(reply, "choices") if isinstance(reply, dict) else []
    message = choices[0].get("message") if choices else None
    if not isinstance(message, dict):
        raise SubjectError(f"the agent's reply has no choices[0].message: {_shown(reply)}")
    ended = optional_text(choices[0], "finish_reason")
    actions: list[JsonObject] | None = _actions(message)
    text = _text(message.get("content"))
    outcome = text or optional_text(message, "refusal") or text
    if outcome is None and not actions:
        raise SubjectError(f"the agent's message has neither content nor tool_calls (finish_reason: {ended})")
    if not actions and not offers_tools and not isinstance(message.get("tool_calls"), list):
        actions = None
    usage = object_at(reply, "usage") if isinstance(reply, dict) else {}
    tokens: JsonObject = {
        "input": integer(usage, "prompt_tokens", None),
        "output": integer(usage, "completion_tokens", None),
        "cached": integer(object_at(usage, "prompt_tokens_details"), "cached_tokens", None),
        "model": optional_text(reply, "model") if isinstance(reply, dict) else None,
    }
    return generated_data({"outcome": outcome or "", "actions": actions, "tokens": tokens if usage else None})


def _text(content: JsonValue) -> str | None:
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise SubjectError(f"the agent's content is {type(content).__name__}; expected text or a list of parts")
    texts = []
    for part in content:
        if isinstance(part, dict):
            texts.append(optional_text(part, "text") or optional_text(part, "refusal") or "")
        elif isinstance(part, str):
            texts.append(part)
        else:
            raise SubjectError(f"the agent's content holds {type(part).__name__}; expected text or parts with text")
    return "".join(texts)


def _actions(message: JsonObject) -> list[JsonObject]:
    calls = [tool_call.get("function") for tool_call in list_of_objects(message, "tool_calls")]
    if message.get("function_call"):
        calls.append(message["function_call"])
    actions: list[JsonObject] = []
    for call in calls:
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            raise SubjectError(f"the agent's tool_calls hold a call without a function's name: {_shown(call)}")
        actions.append({"name": call["name"], "input": parse_arguments(call.get("arguments"))})
    return actions


def _shown(value: JsonValue) -> str:
    return redacted(repr(value))[:_SHOWN_CHARS]
