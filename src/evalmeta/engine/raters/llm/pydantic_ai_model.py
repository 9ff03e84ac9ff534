"""Language models with pydantic-ai's names, such as `anthropic:claude-sonnet-4-5`; needs the extra `llm`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from pydantic_ai import exceptions
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters, infer_model
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.providers import infer_provider, infer_provider_class

from evalmeta.engine.raters.llm.providers import RETRIED_STATUSES, ModelReply, hide_keys, refusal, without_keys
from evalmeta.errors import SettingsError, SubjectBusy, SubjectError, SubjectUnreachable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_ai.settings import ModelSettings

    from evalmeta.engine.raters.llm import LlmRater
    from evalmeta.engine.raters.llm.providers import Question


_AnyModel: TypeAlias = Model[object]


def bind_provider(name: str, settings: LlmRater, key: str) -> ProviderModel:
    """Return a model of pydantic-ai, or raise SettingsError; without a key, its provider reads the environment's."""
    try:
        if not key:
            return ProviderModel(infer_model(name, infer_provider), name, settings)
        # Providers that accept a key have this parameter; the others raise TypeError.
        arguments = {"api_key": key}
        model = infer_model(name, lambda provider: infer_provider_class(provider)(**arguments))
        return ProviderModel(model, name, settings)
    except ImportError as error:
        raise SettingsError(f"the rater's model {name!r} needs another package: {error}") from None
    except (exceptions.UserError, ValueError, TypeError) as error:
        raise SettingsError(
            f"the rater's model {name!r} cannot be used: {without_keys(str(error), key)}",
            actions=("Write it like anthropic:claude-sonnet-4-5, or set the url of an OpenAI-compatible server.",),
        ) from None


class ProviderModel:
    """A model that pydantic-ai asks: one request for each question, without its tool and repair loops."""

    def __init__(self, model: _AnyModel, name: str, settings: LlmRater) -> None:
        self._model = model
        self._name = name
        self._settings = settings

    async def ask(self, question: Question, /) -> ModelReply:
        """Request JSON, with a schema if the model supports it; see `JudgeModel.ask`."""
        request = ModelRequest(parts=[SystemPromptPart(question.system), UserPromptPart(question.message)])
        parameters = ModelRequestParameters()
        if self._model.profile.get("supports_json_schema_output"):
            form = OutputObjectDefinition(json_schema=dict(question.schema), name="judgement", strict=True)
            parameters = ModelRequestParameters(output_mode="native", output_object=form)
        settings: ModelSettings = {"timeout": self._settings.timeout}
        if question.temperature is not None:
            settings["temperature"] = question.temperature
        if self._settings.max_tokens is not None:
            settings["max_tokens"] = self._settings.max_tokens
        with _translated_errors(self._name):
            response = await model_request(
                self._model, [request], model_settings=settings, model_request_parameters=parameters
            )
        if response.finish_reason == "content_filter":
            details = response.provider_details or {}
            raise refusal(self._name, str(details.get("refusal") or "its content filter blocked the request"))
        usage = response.usage
        text = hide_keys(response.text or "")
        tokens = usage.input_tokens, usage.output_tokens, usage.cache_read_tokens
        return ModelReply(text, response.finish_reason or "", *tokens)

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
        raise SubjectError(f"the request to {model} failed: {without_keys(str(error))}") from None


def _api_error(error: exceptions.ModelAPIError, model: str) -> SubjectError:
    status = error.status_code if isinstance(error, exceptions.ModelHTTPError) else None
    what = f"replied with status {status}: {error.body}" if status else f"does not reply: {error}"
    text = f"{model} {without_keys(what)}"
    is_limited = isinstance(error, exceptions.ModelRateLimitError | exceptions.ModelUnavailableError)
    if is_limited or status in RETRIED_STATUSES:
        return SubjectBusy(text, after=error.retry_after)
    if isinstance(error, exceptions.ModelConnectionError):
        return SubjectUnreachable(text)
    return SubjectError(text)
