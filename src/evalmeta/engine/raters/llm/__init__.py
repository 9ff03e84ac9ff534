"""The rater that asks language models; these are its settings."""

from __future__ import annotations

import hashlib
from pathlib import Path  # noqa: TC003 - pydantic reads it
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from evalmeta import limits
from evalmeta.model.settings import RaterSettings


class LlmRater(RaterSettings):
    """Language models as rater: any models at an OpenAI-compatible `url`, else model names of pydantic-ai.

    `models` instead of `model` lets several models vote. `url` ends before `/chat/completions`. `api_key_env` is the
    environment variable with the key. `samples` is the number of judgements for each answer, by default one of each
    model. `temperature = "default"` uses the model's default. `timeout` is the time limit of one answer in seconds,
    `concurrency` the number of requests at a time, and `rate_limit` that of requests per second, of all processes that
    share the store. With `cache = false`, known ratings are requested again.

    `instructions`, `examples` (a file with labelled pairs, relative to the project's folder) and `choices` (the scores,
    0 to 5, of named verdicts) are the project's own rubric.
    """

    adapter: Literal["llm"]
    model: str = ""
    models: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    url: str = ""
    api_key_env: str = ""
    samples: Annotated[int, Field(ge=1, le=limits.MAX_RATER_SAMPLES)] | None = None
    temperature: Annotated[
        float | None, Field(ge=0, le=2), BeforeValidator(lambda value: None if value == "default" else value)
    ] = 0.0
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    timeout: Annotated[float, Field(gt=0, le=limits.MAX_CASE_TIMEOUT_SECONDS)] = limits.HTTP_TIMEOUT_SECONDS
    concurrency: Annotated[int, Field(ge=1, le=limits.MAX_CONCURRENCY)] = limits.RATER_CONCURRENCY
    rate_limit: Annotated[float, Field(gt=0, le=limits.MAX_RATE)] | None = None
    cache: bool = True
    instructions: Annotated[str, Field(max_length=limits.MAX_INSTRUCTION_CHARS)] = ""
    examples: Path | None = None
    choices: dict[Annotated[str, Field(min_length=1)], Annotated[float, Field(ge=0, le=5)]] = Field(
        default_factory=dict
    )

    def key_variables(self) -> tuple[str, ...]:
        """Return the environment variables with the keys.

        The client of a model that is named without a URL, such as `openai:gpt-4.1-mini`, reads the key of its provider.
        """
        if self.url or self.api_key_env:
            return super().key_variables()
        providers = [model.partition(":")[0].partition("-")[0] for model in self.model_names if ":" in model]
        return tuple(f"{provider.upper()}_API_KEY" for provider in providers)

    @property
    def model_names(self) -> tuple[str, ...]:
        """Return the models that vote, or the only one."""
        return self.models or (self.model,)

    @property
    def pace_name(self) -> str:
        """Return the name under which processes share the pace of the requests; URLs may have secrets."""
        where = hashlib.sha256(self.url.encode()).hexdigest()[:8]
        return f"llm:{'+'.join(sorted(self.model_names))} {where}"

    @property
    def sample_count(self) -> int:
        """Return the number of judgements for each answer."""
        return self.samples or len(self.model_names)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if fault := self._fault():
            raise PydanticCustomError("rater", "{fault}", {"fault": fault})
        return self

    def _fault(self) -> str:
        if bool(self.model) == bool(self.models):
            return "needs either model or models" if self.model else "the key 'model' is missing"
        if len(set(self.models)) < len(self.models):
            return "models names a model twice; use samples to ask each model several times"
        if self.sample_count < len(self.model_names):
            return f"samples is {self.samples}, but each of the {len(self.models)} models needs at least one"
        if self.choices and len(set(self.choices.values())) < 2:  # noqa: PLR2004 - a pass and a failure
            return "choices needs at least two verdicts with different scores"
        return ""
