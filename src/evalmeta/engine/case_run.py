"""One case: asked turn by turn inside one session, scored turn by turn.

A time limit that costs next to nothing for work that never waits.

What a run has to do, one case at a time.
"""

from __future__ import annotations

import asyncio
import random
import time
import zlib
from contextlib import contextmanager, suppress
from dataclasses import replace
from types import coroutine
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from evalmeta import limits
from evalmeta.engine.answers import generated_data
from evalmeta.engine.reasons import reason
from evalmeta.engine.retry import Pacer
from evalmeta.engine.scorer import Exchange
from evalmeta.engine.scorers.registry import score
from evalmeta.engine.scorers.results import broken
from evalmeta.errors import SubjectBusy, SubjectUnreachable
from evalmeta.model.aggregation import case_verdict
from evalmeta.model.run import CaseResult, EarlierTurn, TestResult, Verdict
from evalmeta.protocol.transient_errors import is_too_long, retry_pause

if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Collection,
        Coroutine,
        Generator,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

    from evalmeta.engine.scorer import Scorer
    from evalmeta.engine.subject import Session, Subject
    from evalmeta.model.definition import Expectation
    from evalmeta.model.evaluation import Case, Evaluation, Turn
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.run import RunOptions


_T = TypeVar("_T")


_UNJUDGED: Final = "not judged before the time of its case (case_timeout) was over"
# While a run is stopped, sessions and then the subject are closed, and results are committed in between.
_HASTY_CLOSE_SECONDS: Final = limits.SHUTDOWN_SECONDS / 4


class _Closable(Protocol):
    def close(self) -> Coroutine[object, object, None]: ...


class Terms:
    """On what terms cases are asked: how they are judged, how long each may take, how often it is tried, how fast."""

    __slots__ = ("pacer", "retries", "scorers", "seconds")

    def __init__(
        self, scorers: Mapping[str, Scorer], *, seconds: float, retries: int = 0, pacer: Pacer | None = None
    ) -> None:
        self.scorers = scorers
        self.seconds = seconds
        self.retries = retries
        self.pacer = pacer or Pacer()


async def converse(item: WorkItem, subject: Subject, terms: Terms) -> CaseResult:
    """Asks and judges one case and never raises, except when it is cancelled.

    A case that takes too long, and a subject that raises anything, make the case ERROR;
    what earlier turns gave is kept. A case whose agent could not be reached is begun
    anew, with a pause before, as often as the terms say.
    """
    started, failures = time.time(), 0
    while True:
        conversation = _Conversation(item.case, terms, failures)
        error = await conversation.hold(subject)
        if _is_cancelled():
            # The agent swallowed the cancellation; what it gave after that is no answer.
            raise asyncio.CancelledError
        failures = conversation.failures
        if not conversation.may_pass or failures > terms.retries:
            return conversation.result(item, started, error)
        await asyncio.sleep(retry_pause(failures))


async def judge_again(
    item: WorkItem, recorded: CaseResult | None, scorers: Mapping[str, Scorer], *, seconds: float
) -> CaseResult:
    """Judges what an earlier run recorded for a case: every answer by what its turn expects.

    A case without all of its answers is ERROR, with the reason that was recorded; a
    result that is not there within the seconds is ERROR too.
    """
    case, now = item.case, time.time()
    answers = _recorded_answers(recorded)
    error = _not_recorded(recorded, case, answers)
    if recorded is None or error:
        utterance = case.turns[-1].utterance if case.turns else ""
        return CaseResult(
            case.number, item.iteration, utterance, Verdict.ERROR, now, now, error=error, label=case.label
        )
    results: list[TestResult] = []
    with suppress(TimeoutError):
        await Deadline(seconds).keep(_judge_turns(case, answers, scorers, results))
    results += _unjudged(case)[len(results) :]
    judged = replace(recorded, iteration=item.iteration, results=tuple(results), error=None)
    return replace(judged, verdict=case_verdict(results))


async def _judge_turns(
    case: Case, answers: Sequence[EarlierTurn], scorers: Mapping[str, Scorer], results: list[TestResult]
) -> None:
    for place, (turn, answer) in enumerate(zip(case.turns, answers, strict=True), 1):
        exchange = Exchange(case, answer.utterance, answer.generated, tuple(answers[: place - 1]))
        await _judge(turn.expectations, exchange, scorers, results, turn=_turn_number(case, place))


def _unjudged(case: Case) -> list[TestResult]:
    """Gives what every expectation of a case comes to that no time is left for."""
    return [
        broken(expectation, _UNJUDGED)._replace(turn=_turn_number(case, place))
        for place, turn in enumerate(case.turns, 1)
        for expectation in turn.expectations
    ]


def _turn_number(case: Case, place: int) -> int:
    return place if len(case.turns) > 1 else 0


def _recorded_answers(recorded: CaseResult | None) -> tuple[EarlierTurn, ...]:
    if recorded is None or recorded.generated is None:
        return ()
    return (*recorded.earlier, EarlierTurn(recorded.utterance, recorded.generated))


def _not_recorded(recorded: CaseResult | None, case: Case, answers: Sequence[EarlierTurn]) -> str | None:
    """Says why the recorded answers are not those to a case's turns; None when they are."""
    if not answers:
        return (recorded and recorded.error) or "no answer to this case was recorded"
    for answer, turn in zip(answers, case.turns, strict=False):
        if answer.utterance != turn.utterance:
            return f"the recorded answer is to {answer.utterance[:100]!r}"
    if len(answers) != len(case.turns):
        why = (recorded and recorded.error) or f"the case has {len(case.turns)} turns"
        return f"{len(answers)} answers were recorded: {why}"
    return None


async def _judge(
    expectations: Sequence[Expectation],
    exchange: Exchange,
    scorers: Mapping[str, Scorer],
    results: list[TestResult],
    *,
    turn: int = 0,
) -> None:
    """Adds a result for every expectation; what is cancelled meanwhile leaves those ERROR that were not there yet."""
    waiting: dict[int, asyncio.Future[TestResult]] = {}
    first = len(results)
    for expectation in expectations:
        result = score(expectation, exchange, scorers=scorers)
        if not isinstance(result, TestResult):
            waiting[len(results)] = asyncio.ensure_future(result)
            result = broken(expectation, _UNJUDGED)
        results.append(result)
    try:
        if waiting:
            await _wait_for(waiting, results)
    finally:
        if turn:
            results[first:] = [each._replace(turn=turn) for each in results[first:]]


async def _wait_for(waiting: Mapping[int, asyncio.Future[TestResult]], results: list[TestResult]) -> None:
    try:
        await asyncio.wait(waiting.values())
    finally:
        for place, judging in waiting.items():
            if judging.done() and not judging.cancelled():
                results[place] = judging.result()
            judging.cancel()


async def close(closable: _Closable) -> None:
    """Closes a session or subject; what it raises, or that it takes longer than the limit, spoils no result."""
    try:
        seconds = _HASTY_CLOSE_SECONDS if _is_cancelled() else limits.CLOSE_SECONDS
        await Deadline(seconds).keep(closable.close())
    except (Exception, SystemExit, asyncio.CancelledError):  # noqa: BLE001, S110 - it is told to nobody
        pass


class _Conversation:
    """One attempt at a case, and how far it came; that is kept when it breaks off."""

    __slots__ = (
        "_answered", "_case", "_deadline", "_earlier", "_generated", "_judged", "_results", "_session", "_terms",
        "_utterance", "failures", "may_pass",
    )  # fmt: skip

    def __init__(self, case: Case, terms: Terms, failures: int) -> None:
        self._case = case
        self._terms = terms
        self._deadline = Deadline(terms.seconds)
        self._session: Session | None = None
        self._utterance = case.turns[0].utterance if case.turns else ""
        self._answered = 0.0
        self._generated: GeneratedData | None = None
        self._earlier: list[EarlierTurn] = []
        self._judged: Turn | None = None
        self._results: list[TestResult] = []
        self.failures = failures
        self.may_pass = False

    async def hold(self, subject: Subject) -> str | None:
        """Asks every turn and gives what broke the conversation off, None for nothing."""
        begun = time.monotonic()
        try:
            await self._deadline.keep(self._ask_all(subject))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a broken subject spoils one case, not the run
            if not self._deadline.has_expired:
                return self._broken_off(error)
        except asyncio.CancelledError:
            return "the agent cancelled itself"
        finally:
            if self._session is not None:
                await close(self._session)
        return self._too_late(begun)

    def result(self, item: WorkItem, started: float, error: str | None) -> CaseResult:
        verdict = case_verdict(self._results) if error is None else Verdict.ERROR
        return CaseResult(
            item.case.number,
            item.iteration,
            self._utterance,
            verdict,
            started,
            time.time(),
            tuple(self._results),
            self._generated,
            error,
            self._case.label,
            tuple(self._earlier),
        )

    def _too_late(self, begun: float) -> str | None:
        """Says what took too long; scorers that did have their own results, and leave no time for further turns."""
        # An agent may swallow the cancellation, or block the loop so that none can reach it.
        in_time = self._answered - begun - self._deadline.paused <= self._terms.seconds
        if not in_time or (self._deadline.has_expired and self._judged is None):
            return f"no answer within {self._terms.seconds:g} s"
        if self._judged is None or self._judged is self._case.turns[-1]:
            return None
        return f"no time left to ask on: the answers were not judged within {self._terms.seconds:g} s"

    def _broken_off(self, error: BaseException) -> str:
        if isinstance(error, SubjectUnreachable):
            self.may_pass = True
            self.failures += 1
        return reason(error) if self.failures <= 1 else f"{reason(error)} (tried {self.failures} times)"

    async def _ask_all(self, subject: Subject) -> None:
        session, _ = await self._admitted(lambda: subject.open(self._case), is_question=False)
        self._session = session
        for place, turn in enumerate(self._case.turns, 1):
            await self._take_turn(turn, session, _turn_number(self._case, place))

    async def _take_turn(self, turn: Turn, session: Session, place: int) -> None:
        if self._generated is not None:
            self._earlier.append(EarlierTurn(self._utterance, self._generated))
        self._utterance, self._generated = turn.utterance, None
        answer, elapsed = await self._admitted(lambda: session.ask(turn.utterance))
        self._answered = time.monotonic()
        # What was recorded earlier took its time then.
        measured = None if answer is turn.recorded else round(elapsed * 1000, 1)
        self._generated = generated_data(answer, measured_ms=measured)
        exchange = Exchange(self._case, turn.utterance, self._generated, tuple(self._earlier))
        self._judged = turn
        await _judge(turn.expectations, exchange, self._terms.scorers, self._results, turn=place)
        self._judged = None

    async def _admitted(self, ask: Callable[[], Awaitable[_T]], *, is_question: bool = True) -> tuple[_T, float]:
        """Asks when the pacer lets it, again when the agent was busy; gives the answer and its seconds."""
        pacer = self._terms.pacer
        if pacer.is_free:
            asked = time.perf_counter()
            try:
                return await ask(), time.perf_counter() - asked
            except SubjectBusy as busy:
                self._refused(busy)
        while True:
            with self._deadline.pause():
                await pacer.enter(is_question=is_question)
            asked = time.perf_counter()
            try:
                answer = await ask()
            except SubjectBusy as busy:
                self._refused(busy)
            else:
                pacer.accepted()
                return answer, time.perf_counter() - asked
            finally:
                pacer.leave()

    def _refused(self, busy: SubjectBusy) -> None:
        self.failures += 1
        if self.failures > self._terms.retries or is_too_long(busy.after):
            raise busy
        self._terms.pacer.refused(busy, attempt=self.failures)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Deadline:
    """Gives work a number of seconds from the moment it first waits; pauses that are not its own do not count."""

    __slots__ = ("_left", "_timeout", "paused")

    def __init__(self, seconds: float) -> None:
        self._left: float | None = seconds
        self._timeout: asyncio.Timeout | None = None
        self.paused = 0.0

    @property
    def has_expired(self) -> bool:
        """Tells whether the time ran out while the work waited."""
        return self._timeout is not None and self._timeout.expired()

    async def keep(self, work: Coroutine[object, object, _T]) -> _T:
        """Gives what the work gives.

        Raises:
            TimeoutError: it took too long; it was cancelled.
        """
        # A timer is armed and taken back for every case otherwise, which costs as much as scoring one.
        try:
            first = work.send(None)
        except StopIteration as done:
            result: _T = done.value
            return result
        async with asyncio.timeout(self._left) as self._timeout:
            return await _rest(work, first)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Stops the clock."""
        left, begun = self._seconds_left(), time.monotonic()
        self._set(None)
        try:
            yield
        finally:
            self.paused += time.monotonic() - begun
            self._set(left)

    def _seconds_left(self) -> float | None:
        when = None if self._timeout is None else self._timeout.when()
        return self._left if when is None else when - asyncio.get_running_loop().time()

    def _set(self, left: float | None) -> None:
        self._left = left
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(None if left is None else asyncio.get_running_loop().time() + left)


@coroutine
def _rest(work: Coroutine[object, object, _T], waits_for: object) -> Generator[object, object, _T]:
    """Goes on with work whose first step was taken."""
    try:
        while True:
            try:
                sent = yield waits_for
            except BaseException as error:  # noqa: BLE001 - the work decides what to do about it
                waits_for = work.throw(error)
            else:
                waits_for = work.send(sent)
    except StopIteration as done:
        result: _T = done.value
        return result


class WorkItem(NamedTuple):
    """One case to ask in one iteration; iterations count from 1."""

    iteration: int
    case: Case


def plan(evaluation: Evaluation, options: RunOptions, finished: Collection[tuple[int, int]]) -> Iterator[WorkItem]:
    """Lists what is still to do, lazily, iteration by iteration in the order of the cases or as the seed draws it.

    `finished` holds (iteration, case number) of what need not be asked again. Only a seed
    needs all cases at once.
    """
    for iteration in range(1, options.iterations + 1):
        for case in _ordered(choose(evaluation, options), options.seed, iteration):
            if (iteration, case.number) not in finished:
                yield WorkItem(iteration, case)


def choose(evaluation: Evaluation, options: RunOptions) -> Iterator[Case]:
    """Gives the cases that a run asks: those of its numbers that are in its shard.

    A case is always in the same shard, whatever other cases there are: the CRC-32 of
    `NAME:NUMBER` tells.
    """
    numbers = None if options.cases is None else frozenset(options.cases)
    part, parts = options.shard or (1, 1)
    for case in evaluation.cases:
        if numbers is not None and case.number not in numbers:
            continue
        if parts == 1 or zlib.crc32(f"{evaluation.name}:{case.number}".encode()) % parts == part - 1:
            yield case


def _ordered(cases: Iterable[Case], seed: int | None, iteration: int) -> Iterable[Case]:
    if seed is None:
        return cases
    drawn = list(cases)
    random.Random(f"{seed}:{iteration}").shuffle(drawn)  # noqa: S311 - an order that can be had again, no secret
    return drawn
