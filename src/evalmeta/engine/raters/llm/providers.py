"""The interface of language models that a rater asks, and models behind an OpenAI-compatible endpoint."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from evalmeta.errors import RaterError, SubjectRefused

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
        body: JsonObject = {"model": self._model, "messages": messages, **self._settings}
        if form == "json_schema":
            described: JsonObject = {"name": "judgement", "strict": True, "schema": question.schema}
            body = {**body, "response_format": {"type": form, "json_schema": described}}
        elif form == "json_object":
            body = {**body, "response_format": {"type": form}}
        return (await self._endpoint.send(body, "/chat/completions")).value


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
