"""The rater that asks a language model, several times, and goes by the majority."""

from __future__ import annotations

import asyncio
import hashlib
import json
from contextlib import suppress
from statistics import median
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.engine.pacer import Pacer
from evalmeta.engine.raters.judge import Rating
from evalmeta.engine.raters.llm.opinions import Reply, read_opinion
from evalmeta.engine.raters.llm.prompts import METRICS, PROMPT_VERSION, answer_schema, rubric_message, system_message
from evalmeta.engine.raters.llm.providers import Question, bind_model
from evalmeta.errors import EvalmetaError, RaterError, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.model.run import Verdict
from evalmeta.protocol.transient_errors import is_too_long, retry_pause

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalmeta.engine.raters.judge import RatingCache, Rubric
    from evalmeta.engine.raters.llm.judgement import Opinion
    from evalmeta.engine.raters.llm.providers import JudgeModel
    from evalmeta.model.settings import LlmRater


# What cannot be read is asked for once more.
_READINGS: Final = 2


def bind_llm(settings: LlmRater, *, cache: RatingCache | None = None) -> ModelRater:
    """Makes the rater that the settings describe; nothing is sent yet.

    Raises:
        SettingsError: the model, its url or its key cannot be used.
    """
    return ModelRater(bind_model(settings), settings, cache=cache if settings.cache else None)


class ModelRater:
    """Asks a model until the majority of the samples agrees.

    It has its own limit on questions at a time, asks less often while the model is
    busy, and repeats what failed in passing.
    """

    def __init__(self, model: JudgeModel, settings: LlmRater, *, cache: RatingCache | None = None) -> None:
        self.name: Final = f"llm:{settings.model} (prompt v{PROMPT_VERSION})"
        self._model = model
        self._settings = settings
        self._cache = cache
        self._pacer = Pacer(concurrency=settings.concurrency)

    def __call__(self, rubric: Rubric, /) -> Awaitable[Rating] | None:
        """Rates an answer; None for a metric that there is no prompt for.

        The awaitable raises RaterError when the model refuses, cannot be asked, or
        cannot be understood too often.
        """
        return self._rate(rubric) if rubric.metric in METRICS else None

    async def close(self) -> None:
        """Closes the connections to the model."""
        await self._model.close()

    async def _rate(self, rubric: Rubric) -> Rating:
        system, message, schema = system_message(rubric.metric), rubric_message(rubric), answer_schema(rubric.metric)
        opinions: list[Opinion] = []
        asked, samples = 0, self._samples(rubric)
        while wave := min(_wanted(opinions, samples, is_pooled=rubric.is_pooled), samples - asked):
            numbers = range(asked + 1, asked + wave + 1)
            questions = [Question(system, message, schema, number) for number in numbers]
            replies = await asyncio.gather(
                *(self._sample(question, rubric) for question in questions), return_exceptions=True
            )
            opinions += [each.opinion for each in _read(replies)]
            asked += wave
        return self._rating(opinions, rubric, unread=asked - len(opinions))

    def _samples(self, rubric: Rubric) -> int:
        return self._settings.samples if rubric.samples is None else rubric.samples

    async def _sample(self, question: Question, rubric: Rubric) -> Reply | None:
        """Gives one opinion, known or new; None when the model's text cannot be read."""
        key = _key(question, self._settings)
        known = self._known(key)
        reply = read_opinion(known, rubric) if known else None
        if reply:
            return reply
        for _ in range(_READINGS):
            reply = read_opinion(await self._ask(question), rubric)
            if reply:
                self._keep(key, reply.body)
                return reply
        return None

    def _known(self, key: str) -> str | None:
        # A cache that is out of order costs money, and no rating.
        with suppress(EvalmetaError):
            return self._cache.find(key) if self._cache is not None else None
        return None

    def _keep(self, key: str, body: str) -> None:
        with suppress(EvalmetaError):
            if self._cache is not None:
                self._cache.keep(key, body)

    async def _ask(self, question: Question) -> str:
        attempt = 1
        while True:
            try:
                return await self._admitted(question, attempt)
            except SubjectError as error:
                if attempt > limits.RETRIES or not _may_pass(error):
                    raise RaterError(f"{self.name}: {error}{_tried(attempt)}", actions=error.actions) from None
                if isinstance(error, SubjectUnreachable):
                    await asyncio.sleep(retry_pause(attempt))
            attempt += 1

    async def _admitted(self, question: Question, attempt: int) -> str:
        """Asks once, when the pacer lets it; of a busy model everyone keeps away for a while."""
        await self._pacer.enter()
        try:
            async with asyncio.timeout(self._settings.timeout):
                text = await self._model.ask(question)
        except TimeoutError:
            raise SubjectUnreachable(f"no answer within {self._settings.timeout:g} s") from None
        except SubjectBusy as busy:
            if _may_pass(busy):
                self._pacer.back_off(busy, attempt=attempt)
            raise
        finally:
            self._pacer.leave()
        self._pacer.speed_up()
        return text

    def _rating(self, opinions: list[Opinion], rubric: Rubric, *, unread: int) -> Rating:
        samples = self._samples(rubric)
        # Of an even number of samples half may pass; but where one was not read, it could have decided.
        if not opinions or (unread and _wanted(opinions, samples) and not rubric.is_pooled):
            raise RaterError(f"{self.name}: {unread} of {samples} samples are no judgement that can be read")
        verdict = _decided(opinions)
        agreeing = [each for each in opinions if each.verdict is verdict]
        score = median(each.score for each in agreeing)
        spoken = min(agreeing, key=lambda each: abs(each.score - score))
        remark = f" ({unread} could not be read)" if unread else ""
        asked = len(opinions) + unread
        explanation = f"{len(agreeing)} of {asked} samples{remark}: {spoken.explanation}"
        share = _passed(opinions) / len(opinions) if rubric.is_pooled else None
        return Rating(float(score), verdict, _bounded(explanation), self.name, share=share)


def _may_pass(error: SubjectError) -> bool:
    if isinstance(error, SubjectBusy):
        return not is_too_long(error.after)
    return isinstance(error, SubjectUnreachable)


def _tried(attempts: int) -> str:
    return f" (tried {attempts} times)" if attempts > 1 else ""


def _majority(samples: int) -> int:
    return samples // 2 + 1


def _wanted(opinions: list[Opinion], samples: int, *, is_pooled: bool = False) -> int:
    """Tells how many samples more the larger side needs for the majority; of pooled ones, all."""
    if is_pooled:
        return samples
    passed = _passed(opinions)
    return _majority(samples) - max(passed, len(opinions) - passed)


def _passed(opinions: list[Opinion]) -> int:
    return sum(each.verdict is Verdict.PASS for each in opinions)


def _decided(opinions: list[Opinion]) -> Verdict:
    passed = _passed(opinions)
    return Verdict.PASS if passed > len(opinions) - passed else Verdict.FAILURE


def _read(replies: list[Reply | BaseException | None]) -> list[Reply]:
    for each in replies:
        if isinstance(each, BaseException):
            raise each
    return [each for each in replies if isinstance(each, Reply)]


def _key(question: Question, settings: LlmRater) -> str:
    """Gives what a judgement is kept under: a hash of all that it depends on; the threshold is no part of it."""
    parts = (
        PROMPT_VERSION,
        settings.model,
        settings.url,
        settings.temperature,
        question.sample,
        question.system,
        question.message,
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _bounded(text: str) -> str:
    return text if len(text) <= limits.MAX_ERROR_CHARS else f"{text[: limits.MAX_ERROR_CHARS - 1]}…"
