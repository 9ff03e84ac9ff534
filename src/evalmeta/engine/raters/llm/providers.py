"""Language models that a rater can ask: an OpenAI-compatible endpoint, or a model that pydantic-ai supports."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from evalmeta.engine.http_endpoint import open_endpoint
from evalmeta.errors import RaterError, SettingsError, SubjectRefused

if TYPE_CHECKING:
    from evalmeta.engine.http_endpoint import Endpoint
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.settings import LlmRater


# OpenAI, "Structured model outputs": the ways to request JSON, the strictest first.
_FORMATS: Final = ("json_schema", "json_object", "text")
_UNKNOWN_FORMAT: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})


@dataclass(frozen=True, slots=True)
class Question:
    """A request to a model.

    Attributes:
        system: The instructions.
        message: The data that they are about.
        schema: The JSON Schema of the reply.
        sample: The number of the sample, from 1.
    """

    system: str
    message: str
    schema: JsonObject
    sample: int = 1


class JudgeModel(Protocol):
    """A language model."""

    async def ask(self, question: Question, /) -> str:
        """Return the text of the model's reply; empty if it has none.

        Raises:
            RaterError: The model refuses.
            SubjectBusy: The model is rate-limited or busy.
            SubjectUnreachable: The model could not be reached.
            SubjectError: The request failed permanently.
        """
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


def bind_model(settings: LlmRater) -> JudgeModel:
    """Return the model that the settings name; nothing is sent yet.

    Raises:
        SettingsError: The url is not valid, the variable with the key is not set, or
            the model needs a package that is not installed.
    """
    variable = settings.api_key_env
    key = os.environ.get(variable, "") if variable else ""
    if variable and not key:
        raise SettingsError(
            f"the environment variable {variable} is not set; it must contain the rater's key",
            actions=(f"Set {variable}, or correct api_key_env in evalmeta.toml.",),
        )
    if settings.url:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        endpoint = open_endpoint(settings.url, headers=headers, secrets=(key,) if key else ())
        return EndpointModel(endpoint, settings)
    try:
        from evalmeta.engine.raters.llm.pydantic_ai_model import bind_provider  # noqa: PLC0415 - an extra
    except ImportError:
        raise SettingsError(
            f"the rater's model {settings.model!r} needs pydantic-ai, which is not installed",
            actions=("Run: pip install 'evalmeta[llm]'", "Or set the url of an OpenAI-compatible server."),
        ) from None
    return bind_provider(settings, key)


def refusal(model: str, words: str) -> RaterError:
    """Return the error for a model that refuses to judge."""
    return RaterError(f"{model} refuses to rate this answer{words and f': {words}'}")


class EndpointModel:
    """A model behind an OpenAI-compatible chat completions API."""

    def __init__(self, endpoint: Endpoint, settings: LlmRater) -> None:
        self._endpoint = endpoint
        self._model = settings.model
        self._settings: JsonObject = {} if settings.temperature is None else {"temperature": settings.temperature}
        self._formats: tuple[str, ...] = _FORMATS

    async def ask(self, question: Question, /) -> str:
        """Request JSON in the strictest format that the server supports; see `JudgeModel.ask`."""
        return _completion_text(await self._send(question), self._model)

    async def close(self) -> None:
        """Close its connections."""
        await self._endpoint.close()

    async def _send(self, question: Question) -> JsonValue:
        # Parallel requests can change the known formats meanwhile.
        formats = self._formats
        strictest, *others = formats
        try:
            return await self._send_as(strictest, question)
        except SubjectRefused as error:
            for at, form in enumerate(others, 1):
                if error.status not in _UNKNOWN_FORMAT:
                    break
                with suppress(SubjectRefused):
                    reply = await self._send_as(form, question)
                    # Never request the rejected formats again.
                    self._formats = formats[at:]
                    return reply
            raise

    async def _send_as(self, form: str, question: Question) -> JsonValue:
        messages: JsonValue = [
            {"role": "system", "content": question.system},
            {"role": "user", "content": question.message},
        ]
        body: JsonObject = {
            "model": self._model,
            "messages": messages,
            **self._settings,
            **_response_format(form, question.schema),
        }
        return (await self._endpoint.send(body, "/chat/completions")).value


def _response_format(form: str, schema: JsonObject) -> JsonObject:
    if form == "json_schema":
        described: JsonObject = {"name": "judgement", "strict": True, "schema": schema}
        return {"response_format": {"type": form, "json_schema": described}}
    return {"response_format": {"type": form}} if form == "json_object" else {}


def _completion_text(reply: JsonValue, model: str) -> str:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise RaterError(f"the reply of {model} is not a chat completion: choices[0].message is missing")
    if words := message.get("refusal"):
        raise refusal(model, str(words))
    if choice.get("finish_reason") == "content_filter":
        raise refusal(model, "its content filter blocked the request")
    content = message.get("content")
    return content if isinstance(content, str) else ""
