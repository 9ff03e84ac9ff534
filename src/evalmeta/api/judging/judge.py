"""Judging one answer by a rubric in words, in any test: the project's LLM rater, or another one."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Final

from evalmeta.api.evaluating.inputs import Bindings
from evalmeta.api.evaluating.loaded import Roots
from evalmeta.engine.answers import generated_data, plain_text
from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.interfaces import BEST_RATING, Rating, Rubric
from evalmeta.engine.scorers.functions import Check
from evalmeta.errors import RaterError, SettingsError, UsageError
from evalmeta.model.evaluation import Evaluation
from evalmeta.model.expectations import OUTCOME
from evalmeta.model.registry import EVALUATION_DEFINITION
from evalmeta.model.run import Verdict
from evalmeta.model.run_options import OFFLINE_RATER, RunOptions
from evalmeta.org.subjects import RATER_LINES
from evalmeta.package.project import SETTINGS_FILE

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator
    from pathlib import Path

    from evalmeta.api.evaluating.loaded import LoadedEvaluation
    from evalmeta.engine.interfaces import Rater
    from evalmeta.model.json_value import JsonValue

_TOLERANCE: Final = 1e-9
_LINES: Final = f'[score]\nrater = "judge"\n\n[raters.judge]\n{RATER_LINES}'
_KEYWORD: Final = 'rater={"adapter": "llm", "model": "openai:gpt-4.1-mini"} (pip install "evalmeta[llm]")'


class _Request:
    """A question to the rater, which the tasks of one event loop wait for."""

    def __init__(self, ask: Coroutine[None, None, Check]) -> None:
        self.loop = asyncio.get_running_loop()
        self.waiting = 0
        self._task = self.loop.create_task(ask)

    async def answer(self) -> Check:
        """Return or raise what comes of the question, which ends when nobody waits for it any more."""
        self.waiting += 1
        try:
            return await asyncio.shield(self._task)
        finally:
            self.waiting -= 1
            if not self.waiting:
                self._task.cancel()


class Judgement:
    """The judgement of an answer: `await` it, which returns a `Check`, or read it in a test that is not async.

    The rater is asked when the judgement is awaited or read for the first time; tasks that await it meanwhile get the
    same `Check`. It is true if the answer passed.
    """

    def __init__(self, ask: Callable[[], Coroutine[None, None, Check]]) -> None:
        self._ask = ask
        self._check: Check | None = None
        self._request: _Request | None = None

    def __await__(self) -> Generator[None, None, Check]:
        return self._asked().__await__()

    async def _asked(self) -> Check:
        if self._check is None:
            self._check = await self._shared_request().answer()
        return self._check

    def _shared_request(self) -> _Request:
        request = self._request
        if request is None or not request.waiting or request.loop is not asyncio.get_running_loop():
            request = self._request = _Request(self._ask())
        return request

    def _read(self) -> Check:
        return self._check or run_to_end(self._asked())

    def __bool__(self) -> bool:
        return bool(self._read())

    @property
    def passed(self) -> bool | None:
        """Return whether the score reaches the threshold; None if the rater could not decide."""
        return self._read().passed

    @property
    def score(self) -> float | None:
        """Return how well the answer meets the rubric, 0 to 1; None if the rater could not decide."""
        return self._read().score

    @property
    def reason(self) -> str:
        """Return the rater's reason."""
        return self._read().reason


def judge(
    question: JsonValue,
    answer: object,
    rubric: str,
    *,
    threshold: float = 0.7,
    rater: object = None,
    root: Path | None = None,
) -> Judgement:
    """Judge how well an answer meets a rubric, in any test or check: `await` the result, or read its members.

    A language model rates the answer from 0 to 5 by the criteria that it finds in the rubric; the score is a fifth of
    the rating. Ratings of a project are cached in its state folder.

    Args:
        question: What the agent was asked.
        answer: What it answered: a text, or anything that an agent can return.
        rubric: What a good answer is like, in words: criteria, expected facts, or an example.
        threshold: The least score, 0 to 1, that passes.
        rater: The name of a rater of the project; a table such as `{"adapter": "llm", "model": ...}`; or a function
            from a `Rubric` to a `Rating`. None uses the project's rater.
        root: The project's folder. None uses the project around the current folder.

    Raises:
        SettingsError: No LLM rater is configured, or it cannot be used. Awaiting and reading raise it, too.
        RaterError: The rater cannot be reached, or its reply cannot be read; awaiting and reading raise it.
        UsageError: The threshold is not from 0 to 1, or the rubric is empty.
    """
    if not 0 <= threshold <= 1:
        raise UsageError(f"the threshold of a judgement is {threshold}; it must be from 0 to 1")
    if not rubric.strip():
        raise UsageError("the rubric of a judgement is empty", actions=["Say in words what a good answer is like."])
    least = threshold * BEST_RATING - _TOLERANCE
    asked = Rubric(OUTCOME, plain_text(question), generated_data(answer).outcome, rubric, threshold=least)
    return Judgement(lambda: _judged(asked, rater, root))


async def _judged(rubric: Rubric, rater: object, root: Path | None) -> Check:
    place = Roots(root, "").root_of()
    loaded = place.loaded(Evaluation("", "", ()), None, EVALUATION_DEFINITION)
    async with AsyncExitStack() as stack:
        rating: object = _rater(rater, loaded, stack)(rubric)
        return _check(await rating if isawaitable(rating) else rating, rubric.threshold)


def _rater(rater: object, loaded: LoadedEvaluation, stack: AsyncExitStack) -> Rater:
    given, options = (None, rater) if isinstance(rater, str) else (rater, loaded.options.scoring.rater)
    name = str(options)
    if given is None and name == OFFLINE_RATER and rater is None:
        # A single rater of the project is meant, even if [score] does not name it.
        name = next(iter(loaded.settings.raters)) if len(loaded.settings.raters) == 1 else name
    if given is None and name == OFFLINE_RATER:
        raise _no_model(loaded.root)
    scoring = replace(loaded.options.scoring, rater=name)
    return Bindings(stack, None, given, None).rater(loaded, RunOptions(scoring=scoring))


def _no_model(root: Path) -> SettingsError:
    return SettingsError(
        f"no LLM rater is configured for {root}, and only a language model can judge by a rubric",
        actions=(f"Add it to {SETTINGS_FILE}, with your model and key:\n\n{_LINES}", f"Or pass {_KEYWORD}."),
    )


def _check(rating: object, least: float) -> Check:
    """Return a rating as the result of a check; raise RaterError if it is an error, or not a rating."""
    if rating is None:
        raise SettingsError(
            "the rater cannot judge by a rubric; only a language model can",
            actions=(f"Set rater under [score] in {SETTINGS_FILE}, or pass {_KEYWORD}.",),
        )
    if not isinstance(rating, Rating):
        raise RaterError(f"the rater returned {type(rating).__name__}, which is not a Rating")
    if rating.verdict is Verdict.ERROR:
        raise RaterError(rating.explanation)
    score = None if rating.score is None else rating.score / BEST_RATING
    passed = {Verdict.PASS: True, Verdict.FAILURE: False}.get(rating.verdict)
    if passed is None and rating.score is not None:
        passed = rating.score >= least
    return Check(passed, score, rating.explanation)
