"""Language models that a rater asks: their interface, OpenAI-compatible endpoints, and the pace of requests."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from evalmeta import limits
from evalmeta.engine.pacer import Pacer
from evalmeta.engine.spending import CURRENT, Ledger
from evalmeta.errors import RaterError, SubjectBusy, SubjectError, SubjectRefused, SubjectUnreachable
from evalmeta.model.generated_data import Tokens
from evalmeta.model.redaction import redacted, redacted_bytes
from evalmeta.protocol.http import is_too_long, retry_pause
from evalmeta.protocol.json_fields import integer, object_at

if TYPE_CHECKING:
    from evalmeta.engine.http_endpoint import Endpoint
    from evalmeta.engine.interfaces import SharedPace
    from evalmeta.engine.raters.llm import LlmRater
    from evalmeta.model.json_value import JsonObject, JsonValue


# OpenAI, "Structured model outputs": the ways to request JSON, the strictest first.
_FORMATS: Final = ("json_schema", "json_object", "text")
_UNKNOWN_FORMAT: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY})


# A judgement has no side effects, so it can be requested again whatever the server has done: OpenAI's clients retry
# 408, 409 and all server errors; 425 is Too Early (RFC 8470). 429 and Retry-After: `protocol.http`.
RETRIED_STATUSES: Final = frozenset({408, 409, 425, *range(500, 600)})
_NEW_LIMIT: Final = "max_completion_tokens"
_PARTS: Final = frozenset({"text", "output_text", "refusal"})
_KEY_SUFFIXES: Final = ("_API_KEY", "_TOKEN", "_SECRET_ACCESS_KEY")
_TOKENS: Final = ("prompt", "completion")


@dataclass(frozen=True, slots=True)
class Question:
    """A request to a model: instructions, the data that they are about, and the JSON Schema of the reply.

    Without a temperature, the model uses its own. Samples count from 1.
    """

    system: str
    message: str
    schema: JsonObject
    temperature: float | None = None
    sample: int = 1


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's reply: its text, empty if it has none, why the model stopped, and the tokens if they are known."""

    text: str
    finish_reason: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0  # of the input, what the provider had cached

    @property
    def tokens(self) -> Tokens | None:
        """Return the tokens; None if they are not known."""
        used = Tokens(self.input_tokens, self.output_tokens, self.cached_tokens)
        return used if used.input or used.output else None


class JudgeModel(Protocol):
    """A language model."""

    async def ask(self, question: Question, /) -> ModelReply:
        """Return the model's reply; raise RaterError if it refuses, and SubjectError if the request failed.

        SubjectBusy and SubjectUnreachable mean that it can be sent again.
        """
        ...

    async def close(self) -> None:
        """Close its connections."""
        ...


def without_keys(text: str, key: str = "") -> str:
    """Return the beginning of a model's or a provider's text without anything that looks like a secret."""
    return redacted(hide_keys(text, key))[: limits.MAX_ERROR_CHARS // 2]


def hide_keys(text: str, key: str = "") -> str:
    """Return a text without this key and those of the environment, because a provider can quote the key it received."""
    keys = {key, *(value for name, value in os.environ.items() if name.endswith(_KEY_SUFFIXES))}
    return redacted_bytes(text.encode(errors="replace"), keys).decode(errors="replace")


def refusal(model: str, words: str) -> RaterError:
    """Return the error for a model that refuses to judge."""
    return RaterError(f"{model} refuses to rate this answer{words and f': {without_keys(words)}'}")


class _Parameters(NamedTuple):
    """The parameters that a model accepts, as far as its errors have told."""

    has_temperature: bool = True
    limit_name: str = "max_tokens"

    def after(self, error: SubjectRefused) -> _Parameters:
        """Return the parameters without those that the error names: reasoning models of OpenAI reject both."""
        text = str(error)
        if error.status not in _UNKNOWN_FORMAT:
            return self
        if _NEW_LIMIT in text:
            return self._replace(limit_name=_NEW_LIMIT)
        return self._replace(has_temperature=False) if "temperature" in text else self

    def values(self, temperature: float | None, max_tokens: int | None) -> JsonObject:
        limit: JsonObject = {} if max_tokens is None else {self.limit_name: max_tokens}
        heat: JsonObject = {"temperature": temperature} if self.has_temperature and temperature is not None else {}
        return {**limit, **heat}


class EndpointModel:
    """A model behind an OpenAI-compatible chat completions API."""

    def __init__(self, endpoint: Endpoint, model: str, settings: LlmRater) -> None:
        self._endpoint = endpoint
        self._model = model
        self._max_tokens = settings.max_tokens
        self._formats: tuple[str, ...] = _FORMATS
        self._parameters = _Parameters()

    async def ask(self, question: Question, /) -> ModelReply:
        """Request JSON in the strictest format that the server supports; see `JudgeModel.ask`."""
        return _completion(await self._send(question), self._model)

    async def close(self) -> None:
        """Close its connections."""
        await self._endpoint.close()

    async def _send(self, question: Question) -> JsonValue:
        # Parallel requests can change the known formats and parameters meanwhile.
        formats, parameters = self._formats, self._parameters
        strictest, *others = formats
        try:
            return await self._send_as(strictest, question)
        except SubjectRefused as error:
            accepted = parameters.after(error)
            if accepted != parameters:
                self._parameters = accepted
                return await self._send(question)
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
        texts = {"system": question.system, "user": question.message}
        messages: JsonValue = [{"role": role, "content": text} for role, text in texts.items()]
        parameters = self._parameters.values(question.temperature, self._max_tokens)
        body: JsonObject = {"model": self._model, "messages": messages, **parameters}
        if form == "json_schema":
            described: JsonObject = {"name": "judgement", "strict": True, "schema": question.schema}
            body = {**body, "response_format": {"type": form, "json_schema": described}}
        elif form == "json_object":
            body = {**body, "response_format": {"type": form}}
        return (await self._endpoint.send(body, "/chat/completions")).value


def _completion(reply: JsonValue, model: str) -> ModelReply:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(reply, dict) or not isinstance(choice, dict) or not isinstance(message, dict):
        error = reply.get("error") if isinstance(reply, dict) else None
        why = f"; it says {without_keys(json.dumps(error))}" if error else ""
        raise RaterError(f"the reply of {model} is not a chat completion: choices[0].message is missing{why}")
    parts = _parts(message.get("content"))
    if words := message.get("refusal") or "".join(str(part["refusal"]) for part in parts if part.get("refusal")):
        raise refusal(model, str(words))
    finish_reason = choice.get("finish_reason")
    if finish_reason == "content_filter":
        raise refusal(model, "its content filter blocked the request")
    text = "".join(str(part["text"]) for part in parts if isinstance(part.get("text"), str))
    usage = reply.get("usage")
    counts = (usage.get(f"{key}_tokens") if isinstance(usage, dict) else None for key in _TOKENS)
    given, written = (count if isinstance(count, int) else 0 for count in counts)
    cached = integer(object_at(usage, "prompt_tokens_details"), "cached_tokens", 0) if isinstance(usage, dict) else 0
    return ModelReply(text, str(finish_reason or ""), given, written, cached)


def _parts(content: JsonValue) -> list[JsonObject]:
    """Return the parts of a message; a plain text is one part (OpenAI, "Create chat completion", content)."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    # Reasoning has other keys than text, or another type.
    listed = content if isinstance(content, list) else []
    return [part for part in listed if isinstance(part, dict) and part.get("type", "text") in _PARTS]


@dataclass(slots=True)
class Usage:
    """What a rater has used so far: requests, answers from the cache, and tokens as far as the models report them."""

    requests: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Requests:
    """Sends the requests of one rater at its own pace, and retries transient failures.

    After `limit` requests, every other one is an error. Processes that have the same `shared` pace share
    the rate and the back-off.
    """

    def __init__(self, settings: LlmRater, *, shared: SharedPace | None = None) -> None:
        self._timeout = settings.timeout
        self._pacer = Pacer(rate=settings.rate_limit, concurrency=settings.concurrency, shared=shared, watches=True)
        self.usage = Usage()
        self.limit: int | None = None

    async def send(self, question: Question, model: JudgeModel, name: str) -> ModelReply:
        """Return the reply of a model with this name, or raise RaterError after the last attempt."""
        attempt = 1
        while True:
            try:
                return await self._send_once(question, model, name, attempt)
            except SubjectError as error:
                if attempt > limits.RETRIES or not _is_transient(error):
                    tried = f" (tried {attempt} times)" if attempt > 1 else ""
                    raise RaterError(f"llm:{name}: {error}{tried}", actions=error.actions) from None
                if isinstance(error, SubjectUnreachable):
                    await asyncio.sleep(retry_pause(attempt))
            attempt += 1

    async def _send_once(self, question: Question, model: JudgeModel, name: str, attempt: int) -> ModelReply:
        """Send a request when the pacer permits it; a busy model slows down all requests.

        The case's ledger gets its tokens, also if the reply turns out to be of no use.
        """
        ledger = CURRENT.get()
        await self._pacer.enter()
        try:
            if self.limit is not None and self.usage.requests >= self.limit:
                raise RaterError(f"the limit of {self.limit:,} requests is reached")
            self.usage.requests += 1
            async with asyncio.timeout(self._timeout):
                reply = await _asked(model, question, ledger, name)
        except TimeoutError:
            if ledger is not None:
                ledger.add("rater", name, None)
            raise SubjectUnreachable(f"no answer within {self._timeout:g} s") from None
        except SubjectBusy as busy:
            if _is_transient(busy):
                self._pacer.back_off(busy, attempt=attempt)
            raise
        except SubjectUnreachable:
            # The connection may have been lost after the model replied.
            if ledger is not None:
                ledger.add("rater", name, None)
            raise
        finally:
            self._pacer.leave()
        self._pacer.speed_up()
        self.usage.input_tokens += reply.input_tokens
        self.usage.output_tokens += reply.output_tokens
        if ledger is not None:
            ledger.add("rater", name, reply.tokens)
        return reply


async def _asked(model: JudgeModel, question: Question, ledger: Ledger | None, name: str) -> ModelReply:
    """Return a model's reply; one that is a refusal has used tokens, too."""
    try:
        return await model.ask(question)
    except RaterError:
        if ledger is not None:
            ledger.add("rater", name, None)
        raise


def _is_transient(error: SubjectError) -> bool:
    if isinstance(error, SubjectBusy):
        return not is_too_long(error.after)
    return isinstance(error, SubjectUnreachable)
