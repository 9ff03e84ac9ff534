"""Binding of LLM raters: from settings to models, without sending anything."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from evalmeta.engine.http_endpoint import Endpoint
from evalmeta.engine.raters.llm.custom_rubric import bind_rubric
from evalmeta.engine.raters.llm.providers import RETRIED_STATUSES, EndpointModel
from evalmeta.engine.raters.llm.rater import ModelRater
from evalmeta.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.raters.judge import RatingCache
    from evalmeta.engine.raters.llm.providers import JudgeModel
    from evalmeta.model.settings import LlmRater


def bind_llm(settings: LlmRater, *, root: Path, cache: RatingCache | None = None) -> ModelRater:
    """Return the rater that the settings describe, without sending anything; raise SettingsError if they are wrong.

    The path of the examples is relative to `root`.
    """
    models = [_bind_model(name, settings) for name in settings.model_names]
    rubric = bind_rubric(settings, root=root)
    return ModelRater(models, settings, rubric=rubric, cache=cache if settings.cache else None)


def _bind_model(name: str, settings: LlmRater) -> JudgeModel:
    variable = settings.api_key_env
    key = os.environ.get(variable, "") if variable else ""
    if variable and not key:
        raise SettingsError(
            f"the environment variable {variable} is not set; it must contain the rater's key",
            actions=(f"Set {variable}, or correct api_key_env in evalmeta.toml.",),
        )
    if settings.url:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        endpoint = Endpoint(
            settings.url,
            headers=headers,
            secrets=(key,) if key else (),
            credential=f"the key in {variable}",
            busy_statuses=RETRIED_STATUSES,
        )
        return EndpointModel(endpoint, name, settings)
    try:
        from evalmeta.engine.raters.llm.pydantic_ai_model import bind_provider
    except ImportError:
        raise SettingsError(
            f"the rater's model {name!r} needs pydantic-ai, which is not installed",
            actions=("Run: pip install 'evalmeta[llm]'", "Or set the url of an OpenAI-compatible server."),
        ) from None
    return bind_provider(name, settings, key)
