"""Language models by the names that pydantic-ai knows, such as `anthropic:claude-sonnet-4-5`.

The two ways to ask a language model: an OpenAI-compatible endpoint, and what pydantic-ai knows.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from evalmeta import limits
from evalmeta.errors import RaterError, SettingsError, SubjectBusy, SubjectError, SubjectRefused, SubjectUnreachable
from evalmeta.model.redaction import redacted, redacted_bytes
from evalmeta.protocol.transient_errors import failure_of_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_ai.exceptions import ModelAPIError
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

    from evalmeta.engine.http_endpoint import Endpoint
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.settings import LlmRater

    _AnyModel: TypeAlias = Model[object]


_KEYS: Final = ("_API_KEY", "_TOKEN", "_SECRET_ACCESS_KEY")


def bind_provider(settings: LlmRater, key: str) -> ProviderModel:
    """Makes a model that pydantic-ai knows; without a key its provider takes its own from the environment.

    Raises:
        SettingsError: pydantic-ai or the provider's package is not installed, or the
            name, or the provider's settings, are wrong.
    """
    try:
        from pydantic_ai.exceptions import UserError  # noqa: PLC0415 - an extra, and it takes a second
        from pydantic_ai.models import infer_model  # noqa: PLC0415 - likewise
        from pydantic_ai.providers import infer_provider, infer_provider_class  # noqa: PLC0415 - likewise
    except ImportError:
        raise _not_installed(settings.model) from None
    try:
        if not key:
            return ProviderModel(infer_model(settings.model, infer_provider), settings)
        # Providers that take a key take it by this name; those that take none raise TypeError.
        given = {"api_key": key}
        return ProviderModel(infer_model(settings.model, lambda name: infer_provider_class(name)(**given)), settings)
    except ImportError as error:
        raise SettingsError(f"the rater's model {settings.model!r} needs more: {error}") from None
    except (UserError, ValueError, TypeError) as error:
        raise SettingsError(
            f"the rater's model {settings.model!r} cannot be used: {_discreet(str(error), key)}",
            actions=("Write it like anthropic:claude-sonnet-4-5, or give the url of an OpenAI-compatible server.",),
        ) from None


def _not_installed(model: str) -> SettingsError:
    return SettingsError(
        f"the rater's model {model!r} needs pydantic-ai, which is not installed",
        actions=("Run: pip install 'evalmeta[llm]'", "Or give the url of an OpenAI-compatible server as well."),
    )


class ProviderModel:
    """A model that pydantic-ai asks; one request a question, without its loops of tools and repairs."""

    def __init__(self, model: _AnyModel, settings: LlmRater) -> None:
        self._model = model
        self._settings = settings

    async def ask(self, question: Question, /) -> str:
        """Asks for JSON, by a schema where the model knows how; see `Model.ask`."""
        from pydantic_ai.direct import model_request  # noqa: PLC0415 - is loaded by now
        from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart  # noqa: PLC0415 - likewise

        request = ModelRequest(parts=[SystemPromptPart(question.system), UserPromptPart(question.message)])
        with _in_words(self._settings.model):
            response = await model_request(
                self._model,
                [request],
                model_settings=self._model_settings(),
                model_request_parameters=_parameters(self._model, question.schema),
            )
        return _response_text(response, self._settings.model)

    async def close(self) -> None:
        """Closes its connections, as pydantic-ai does at the end of a block."""
        async with self._model:
            pass

    def _model_settings(self) -> ModelSettings:
        if self._settings.temperature is None:
            return {"timeout": self._settings.timeout}
        return {"timeout": self._settings.timeout, "temperature": self._settings.temperature}


def _parameters(model: _AnyModel, schema: JsonObject) -> ModelRequestParameters:
    from pydantic_ai.models import ModelRequestParameters  # noqa: PLC0415 - is loaded by now
    from pydantic_ai.output import OutputObjectDefinition  # noqa: PLC0415 - likewise

    if not model.profile.get("supports_json_schema_output"):
        return ModelRequestParameters()
    form = OutputObjectDefinition(json_schema=dict(schema), name="judgement", strict=True)
    return ModelRequestParameters(output_mode="native", output_object=form)


def _response_text(response: ModelResponse, model: str) -> str:
    if response.finish_reason == "content_filter":
        details = response.provider_details or {}
        raise refusal(model, str(details.get("refusal") or "its content filter stepped in"))
    return response.text or ""


@contextmanager
def _in_words(model: str) -> Iterator[None]:
    from pydantic_ai.exceptions import ModelAPIError  # noqa: PLC0415 - is loaded by now

    try:
        yield
    except ModelAPIError as error:
        raise _api_error(error, model) from None
    except Exception as error:  # noqa: BLE001 - the libraries break in their own ways on what is no answer
        raise SubjectError(f"{model} cannot be asked: {_discreet(str(error))}") from None


def _api_error(error: ModelAPIError, model: str) -> SubjectError:
    from pydantic_ai import exceptions  # noqa: PLC0415 - is loaded by now

    status = error.status_code if isinstance(error, exceptions.ModelHTTPError) else None
    said = f"answered with status {status}: {error.body}" if status else f"gives no answer: {error}"
    text = f"{model} {_discreet(said)}"
    if isinstance(error, exceptions.ModelRateLimitError | exceptions.ModelUnavailableError):
        return SubjectBusy(text, after=error.retry_after)
    if isinstance(error, exceptions.ModelConnectionError) or (status and failure_of_status(status).is_transient):
        return SubjectUnreachable(text)
    return SubjectError(text)


def _discreet(text: str, key: str = "") -> str:
    """Gives what a provider says without keys: it may quote the one that it was given."""
    keys = {key, *(value for name, value in os.environ.items() if name.endswith(_KEYS))}
    text = redacted(redacted_bytes(text.encode(errors="replace"), keys).decode(errors="replace"))
    return text[: limits.MAX_ERROR_CHARS // 2]


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


class JudgeModel(Protocol):
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


def bind_model(settings: LlmRater) -> JudgeModel:
    """Makes the model that the settings name; nothing is sent yet.

    Raises:
        SettingsError: the url cannot be used, the variable with the key is not set, or
            the model needs a package that is not installed.
    """
    key = _key(settings.api_key_env)
    if settings.url:
        return _endpoint_model(settings, key)

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


def _endpoint_model(settings: LlmRater, key: str) -> JudgeModel:
    from evalmeta.engine.http_endpoint import open_endpoint  # noqa: PLC0415 - brings httpx along

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
        return _completion_text(await self._send(question), self._model)

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


def _completion_text(reply: JsonValue, model: str) -> str:
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
