"""The rater that asks a language model for several samples and takes their majority."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from contextlib import suppress
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.engine.http_endpoint import Endpoint
from evalmeta.engine.pacer import Pacer
from evalmeta.engine.raters.judge import Rating
from evalmeta.engine.raters.llm.prompts import METRICS, PROMPT_VERSION, answer_schema, rubric_message, system_message
from evalmeta.engine.raters.llm.providers import EndpointModel, Question
from evalmeta.engine.raters.llm.questions import QUESTIONS, item_count
from evalmeta.engine.raters.llm.replies import opinion_of, read_judgement, read_ruling, weigh
from evalmeta.errors import EvalmetaError, RaterError, SettingsError, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.model.run import Verdict
from evalmeta.protocol.http import is_too_long, retry_pause

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalmeta.engine.raters.judge import RatingCache, Rubric
    from evalmeta.engine.raters.llm.providers import JudgeModel
    from evalmeta.engine.raters.llm.replies import Opinion
    from evalmeta.model.settings import LlmRater


# An unreadable reply is requested once more.
_MAX_READINGS: Final = 2


class _Reply(NamedTuple):
    """One sample: the model's reply as JSON that can be cached and read again, and the opinion in it."""

    body: str
    opinion: Opinion


def bind_llm(settings: LlmRater, *, cache: RatingCache | None = None) -> ModelRater:
    """Return the rater that the settings describe, without sending anything; raise SettingsError if they are wrong."""
    return ModelRater(_bind_model(settings), settings, cache=cache if settings.cache else None)


def _bind_model(settings: LlmRater) -> JudgeModel:
    variable = settings.api_key_env
    key = os.environ.get(variable, "") if variable else ""
    if variable and not key:
        raise SettingsError(
            f"the environment variable {variable} is not set; it must contain the rater's key",
            actions=(f"Set {variable}, or correct api_key_env in evalmeta.toml.",),
        )
    if settings.url:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        endpoint = Endpoint(settings.url, headers=headers, secrets=(key,) if key else ())
        return EndpointModel(endpoint, settings)
    try:
        from evalmeta.engine.raters.llm.pydantic_ai_model import bind_provider  # noqa: PLC0415 - an extra
    except ImportError:
        raise SettingsError(
            f"the rater's model {settings.model!r} needs pydantic-ai, which is not installed",
            actions=("Run: pip install 'evalmeta[llm]'", "Or set the url of an OpenAI-compatible server."),
        ) from None
    return bind_provider(settings, key)


class ModelRater:
    """Requests samples from a model until their majority agrees, with its own rate, and retries transient failures."""

    def __init__(self, model: JudgeModel, settings: LlmRater, *, cache: RatingCache | None = None) -> None:
        self.name: Final = f"llm:{settings.model} (prompt v{PROMPT_VERSION})"
        self._model = model
        self._settings = settings
        self._cache = cache
        self._pacer = Pacer(concurrency=settings.concurrency)

    def __call__(self, rubric: Rubric, /) -> Awaitable[Rating] | None:
        """Rate an answer; return None for a metric without a prompt."""
        return self._rate(rubric) if rubric.metric in METRICS else None

    async def close(self) -> None:
        """Close the connections to the model."""
        await self._model.close()

    async def _rate(self, rubric: Rubric) -> Rating:
        system, message, schema = system_message(rubric.metric), rubric_message(rubric), answer_schema(rubric.metric)
        samples = self._settings.samples if rubric.samples is None else rubric.samples
        opinions: list[Opinion] = []
        requested = 0
        while wave := min(samples if rubric.is_pooled else _needed(opinions, samples), samples - requested):
            numbers = range(requested + 1, requested + wave + 1)
            samplings = (self._sample(Question(system, message, schema, number), rubric) for number in numbers)
            replies = await asyncio.gather(*samplings, return_exceptions=True)
            for reply in replies:
                if isinstance(reply, BaseException):
                    raise reply
            opinions += [each.opinion for each in replies if isinstance(each, _Reply)]
            requested += wave
        # With an even number of samples, half can pass; but an unreadable one could have decided.
        unread = requested - len(opinions)
        if not opinions or (unread and _needed(opinions, samples) and not rubric.is_pooled):
            raise RaterError(f"{self.name}: {unread} of {samples} samples are not a readable judgement")
        return self._rating(opinions, unread=unread, is_pooled=rubric.is_pooled)

    def _rating(self, opinions: list[Opinion], *, unread: int, is_pooled: bool) -> Rating:
        passed = _passed(opinions)
        verdict = Verdict.PASS if passed > len(opinions) - passed else Verdict.FAILURE
        agreeing = [each for each in opinions if each.verdict is verdict]
        score = median(each.score for each in agreeing)
        typical = min(agreeing, key=lambda each: abs(each.score - score))
        remark = f" ({unread} could not be read)" if unread else ""
        explanation = f"{len(agreeing)} of {len(opinions) + unread} samples{remark}: {typical.explanation}"
        if len(explanation) > limits.MAX_ERROR_CHARS:
            explanation = f"{explanation[: limits.MAX_ERROR_CHARS - 1]}…"
        share = passed / len(opinions) if is_pooled else None
        return Rating(float(score), verdict, explanation, self.name, share=share)

    async def _sample(self, question: Question, rubric: Rubric) -> _Reply | None:
        """Return a cached or new reply; None if the model's text cannot be read."""
        key = _cache_key(question, self._settings)
        # A failing cache costs money, but no rating.
        with suppress(EvalmetaError):
            cached = self._cache.find(key) if self._cache is not None else None
            if cached and (reply := _read(cached, rubric)):
                return reply
        for _ in range(_MAX_READINGS):
            reply = _read(await self._ask(question), rubric)
            if reply:
                with suppress(EvalmetaError):
                    if self._cache is not None:
                        self._cache.keep(key, reply.body)
                return reply
        return None

    async def _ask(self, question: Question) -> str:
        attempt = 1
        while True:
            try:
                return await self._ask_once(question, attempt)
            except SubjectError as error:
                if attempt > limits.RETRIES or not _is_transient(error):
                    tried = f" (tried {attempt} times)" if attempt > 1 else ""
                    raise RaterError(f"{self.name}: {error}{tried}", actions=error.actions) from None
                if isinstance(error, SubjectUnreachable):
                    await asyncio.sleep(retry_pause(attempt))
            attempt += 1

    async def _ask_once(self, question: Question, attempt: int) -> str:
        """Send a request when the pacer permits it; a busy model slows down all requests."""
        await self._pacer.enter()
        try:
            async with asyncio.timeout(self._settings.timeout):
                text = await self._model.ask(question)
        except TimeoutError:
            raise SubjectUnreachable(f"no answer within {self._settings.timeout:g} s") from None
        except SubjectBusy as busy:
            if _is_transient(busy):
                self._pacer.back_off(busy, attempt=attempt)
            raise
        finally:
            self._pacer.leave()
        self._pacer.speed_up()
        return text


def _is_transient(error: SubjectError) -> bool:
    if isinstance(error, SubjectBusy):
        return not is_too_long(error.after)
    return isinstance(error, SubjectUnreachable)


def _needed(opinions: list[Opinion], samples: int) -> int:
    """Return the number of samples that the larger side still needs for the majority."""
    passed = _passed(opinions)
    return samples // 2 + 1 - max(passed, len(opinions) - passed)


def _passed(opinions: list[Opinion]) -> int:
    return sum(each.verdict is Verdict.PASS for each in opinions)


def _read(text: str, rubric: Rubric) -> _Reply | None:
    inquiry = QUESTIONS.get(rubric.metric)
    if inquiry is None:
        judgement = read_judgement(text)
        return _Reply(judgement.model_dump_json(), opinion_of(judgement, rubric)) if judgement else None
    ruling = read_ruling(text, inquiry.form, count=item_count(inquiry, rubric))
    return _Reply(ruling.model_dump_json(), weigh(ruling, inquiry.form, rubric)) if ruling else None


def _cache_key(question: Question, settings: LlmRater) -> str:
    """Return a hash of everything that a reply depends on; the threshold is applied later."""
    request = question.sample, question.system, question.message
    parts = PROMPT_VERSION, settings.model, settings.url, settings.temperature, *request
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
