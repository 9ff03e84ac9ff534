"""Language models with pydantic-ai's names, such as `anthropic:claude-sonnet-4-5`; needs the extra `llm`."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeAlias

from pydantic_ai import exceptions
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers import infer_provider, infer_provider_class

from evalmeta import limits
from evalmeta.engine.raters.llm.providers import refusal
from evalmeta.errors import SettingsError, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.model.redaction import redacted, redacted_bytes
from evalmeta.protocol.http import failure_of_status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_ai.settings import ModelSettings

    from evalmeta.engine.raters.llm.providers import Question
    from evalmeta.model.settings import LlmRater


_AnyModel: TypeAlias = Model[object]
_KEY_SUFFIXES: Final = ("_API_KEY", "_TOKEN", "_SECRET_ACCESS_KEY")


def bind_provider(settings: LlmRater, key: str) -> ProviderModel:
    """Return a model of pydantic-ai, or raise SettingsError; without a key, its provider reads the environment's."""
    try:
        if not key:
            return ProviderModel(infer_model(settings.model, infer_provider), settings)
        # Providers that accept a key have this parameter; the others raise TypeError.
        arguments = {"api_key": key}
        model = infer_model(settings.model, lambda name: infer_provider_class(name)(**arguments))
        return ProviderModel(model, settings)
    except ImportError as error:
        raise SettingsError(f"the rater's model {settings.model!r} needs another package: {error}") from None
    except (exceptions.UserError, ValueError, TypeError) as error:
        raise SettingsError(
            f"the rater's model {settings.model!r} cannot be used: {_without_keys(str(error), key)}",
            actions=("Write it like anthropic:claude-sonnet-4-5, or set the url of an OpenAI-compatible server.",),
        ) from None


class ProviderModel:
    """A model that pydantic-ai asks: one request for each question, without its tool and repair loops."""

    def __init__(self, model: _AnyModel, settings: LlmRater) -> None:
        self._model = model
        self._settings = settings

    async def ask(self, question: Question, /) -> str:
        """Request JSON, with a schema if the model supports it; see `JudgeModel.ask`."""
        name = self._settings.model
        request = ModelRequest(parts=[SystemPromptPart(question.system), UserPromptPart(question.message)])
        parameters = ModelRequestParameters()
        if self._model.profile.get("supports_json_schema_output"):
            form = OutputObjectDefinition(json_schema=dict(question.schema), name="judgement", strict=True)
            parameters = ModelRequestParameters(output_mode="native", output_object=form)
        settings: ModelSettings = {"timeout": self._settings.timeout}
        if self._settings.temperature is not None:
            settings["temperature"] = self._settings.temperature
        with _translated_errors(name):
            response = await model_request(
                self._model, [request], model_settings=settings, model_request_parameters=parameters
            )
        if response.finish_reason == "content_filter":
            details = response.provider_details or {}
            raise refusal(name, str(details.get("refusal") or "its content filter blocked the request"))
        return response.text or ""

    async def close(self) -> None:
        """Close its connections, as pydantic-ai does at the end of a context."""
        async with self._model:
            pass


@contextmanager
def _translated_errors(model: str) -> Iterator[None]:
    try:
        yield
    except exceptions.ModelAPIError as error:
        raise _api_error(error, model) from None
    except Exception as error:  # noqa: BLE001 - providers' libraries raise various errors for malformed replies
        raise SubjectError(f"{model} cannot be asked: {_without_keys(str(error))}") from None


def _api_error(error: exceptions.ModelAPIError, model: str) -> SubjectError:
    status = error.status_code if isinstance(error, exceptions.ModelHTTPError) else None
    what = f"replied with status {status}: {error.body}" if status else f"does not reply: {error}"
    text = f"{model} {_without_keys(what)}"
    if isinstance(error, exceptions.ModelRateLimitError | exceptions.ModelUnavailableError):
        return SubjectBusy(text, after=error.retry_after)
    if isinstance(error, exceptions.ModelConnectionError) or (status and failure_of_status(status).is_transient):
        return SubjectUnreachable(text)
    return SubjectError(text)


def _without_keys(text: str, key: str = "") -> str:
    """Return a provider's message without keys, because it can quote the key that it received."""
    keys = {key, *(value for name, value in os.environ.items() if name.endswith(_KEY_SUFFIXES))}
    text = redacted(redacted_bytes(text.encode(errors="replace"), keys).decode(errors="replace"))
    return text[: limits.MAX_ERROR_CHARS // 2]
