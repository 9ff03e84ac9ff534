"""The two ways to ask a language model: an OpenAI-compatible endpoint, and what pydantic-ai knows."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from evalmeta.errors import RaterError, SettingsError, SubjectRefused

if TYPE_CHECKING:
    from evalmeta.engine.endpoints import Endpoint
    from evalmeta.model.jsonvalue import JsonObject, JsonValue
    from evalmeta.model.settings import LlmRater

__all__ = ["EndpointModel", "Model", "Question", "bind_model", "refusal"]

# OpenAI, "Structured model outputs": the ways to ask for JSON, the strictest first.
_FORMS: Final = ("json_schema", "json_object", "text")
_UNKNOWN_FORMAT: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})


@dataclass(frozen=True, slots=True)
class Question:
    """What a model is asked.

    Attributes:
        system: the instructions.
        message: what they are about.
        schema: the JSON Schema of the answer.
        sample: the how manieth time it is asked, from 1.
    """

    system: str
    message: str
    schema: JsonObject
    sample: int = 1


class Model(Protocol):
    """A language model that can be asked."""

    async def ask(self, question: Question, /) -> str:
        """Gives the text of the model's answer; empty when it has none.

        Raises:
            RaterError: the model refuses.
            SubjectBusy: it says to come later.
            SubjectUnreachable: it could not be reached now.
            SubjectError: it cannot be asked at all.
        """
        ...

    async def close(self) -> None:
        """Lets go of its connections."""
        ...


def bind_model(settings: LlmRater) -> Model:
    """Makes the model that the settings name; nothing is sent yet.

    Raises:
        SettingsError: the url cannot be used, the variable with the key is not set, or
            the model needs a package that is not installed.
    """
    key = _key(settings.api_key_env)
    if settings.url:
        return _endpoint_model(settings, key)
    from evalmeta.engine.raters.llm.providers import bind_provider  # noqa: PLC0415 - pydantic-ai takes a second

    return bind_provider(settings, key)


def refusal(model: str, words: str) -> RaterError:
    """Gives the error of a model that will not judge."""
    return RaterError(f"{model} refuses to rate this answer{words and f': {words}'}")


def _key(variable: str) -> str:
    key = os.environ.get(variable, "") if variable else ""
    if variable and not key:
        raise SettingsError(
            f"the environment variable {variable} is not set, and the rater takes its key from there",
            actions=(f"Set {variable}, or correct api_key_env in evalmeta.toml.",),
        )
    return key


def _endpoint_model(settings: LlmRater, key: str) -> Model:
    from evalmeta.engine.endpoints import open_endpoint  # noqa: PLC0415 - brings httpx along

    headers = {"Authorization": f"Bearer {key}"} if key else {}
    endpoint = open_endpoint(settings.url, headers=headers, secrets=(key,) if key else ())
    return EndpointModel(endpoint, settings)


class EndpointModel:
    """A model behind OpenAI's chat completions, or what imitates them."""

    def __init__(self, endpoint: Endpoint, settings: LlmRater) -> None:
        self._endpoint = endpoint
        self._model = settings.model
        self._settings: JsonObject = {} if settings.temperature is None else {"temperature": settings.temperature}
        self._forms: tuple[str, ...] = _FORMS

    async def ask(self, question: Question, /) -> str:
        """Asks for JSON by a schema, or in the strictest way that the server knows; see `Model.ask`."""
        return _text(await self._send(question), self._model)

    async def close(self) -> None:
        """Closes its connections."""
        await self._endpoint.close()

    async def _send(self, question: Question) -> JsonValue:
        # Samples are asked for at the same time, so another question may have changed what is known meanwhile.
        forms = self._forms
        strictest, *others = forms
        try:
            return await self._send_in(strictest, question)
        except SubjectRefused as error:
            for at, form in enumerate(others, 1):
                if error.status not in _UNKNOWN_FORMAT:
                    break
                with suppress(SubjectRefused):
                    reply = await self._send_in(form, question)
                    # It is not asked again in a way that it refuses.
                    self._forms = forms[at:]
                    return reply
            raise

    async def _send_in(self, form: str, question: Question) -> JsonValue:
        messages: JsonValue = [
            {"role": "system", "content": question.system},
            {"role": "user", "content": question.message},
        ]
        asked_for = _response_format(form, question.schema)
        body: JsonObject = {"model": self._model, "messages": messages, **self._settings, **asked_for}
        return (await self._endpoint.send(body, "/chat/completions")).value


def _response_format(form: str, schema: JsonObject) -> JsonObject:
    if form == "json_schema":
        described: JsonObject = {"name": "judgement", "strict": True, "schema": schema}
        return {"response_format": {"type": form, "json_schema": described}}
    return {"response_format": {"type": form}} if form == "json_object" else {}


def _text(reply: JsonValue, model: str) -> str:
    """Takes the text out of a chat completion."""
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise RaterError(f"{model} answered with no chat completion: there is no choices[0].message in it")
    if words := message.get("refusal"):
        raise refusal(model, str(words))
    if choice.get("finish_reason") == "content_filter":
        raise refusal(model, "its content filter stepped in")
    content = message.get("content")
    return content if isinstance(content, str) else ""
