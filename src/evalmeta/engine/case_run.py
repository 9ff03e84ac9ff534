"""Run one case: send its turns to the agent inside one session, score the answers, and keep to the time limit."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from evalmeta import limits
from evalmeta.engine.answers import generated_data
from evalmeta.engine.deadline import Deadline, TimeLimit
from evalmeta.engine.interfaces import Exchange, NothingToClose, Rater, Scorer, Session, Subject, ValueSession
from evalmeta.engine.pacer import Pacer
from evalmeta.engine.process import ProcessExit
from evalmeta.engine.project_code import traceback_text
from evalmeta.engine.scorers import score
from evalmeta.engine.scorers.results import broken, to_be_reviewed
from evalmeta.engine.spending import CURRENT, Ledger
from evalmeta.errors import SubjectBusy, SubjectError, SubjectRefused, SubjectUnavailable, SubjectUnreachable
from evalmeta.model.aggregation import case_verdict
from evalmeta.model.expectations import ACTIONS, TOPIC, canonical_name
from evalmeta.model.fingerprints import checks_of
from evalmeta.model.redaction import error_text, hide_secrets
from evalmeta.model.run import DOUBLE_TO_REVIEW, WAY_OUT, CaseResult, EarlierTurn, ErrorOrigin, TestResult, Verdict
from evalmeta.protocol.http import is_too_long, retry_pause

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from evalmeta.engine.traced import CompletedAnswer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.evaluation import Case, Turn, WorkItem
    from evalmeta.model.generated_data import GeneratedData

    Complete = Callable[[Sequence[GeneratedData]], Awaitable[Sequence[CompletedAnswer]]]

_T = TypeVar("_T")
_Given = TypeVar("_Given")
_NOT_SCORED: Final = "not scored within the time limit of its case (case_timeout)"
# What an agent chose, whatever the outputs of its actions are.
_CHOICES: Final = frozenset({TOPIC, ACTIONS})
_NOT_STARTED: Final = "the start of the session, such as a handshake, did not finish"
# The agent refused the request.
_FREE_ERRORS: Final = (SubjectBusy, SubjectRefused)
# While a run is stopped, sessions are closed first, then the subject; results are committed in between.
_HASTY_CLOSE_SECONDS: Final = limits.SHUTDOWN_SECONDS / 4


@dataclass(frozen=True, slots=True)
class CasePolicy:
    """The scorers by canonical name, the seconds of a case without pauses, and its retries after transient errors."""

    scorers: Mapping[str, Scorer]
    limit: TimeLimit
    retries: int = 0
    pacer: Pacer = field(default_factory=Pacer)


async def run_case(item: WorkItem, subject: Subject, policy: CasePolicy) -> CaseResult:
    """Run one case and return its result, as `ask_case` does, also if its traces have to arrive first."""
    result = await ask_case(item, subject, policy)
    return result if isinstance(result, CaseResult) else await result.finish()


class UnscoredCase(NamedTuple):
    """A case that was asked, whose traces have not arrived; `finish` waits for them and scores the answers."""

    finish: Callable[[], Awaitable[CaseResult]]


async def ask_case(item: WorkItem, subject: Subject, policy: CasePolicy) -> CaseResult | UnscoredCase:
    """Run one case and return its result; raise only CancelledError, when the run is cancelled.

    A case that times out, and any exception of the subject, make the case ERROR; the answers of earlier turns are
    kept. If the agent cannot be reached, the whole case is retried after a pause. The agent is not asked a case that
    evalmeta cannot run.
    """
    started, failures = time.time(), 0
    ledger = Ledger()
    CURRENT.set(ledger)
    if item.case.not_run:
        not_run = _Attempt(item.case, policy, failures, ledger).result(item, started, item.case.not_run)
        return not_run._replace(origin=ErrorOrigin.TEST)
    while True:
        attempt = _Attempt(item.case, policy, failures, ledger)
        error = await attempt.run(subject)
        if attempt.has_waited and _is_cancelled():
            # The agent swallowed the cancellation, so its answer is not valid.
            raise asyncio.CancelledError
        failures = attempt.failures
        if not attempt.is_retried or failures > policy.retries:
            if attempt.complete is not None:
                return UnscoredCase(partial(attempt.finish, item, started, error))
            return attempt.result(item, started, error)
        await asyncio.sleep(retry_pause(failures))


async def rescore_case(
    item: WorkItem, recorded: CaseResult | None, scorers: Mapping[str, Scorer], *, seconds: float
) -> CaseResult:
    """Score the recorded answers of a case against what its turns expect now.

    A case without all of its answers is ERROR, with the recorded reason. Results that are not ready within `seconds`
    are ERROR too.
    """
    case, now, ledger = item.case, time.time(), Ledger()
    CURRENT.set(ledger)
    answers: tuple[EarlierTurn, ...] = ()
    if recorded is not None and recorded.generated is not None:
        answers = (*recorded.earlier, EarlierTurn(recorded.utterance, recorded.generated))
    error = _mismatch(recorded, case, answers)
    if recorded is None or error:
        utterance = case.turns[-1].utterance if case.turns else ""
        traceback = recorded.traceback if recorded else ""
        return CaseResult(
            case.number, item.iteration, utterance, Verdict.ERROR, now, now, error=error, label=case.label,
            traceback=traceback, checks=checks_of(case), unanswered=recorded.unanswered if recorded else None,
            origin=(recorded.origin if recorded and recorded.error else None) or ErrorOrigin.TEST,
        )  # fmt: skip
    for _ in answers:
        ledger.reuse("agent")
    results = await _scored(case, answers, scorers, seconds)
    return recorded._replace(
        iteration=item.iteration, results=tuple(results), verdict=case_verdict(results), error=None, traceback="",
        checks=checks_of(case), spent=ledger.rows(), origin=None,
    )  # fmt: skip


def _countable(case: Case, results: list[TestResult], answers: Iterable[GeneratedData | None]) -> list[TestResult]:
    """Return the results as they count: none of a case that a person must review passes or fails.

    If an action of the case answered with proposed outputs, only what the agent chose can pass or fail.
    """
    if case.review:
        return [to_be_reviewed(result) for result in results]
    actions = (action for answer in answers if answer for action in answer.actions or ())
    proposed = next((action.review for action in actions if action.review), "")
    if not proposed:
        return results
    why = f"{DOUBLE_TO_REVIEW}{proposed} is marked for review"
    return [result if canonical_name(result.name) in _CHOICES else to_be_reviewed(result, why) for result in results]


def _mismatch(recorded: CaseResult | None, case: Case, answers: Sequence[EarlierTurn]) -> str | None:
    """Return why the recorded answers do not belong to the turns of a case, None if they do."""
    if not answers:
        return (recorded and recorded.error) or "no answer to this case was recorded"
    for answer, turn in zip(answers, case.turns, strict=False):
        if answer.utterance != turn.utterance:
            return f"the recorded answer is to {answer.utterance[:100]!r}"
    if len(answers) != len(case.turns):
        why = (recorded and recorded.error) or f"the case has {len(case.turns)} turns"
        return f"{len(answers)} answers were recorded: {why}"
    return None


async def _scored(
    case: Case, answers: Sequence[EarlierTurn], scorers: Mapping[str, Scorer], seconds: float
) -> list[TestResult]:
    """Return the results of the turns that have answers; those that are not ready in time are ERROR."""
    results: list[TestResult] = []
    with suppress(TimeoutError):
        await Deadline(TimeLimit(seconds)).run(_score_turns(case, answers, scorers, results))
    # A turn has all of its results or none, and a scorer may have returned several.
    last = results[-1].turn if results else -1
    not_scored = [
        broken(expectation, _NOT_SCORED)._replace(turn=_turn_number(case, number))
        for number, turn in enumerate(case.turns[: len(answers)], 1)
        if _turn_number(case, number) > last
        for expectation in turn.expectations
    ]
    return _countable(case, results + not_scored, [answer.generated for answer in answers])


async def _score_turns(
    case: Case, answers: Sequence[EarlierTurn], scorers: Mapping[str, Scorer], results: list[TestResult]
) -> None:
    for number, (turn, answer) in enumerate(zip(case.turns, answers, strict=False), 1):
        exchange = Exchange(case, answer.utterance, answer.generated, tuple(answers[: number - 1]))
        waiting = _score_turn(turn.expectations, exchange, scorers, results, turn=_turn_number(case, number))
        if waiting:
            await _finish_scoring(waiting, results)


def _turn_number(case: Case, number: int) -> int:
    """Return the number that results of a turn have: 0 if the case has only one turn."""
    return number if len(case.turns) > 1 else 0


def _score_turn(
    expectations: Sequence[Expectation],
    exchange: Exchange,
    scorers: Mapping[str, Scorer],
    results: list[TestResult],
    *,
    turn: int = 0,
) -> Mapping[int, Awaitable[TestResult | list[TestResult]]]:
    """Append a result for every expectation; return the scorers that wait, by the places of their results."""
    waiting: dict[int, Awaitable[TestResult | list[TestResult]]] = {}
    for expectation in expectations:
        result = score(expectation, exchange, scorers=scorers)
        if not isinstance(result, TestResult):
            waiting[len(results)] = result
            result = broken(expectation, _NOT_SCORED)
        results.append(result._replace(turn=turn) if turn else result)
    return waiting


async def _finish_scoring(
    waiting: Mapping[int, Awaitable[TestResult | list[TestResult]]], results: list[TestResult]
) -> None:
    """Wait for scorers and set their results; if cancelled, results that are not ready stay ERROR."""
    pending = {index: asyncio.ensure_future(awaited) for index, awaited in waiting.items()}
    try:
        await asyncio.wait(pending.values())
    finally:
        # From the last to the first, because several results of one scorer move those behind them.
        for index, scoring in reversed(pending.items()):
            if scoring.done() and not scoring.cancelled():
                ready, turn = scoring.result(), results[index].turn
                parts = ready if isinstance(ready, list) else (ready,)
                results[index : index + 1] = [part._replace(turn=turn) for part in parts]
            scoring.cancel()


async def close(closable: Session | Subject | Rater) -> None:
    """Close a session or a subject; exceptions and time-outs while closing never change a result."""
    if _has_nothing_to_close(closable):
        return
    try:
        seconds = _HASTY_CLOSE_SECONDS if _is_cancelled() else limits.CLOSE_SECONDS
        await Deadline(TimeLimit(seconds)).run(closable.close())
    except (Exception, SystemExit, ProcessExit, asyncio.CancelledError):  # noqa: BLE001, S110 - the results are known by now
        pass


def _has_nothing_to_close(closable: object) -> bool:
    return getattr(type(closable), "close", None) is NothingToClose.close


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class _Attempt:
    """One attempt at a case; it keeps what is known when it fails."""

    __slots__ = (
        "_answered", "_answers", "_asks", "_case", "_deadline", "_earlier", "_generated", "_ledger", "_origin",
        "_policy", "_results", "_scoring", "_session", "_traceback", "_unanswered", "_utterance", "complete",
        "failures", "is_retried",
    )  # fmt: skip

    def __init__(self, case: Case, policy: CasePolicy, failures: int, ledger: Ledger) -> None:
        self._case = case
        self._policy = policy
        self._ledger = ledger
        self._asks = False
        self._deadline = Deadline(policy.limit)
        self._session: Session | None = None
        self._utterance = case.turns[0].utterance if case.turns else ""
        self._answered = 0.0
        # Answers that are scored when `complete` has added what their traces say.
        self._answers: list[EarlierTurn] = []
        self.complete: Complete | None = None
        self._generated: GeneratedData | None = None
        self._earlier: list[EarlierTurn] = []
        self._scoring: Turn | None = None
        self._results: list[TestResult] = []
        self._traceback = ""
        self._unanswered: GeneratedData | None = None
        self._origin: ErrorOrigin | None = None
        self.failures = failures
        self.is_retried = False

    @property
    def has_waited(self) -> bool:
        """Whether the attempt gave control to the event loop, which is where it can be cancelled."""
        return self._deadline.has_started or not _has_nothing_to_close(self._session)

    async def run(self, subject: Subject) -> str | None:
        """Send every turn; return the error that ended the attempt, None if there was none."""
        begun = time.monotonic()
        try:
            await self._deadline.run(self._send_turns(subject))
        except (Exception, SystemExit, ProcessExit) as error:  # noqa: BLE001 - an exception of a subject only affects its case
            if not self._deadline.has_expired:
                if isinstance(error, SubjectUnreachable):
                    self.is_retried = error.is_retried
                    self.failures += 1
                self._traceback = error.traceback if isinstance(error, SubjectError) else traceback_text(error)
                self._origin = _origin_of(error)
                self._note_failure(error)
                text = error_text(error) if self.failures <= 1 else f"{error_text(error)} (tried {self.failures} times)"
                return _with_actions(text, error)
        except asyncio.CancelledError:
            self._origin = ErrorOrigin.CRASH
            self._note_failure()
            return "the agent cancelled itself"
        finally:
            if self._session is not None and not _has_nothing_to_close(self._session):
                await close(self._session)
        if self._asks:
            self._note_failure()
        return self._timeout(begun)

    def _note_failure(self, error: BaseException | None = None) -> None:
        """Note that the agent may have used tokens for a question without an answer, unless it refused the request."""
        if not self._asks or isinstance(error, _FREE_ERRORS) or getattr(self._session, "is_recorded", False):
            return
        self._ledger.failed()

    def result(self, item: WorkItem, started: float, error: str | None) -> CaseResult:
        answers = [*(turn.generated for turn in self._earlier), self._generated]
        results = _countable(self._case, self._results, answers)
        verdict = case_verdict(results) if error is None else Verdict.ERROR
        return CaseResult(
            item.case.number, item.iteration, self._utterance, verdict, started, time.time(), tuple(results),
            self._generated, error, self._case.label, tuple(self._earlier), self._traceback, checks_of(self._case),
            spent=self._ledger.rows(), unanswered=self._unanswered,
            origin=None if error is None else (self._origin or ErrorOrigin.TIME_OUT),
        )  # fmt: skip

    async def finish(self, item: WorkItem, started: float, error: str | None) -> CaseResult:
        """Wait for the traces of the answers, score them, and return the result."""
        completed = [] if self.complete is None else await self.complete([turn.generated for turn in self._answers])
        # Behind the answers comes what is known of a turn that has none.
        pairs = zip(self._answers, completed, strict=False)
        answers = [turn._replace(generated=done.answer) for turn, done in pairs]
        self._unanswered = next((done.answer for done in completed[len(answers) :]), None)
        for answer in answers:
            self._ledger.answered(answer.generated.tokens, is_recorded=False)
        results = await _scored(self._case, answers, self._policy.scorers, self._policy.limit.seconds)
        by_turn = {_turn_number(self._case, number): done for number, done in enumerate(completed, 1)}
        self._results = [_with_note(result, by_turn[result.turn]) for result in results]
        if self._generated is not None and answers:
            self._generated = answers.pop().generated
        self._earlier = answers
        return self.result(item, started, error)

    async def _send_turns(self, subject: Subject) -> None:
        case, scorers = self._case, self._policy.scorers
        session, _ = await self._paced(subject.open, case, is_utterance=False)
        self._session = session
        self.complete = getattr(session, "complete", None)
        for number, turn in enumerate(case.turns, 1):
            if self._generated is not None:
                self._earlier.append(EarlierTurn(self._utterance, self._generated))
            self._utterance, self._generated, self._asks = turn.utterance, None, True
            if turn.inputs is not None and isinstance(session, ValueSession):
                answer, seconds = await self._paced(session.ask_value, turn.inputs)
            else:
                answer, seconds = await self._paced(session.ask, turn.utterance)
            self._answered = time.monotonic()
            # Replaying a recorded answer says nothing about the agent's latency.
            self._generated = _checked(session, answer, None if answer is turn.recorded else seconds)
            self._asks = False
            if self.complete is not None:
                self._answers.append(EarlierTurn(turn.utterance, self._generated))
                continue
            self._ledger.answered(self._generated.tokens, is_recorded=getattr(session, "is_recorded", False))
            exchange = Exchange(case, turn.utterance, self._generated, tuple(self._earlier))
            self._scoring, shown = turn, _turn_number(case, number)
            waiting = _score_turn(turn.expectations, exchange, scorers, self._results, turn=shown)
            if waiting:
                await _finish_scoring(waiting, self._results)
            self._scoring = None

    async def _paced(
        self, call: Callable[[_Given], Awaitable[_T]], given: _Given, *, is_utterance: bool = True
    ) -> tuple[_T, float]:
        """Call when the pacer allows it, and again if the agent was busy; return the answer and its seconds."""
        pacer = self._policy.pacer
        if pacer.is_free:
            # The usual case costs next to nothing.
            asked = time.perf_counter()
            try:
                return await call(given), time.perf_counter() - asked
            except SubjectBusy as busy:
                self._back_off(busy)
        while True:
            with self._deadline.pause():
                await pacer.enter(is_utterance=is_utterance)
            asked = time.perf_counter()
            try:
                answer = await call(given)
            except SubjectBusy as busy:
                self._back_off(busy)
            else:
                pacer.speed_up()
                return answer, time.perf_counter() - asked
            finally:
                pacer.leave()

    def _back_off(self, busy: SubjectBusy) -> None:
        self.failures += 1
        if self.failures > self._policy.retries or is_too_long(busy.after):
            raise busy
        self._policy.pacer.back_off(busy, attempt=self.failures)

    def _timeout(self, begun: float) -> str | None:
        """Return what took too long, None if nothing did; slow scorers only make a case ERROR if turns are left."""
        # Deadlines do not reach an agent that swallows the cancellation or blocks the event loop.
        in_time = self._answered - begun - self._deadline.paused <= self._policy.limit.seconds
        if not in_time or (self._deadline.has_expired and self._scoring is None):
            late = f"no answer within {self._policy.limit.seconds:g} s"
            return late if self._session is not None else f"{late}: {_NOT_STARTED}"
        if self._scoring is None or self._scoring is self._case.turns[-1]:
            return None
        return f"turns were not sent: the earlier answers were not scored within {self._policy.limit.seconds:g} s"


def _with_actions(text: str, error: BaseException) -> str:
    """Return the text of an error, and what the user can do about it if that fits in whole."""
    actions = error.actions if isinstance(error, SubjectError) else ()
    whole = WAY_OUT.join((text, *(hide_secrets(str(action)) for action in actions)))
    return whole if len(whole) <= limits.MAX_ERROR_CHARS else text


def _origin_of(error: BaseException) -> ErrorOrigin:
    if not isinstance(error, SubjectError):
        return ErrorOrigin.CRASH
    kinds = {
        SubjectUnreachable: ErrorOrigin.UNREACHABLE,
        SubjectUnavailable: ErrorOrigin.UNAVAILABLE,
        SubjectBusy: ErrorOrigin.BUSY,
        SubjectRefused: ErrorOrigin.REFUSED,
    }
    known = next((origin for kind, origin in kinds.items() if isinstance(error, kind)), None)
    return known or (ErrorOrigin.CRASH if error.traceback else ErrorOrigin.INVALID)


def _with_note(result: TestResult, completed: CompletedAnswer) -> TestResult:
    """Return a result with what the trace lacks, or where it contradicts the answer."""
    if not completed.note or (completed.lacks_trace and result.verdict is not Verdict.UNDECIDED):
        return result
    return result._replace(explanation="; ".join(filter(None, (result.explanation, completed.note))))


def _checked(session: Session, answer: GeneratedData, seconds: float | None) -> GeneratedData:
    # The adapter of Python objects has checked and timed their answers already; checking takes as long as scoring.
    if getattr(session, "checks_answers", False):
        return answer
    return generated_data(answer, measured_ms=None if seconds is None else round(seconds * 1000, 1))
