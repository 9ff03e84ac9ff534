"""An agent behind an endpoint that follows OpenAI's API: chat completions, or responses."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias
from urllib.parse import urlsplit

from pydantic import Field
from pydantic import JsonValue as AnyJson

from evalmeta.engine.answers import chat_messages, context_of, plain_text
from evalmeta.engine.interfaces import NothingToClose, SimpleSubject, Subject
from evalmeta.engine.subjects.http import fill_headers, header_variables
from evalmeta.engine.subjects.openai_replies import read_completion, read_response
from evalmeta.engine.subjects.openai_streams import CompletionStream, ResponseStream
from evalmeta.errors import SettingsError, SubjectError
from evalmeta.model.redaction import address_in_words
from evalmeta.model.settings import SubjectSettings, TracePort
from evalmeta.protocol.json_fields import text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from evalmeta.engine.http_endpoint import Endpoint
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.login import SignIn


_Api: TypeAlias = Literal["chat", "responses"]


class _Read(Protocol):
    def __call__(self, reply: JsonValue, *, offers_tools: bool) -> GeneratedData: ...


class _Words(NamedTuple):
    """How an API is called: its path, the key of messages, how replies and streams are read, and keys of streams."""

    path: str
    messages: str
    read: _Read
    stream: type[CompletionStream | ResponseStream]
    stream_options: JsonObject


_APIS: Final[Mapping[_Api, _Words]] = {
    "chat": _Words(
        "/chat/completions",
        "messages",
        read_completion,
        CompletionStream,
        {"stream": True, "stream_options": {"include_usage": True}},
    ),
    "responses": _Words("/responses", "input", read_response, ResponseStream, {"stream": True}),
}


class OpenAISubject(SubjectSettings):
    """An endpoint for OpenAI's API; `url` with or without `/chat/completions` or `/responses` at its end.

    `api` is `chat` for chat completions, or `responses`. With `stream`, the answer is streamed, which measures the time
    until its first part. With `previous_response_id`, the endpoint keeps the conversation, and each request only has
    what is new; `responses` only. `api_key_env` is the environment variable with the key. `system` is sent as the first
    message. `extra` is added to every request (temperature, tools ...). `${NAME}` in a header is replaced by an
    environment variable. With `traces`, evalmeta reads what answers leave out from traces that the agent exports to
    `trace_port` of this machine.
    """

    agent = "an endpoint that supports OpenAI's chat completions or responses"
    tracing = "received"

    adapter: Literal["openai"]
    model: str
    url: str = "https://api.openai.com/v1"
    api: _Api = "chat"
    stream: bool = False
    previous_response_id: bool = False
    api_key_env: str = ""
    system: str = ""
    extra: dict[str, AnyJson] = Field(default_factory=dict)
    headers: dict[str, str] = Field(default_factory=dict)
    traces: bool = False
    trace_port: TracePort = 0

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> Subject:
        """Return a subject for the endpoint; raise SettingsError if a setting is not valid."""
        from evalmeta.engine.http_endpoint import Endpoint

        if self.extra.get("stream"):
            raise SettingsError(
                "the subject's extra asks for a stream, which has a setting of its own",
                actions=("Remove stream from the subject's extra in evalmeta.toml, and add stream = true beside it.",),
            )
        if self.previous_response_id and self.api != "responses":
            raise SettingsError(
                "previous_response_id is a setting of the Responses API",
                actions=('Add api = "responses" to the subject in evalmeta.toml, or remove previous_response_id.',),
            )
        headers, secrets, credential = fill_headers(self.headers, api_key_env=self.api_key_env)
        endpoint = Endpoint(self.url, headers=headers, secrets=secrets, credential=credential)
        return SimpleSubject(lambda case: _Session(self, endpoint, case), close=endpoint.close)

    def key_variables(self) -> tuple[str, ...]:
        """Return the environment variables in headers, too."""
        return (*super().key_variables(), *header_variables(self.headers))

    def identity(self, root: Path) -> tuple[str, list[Path]]:
        """Return the model and the address."""
        api = " (responses)" if self.api == "responses" else ""
        return f"openai {self.model} at {address_in_words(self.url)}{api}", []


class _Session(NothingToClose):
    """Keep the messages, unless the endpoint does: then keep those that were not sent, and the id of the last reply."""

    def __init__(self, settings: OpenAISubject, endpoint: Endpoint, case: Case) -> None:
        self._settings = settings
        self._endpoint = endpoint
        self._previous: str | None = None
        context = "".join(f"\n{name}: {plain_text(value)}" for name, value in context_of(case).items())
        instructions = [settings.system, context and f"Context:{context}"]
        self._messages: list[JsonObject] = [{"role": "system", "content": part} for part in instructions if part]
        self._messages += map(dict, chat_messages(case))

    async def ask(self, utterance: str) -> GeneratedData:
        asked: list[JsonObject] = [*self._messages, {"role": "user", "content": utterance}]
        extra, api = self._settings.extra, _APIS[self._settings.api]
        offers_tools = bool(extra.get("tools") or extra.get("functions"))
        begun = time.perf_counter()
        reply, first_part = await self._send(asked, api)
        generated = api.read(reply, offers_tools=offers_tools)
        if first_part is not None:
            generated = replace(generated, first_token_ms=round((first_part - begun) * 1000, 1))
        if self._settings.previous_response_id:
            self._messages, self._previous = [], _id_of(reply)
            return generated
        # Tool calls are left out: the API wants each one's result after it, which only the agent knows.
        answered: list[JsonObject] = [{"role": "assistant", "content": generated.outcome}] if generated.outcome else []
        self._messages = asked + answered
        return generated

    async def _send(self, asked: list[JsonObject], api: _Words) -> tuple[JsonValue, float | None]:
        """Return the reply, and when its first part arrived if it was streamed."""
        settings = self._settings
        stream = api.stream() if settings.stream else None
        body: JsonObject = {
            **(api.stream_options if stream else {}),
            **settings.extra,
            "model": settings.model,
            api.messages: asked,
            **({"previous_response_id": self._previous} if self._previous else {}),
        }
        path = "" if urlsplit(settings.url).path.rstrip("/").endswith(api.path) else api.path
        reply = await self._endpoint.send(body, path, assembly=stream)
        return reply.value, stream.first_part if stream else None


def _id_of(reply: JsonValue) -> str:
    if isinstance(reply, dict) and (known := text(reply, "id")):
        return known
    raise SubjectError(
        "the agent's reply has no id, so the next turn cannot continue the conversation; "
        "remove previous_response_id from evalmeta.toml to send the whole conversation"
    )
