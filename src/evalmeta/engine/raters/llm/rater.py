"""The rater that asks language models for several samples and takes their majority, and its binding to models."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.engine.http_endpoint import Endpoint
from evalmeta.engine.interfaces import Rating, RatingCache, Rubric
from evalmeta.engine.metrics import METRICS, OWN, Criteria
from evalmeta.engine.raters.llm.prompts import (
    NO_RUBRIC,
    PROMPT_VERSION,
    answer_schema,
    bind_rubric,
    item_count,
    last_words,
    rubric_message,
    system_message,
)
from evalmeta.engine.raters.llm.providers import RETRIED_STATUSES, EndpointModel, Question, Requests, without_keys
from evalmeta.engine.raters.llm.scorer_prompts import (
    opinion_of_score,
    read_score,
    score_schema,
    scorer_digest,
    scorer_message,
)
from evalmeta.engine.raters.llm.verdicts import Opinion, UnreadableReply, opinion_of, read_judgement, read_ruling, weigh
from evalmeta.engine.spending import CURRENT
from evalmeta.errors import EvalmetaError, RaterError, SettingsError
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence
    from pathlib import Path

    from evalmeta.engine.interfaces import SharedPace
    from evalmeta.engine.raters.llm import LlmRater
    from evalmeta.engine.raters.llm.prompts import CustomRubric
    from evalmeta.engine.raters.llm.providers import JudgeModel, ModelReply
    from evalmeta.model.agent_scorer import PromptScorer


# An unreadable reply is requested once more.
_MAX_READINGS: Final = 2
_NONCE_BYTES: Final = 4
_EXCERPT_CHARS: Final = 300
# Replies that stopped there are incomplete (OpenAI, "Create chat completion", finish_reason).
_CUT: Final = "length"
# Wang et al., "Self-consistency improves chain of thought reasoning in language models" (2023), sample at 0.5 to 0.7.
_SPREAD: Final = 0.7
_FIRST_SPREAD_ROUND: Final = 2


class Sample(NamedTuple):
    """One request for a judgement; samples count from 1, and models and the rounds of a model from 0.

    At temperature 0, a model answers the same request in the same way. So samples differ in the order of criteria and
    data, and from the third round on, the temperature is raised.
    """

    number: int
    model: int
    round: int
    temperature: float | None
    is_reversed: bool


def sample_of(number: int, settings: LlmRater, rubric: Rubric) -> Sample:
    """Return the sample with a number for an answer; the models take turns."""
    earlier, model = divmod(number - 1, len(settings.model_names))
    temperature = settings.temperature
    if temperature is not None and earlier >= _FIRST_SPREAD_ROUND:
        temperature = max(temperature, _SPREAD)
    is_reversed = _is_reversed(model, rubric) != _is_reversed(earlier, rubric)
    return Sample(number, model, earlier, temperature, is_reversed)


def _is_reversed(place: int, rubric: Rubric) -> bool:
    """Return the order of a model or a round: both orders in each pair, so that the bias of an order cancels out.

    The first pair begins in order. Which order begins another pair differs from answer to answer: an odd number of
    samples ends within a pair, and if its last sample always had the same order, this order would decide each tie.
    """
    pair, second = divmod(place, 2)
    text = json.dumps([pair, rubric.utterance, rubric.expected, rubric.actual])
    begins_reversed = pair > 0 and hashlib.sha256(text.encode()).digest()[0] % 2 == 1
    return begins_reversed != bool(second)


def _cache_key(question: Question, sample: Sample, settings: LlmRater, *, version: int) -> str:
    """Return a hash of everything that a reply depends on; nonce and threshold do not matter.

    The question has the project's rubric and the order of the data, which is also that of the criteria.
    """
    asked = settings.model_names[sample.model], settings.url, settings.max_tokens
    parts = version, *asked, sample.temperature, sample.round, question.system, question.message
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class ModelRater:
    """Requests samples from models until their majority agrees; `rubric` is the project's own."""

    def __init__(
        self,
        models: Sequence[JudgeModel],
        settings: LlmRater,
        *,
        rubric: CustomRubric = NO_RUBRIC,
        cache: RatingCache | None = None,
        requests: Requests | None = None,
    ) -> None:
        self._models = models
        self._settings = settings
        self.rubric = rubric
        self._cache = cache
        self.requests = requests or Requests(settings)

    def __call__(self, rubric: Rubric, /) -> Awaitable[Rating] | None:
        """Rate an answer; return None for a metric without a prompt."""
        return self._rate(rubric) if rubric.scorer is not None or rubric.metric in METRICS else None

    def with_rubric(self, rubric: CustomRubric) -> ModelRater:
        """Return a rater with another rubric that uses the same models; only one of the two must be closed."""
        return ModelRater(self._models, self._settings, rubric=rubric, cache=self._cache, requests=self.requests)

    async def close(self) -> None:
        """Close the connections to the models."""
        for model in self._models:
            await model.close()

    def name(self, metric: str, scorer: PromptScorer | None = None) -> str:
        """Return the rater's name: its models, the version of the prompts, and a hash of what the project adds."""
        digest = self.rubric.digest if metric in OWN else ""
        own = f", rubric {digest}" if digest else ""
        if scorer is not None:
            own = f", {scorer.name} v{scorer.version} {scorer_digest(scorer)}"
        return f"llm:{'+'.join(self._settings.model_names)} (prompt v{PROMPT_VERSION}{own})"

    async def _rate(self, rubric: Rubric) -> Rating:
        samples = self._settings.sample_count if rubric.samples is None else rubric.samples
        opinions: list[Opinion] = []
        unread: list[str] = []
        requested = 0
        while wave := min(samples if rubric.is_pooled else _missing_votes(opinions, samples), samples - requested):
            numbers = range(requested + 1, requested + wave + 1)
            samplings = (self._sample(sample_of(number, self._settings, rubric), rubric) for number in numbers)
            for reply in await asyncio.gather(*samplings, return_exceptions=True):
                if isinstance(reply, BaseException):
                    raise reply
                if isinstance(reply, Opinion):
                    opinions.append(reply)
                else:
                    unread.append(reply)
            requested += wave
        name = self.name(rubric.metric, rubric.scorer)
        if not opinions or (unread and _missing_votes(opinions, samples) > 0 and not rubric.is_pooled):
            what = f"{len(unread)} of {samples} samples are" if samples > 1 else "the reply is"
            raise RaterError(f"{name}: {what} not a readable judgement: {unread[-1]}")
        return _rating_of(opinions, unread=len(unread), name=name, is_pooled=rubric.is_pooled)

    async def _sample(self, sample: Sample, rubric: Rubric) -> Opinion | str:
        """Return the opinion in a cached or new reply, or why there is none; a model of several may fail."""
        question = self._question(sample, rubric)
        key = _cache_key(question, sample, self._settings, version=PROMPT_VERSION)
        try:
            name = self._settings.model_names[sample.model]
            reply = self._cached(key, rubric, name) or await self._new(key, question, sample, rubric)
        except RaterError as error:
            if len(self._models) == 1:
                raise
            return str(error)
        return replace(reply, model=name) if isinstance(reply, Opinion) else reply

    def _question(self, sample: Sample, rubric: Rubric) -> Question:
        scorer, is_reversed = rubric.scorer, sample.is_reversed
        if scorer is None:
            system = system_message(rubric.metric, self.rubric, instructions=rubric.instructions)
            schema = answer_schema(rubric.metric, self.rubric)
        else:
            system = scorer_message(scorer, is_reversed=is_reversed)
            schema = score_schema(scorer, is_reversed=is_reversed)
        message = rubric_message(rubric, is_reversed=is_reversed)
        return Question(system, message, schema, sample.temperature, sample.number)

    def _cached(self, key: str, rubric: Rubric, model: str) -> Opinion | None:
        # A failing cache costs money, but no rating.
        with suppress(EvalmetaError, UnreadableReply):
            body = self._cache.find(key) if self._cache is not None else None
            if body:
                _, opinion = self._read(body, rubric)
                self.requests.usage.cached += 1
                if (ledger := CURRENT.get()) is not None:
                    ledger.reuse("rater", model)
                return opinion
        return None

    async def _new(self, key: str, question: Question, sample: Sample, rubric: Rubric) -> Opinion | str:
        name, model = self._settings.model_names[sample.model], self._models[sample.model]
        unread = repair = ""
        for _ in range(_MAX_READINGS):
            # Nobody who wrote the data can know the nonce, so a judgement with it is the model's own.
            nonce = secrets.token_hex(_NONCE_BYTES)
            end = last_words(nonce, is_reversed=sample.is_reversed and rubric.scorer is None, repair=repair)
            asked = replace(question, system=question.system + end)
            reply = await self.requests.send(asked, model, name)
            try:
                body, opinion = self._read(reply.text, rubric, nonce=nonce)
            except UnreadableReply as error:
                repair, unread = str(error), self._reason(error, reply)
                continue
            with suppress(EvalmetaError):
                if self._cache is not None:
                    self._cache.keep(key, body)
            return opinion
        return unread

    def _read(self, text: str, rubric: Rubric, *, nonce: str = "") -> tuple[str, Opinion]:
        """Return a reply as JSON that can be cached and read again, and the opinion in it."""
        if rubric.scorer is not None:
            score = read_score(text, rubric.scorer, nonce=nonce)
            return score.model_dump_json(), opinion_of_score(score, rubric.scorer)
        prompt = METRICS[rubric.metric].prompt
        if isinstance(prompt, Criteria):
            choices = self.rubric.choices
            judgement = read_judgement(text, rubric, nonce=nonce, choices=choices)
            return judgement.model_dump_json(), opinion_of(judgement, rubric, choices=choices)
        ruling = read_ruling(text, prompt.form, count=item_count(prompt, rubric), nonce=nonce)
        return ruling.model_dump_json(), weigh(ruling, prompt.form, rubric)

    def _reason(self, error: UnreadableReply, reply: ModelReply) -> str:
        key = os.environ.get(self._settings.api_key_env, "") if self._settings.api_key_env else ""
        text = " ".join(without_keys(reply.text, key).split())
        shown = text if len(text) <= _EXCERPT_CHARS else f"{text[: _EXCERPT_CHARS - 1]}…"
        excerpt = f'; the reply is "{shown}"' if shown else ""
        finish = f" (finish reason: {reply.finish_reason[:_EXCERPT_CHARS]})" if reply.finish_reason else ""
        verb = "set" if self._settings.max_tokens is None else "raise"
        hint = f"; {verb} max_tokens of the rater, because the reply was cut off" if reply.finish_reason == _CUT else ""
        return f"{error}{excerpt}{finish}{hint}"


def _missing_votes(opinions: Sequence[Opinion], samples: int) -> int:
    """Return the least number of samples that can still decide; 0 if the others cannot change the verdict.

    Half of an even number is enough for FAILURE, because a tie is FAILURE. A scorer that does not apply needs a
    majority, as PASS does.
    """
    counts = Counter(opinion.verdict for opinion in opinions)
    passed, majority = max(counts[Verdict.PASS], counts[Verdict.UNDECIDED]), samples // 2 + 1
    return min(majority - passed, (samples + 1) // 2 - counts[Verdict.FAILURE])


def _rating_of(opinions: Sequence[Opinion], *, unread: int, name: str, is_pooled: bool) -> Rating:
    """Return the rating of the majority: its median score and a typical explanation; a tie is FAILURE."""
    counts = Counter(opinion.verdict for opinion in opinions)
    # Without any FAILURE, passes tie with samples for which the scorer does not apply.
    tied = Verdict.FAILURE if counts[Verdict.FAILURE] else Verdict.UNDECIDED
    decided = (kind for kind in (Verdict.PASS, Verdict.UNDECIDED) if 2 * counts[kind] > len(opinions))
    verdict = next(decided, tied)
    agreeing = [opinion for opinion in opinions if opinion.verdict is verdict]
    score = median(opinion.score for opinion in agreeing)
    typical = min(agreeing, key=lambda opinion: abs(opinion.score - score))
    explanation = f"{_votes(opinions, agreeing, unread)}{typical.explanation}{_dissent(opinions, agreeing)}"
    if len(explanation) > limits.MAX_ERROR_CHARS:
        explanation = f"{explanation[: limits.MAX_ERROR_CHARS - 1]}…"
    share = counts[Verdict.PASS] / len(opinions) if is_pooled else None
    return Rating(float(score), verdict, explanation, name, share=share, output=typical.output)


def _votes(opinions: Sequence[Opinion], agreeing: Sequence[Opinion], unread: int) -> str:
    """Return how many samples agree; nothing for a single sample."""
    total = len(opinions) + unread
    remark = f" ({unread} could not be read)" if unread else ""
    return f"{len(agreeing)} of {total} samples{remark}: " if total > 1 else ""


def _dissent(opinions: Sequence[Opinion], agreeing: Sequence[Opinion]) -> str:
    """Name the models that disagree, if there are several models."""
    others = dict.fromkeys(opinion.model for opinion in opinions if opinion not in agreeing)
    is_vote = len({opinion.model for opinion in opinions}) > 1
    return f" (another verdict: {', '.join(others)})" if is_vote and others else ""


def bind_llm(
    settings: LlmRater, *, root: Path, cache: RatingCache | None = None, shared: SharedPace | None = None
) -> ModelRater:
    """Return the rater that the settings describe, without sending anything; raise SettingsError if they are wrong.

    The path of the examples is relative to `root`. The rate limit is that of all processes with the `shared` pace.
    """
    models = [_bind_model(name, settings) for name in settings.model_names]
    rubric = bind_rubric(settings, root=root)
    requests = Requests(settings, shared=shared)
    return ModelRater(models, settings, rubric=rubric, cache=cache if settings.cache else None, requests=requests)


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
