"""Language models by the names that pydantic-ai knows, such as `anthropic:claude-sonnet-4-5`."""

from __future__ import annotations

import os
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, TypeAlias

from evalmeta import limits
from evalmeta.engine.raters.llm.models import refusal
from evalmeta.errors import SettingsError, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.model.secrecy import redacted, redacted_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_ai.exceptions import ModelAPIError
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.settings import ModelSettings

    from evalmeta.engine.raters.llm.models import Question
    from evalmeta.model.jsonvalue import JsonObject
    from evalmeta.model.settings import LlmRater

    _AnyModel: TypeAlias = Model[object]

__all__ = ["ProviderModel", "bind_provider"]

_UNREACHED: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT})
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
        return _text(response, self._settings.model)

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


def _text(response: ModelResponse, model: str) -> str:
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
    if isinstance(error, exceptions.ModelConnectionError) or status in _UNREACHED:
        return SubjectUnreachable(text)
    return SubjectError(text)


def _discreet(text: str, key: str = "") -> str:
    """Gives what a provider says without keys: it may quote the one that it was given."""
    keys = {key, *(value for name, value in os.environ.items() if name.endswith(_KEYS))}
    text = redacted(redacted_bytes(text.encode(errors="replace"), keys).decode(errors="replace"))
    return text[: limits.MAX_ERROR_CHARS // 2]
