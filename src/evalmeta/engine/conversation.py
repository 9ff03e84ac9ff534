"""One case: asked turn by turn inside one session, scored turn by turn."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from evalmeta import limits
from evalmeta.engine.answers import generated_data
from evalmeta.engine.reasons import reason
from evalmeta.engine.scorer import Exchange, score
from evalmeta.model.run import CaseResult, TestResult, Verdict, case_verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.engine.plan import WorkItem
    from evalmeta.engine.scorer import Scorer
    from evalmeta.engine.subject import Session, Subject
    from evalmeta.model.evaluation import Case, Turn
    from evalmeta.model.generated import GeneratedData

__all__ = ["close", "converse"]

# While a run is stopped, sessions and then the subject are closed, and results are committed in between.
_HASTY_CLOSE_SECONDS: Final = limits.SHUTDOWN_SECONDS / 4


class _Closable(Protocol):
    async def close(self) -> None: ...


@dataclass(slots=True)
class _Progress:
    """How far a conversation came; kept when it breaks off."""

    utterance: str = ""
    answered: float = 0.0
    generated: GeneratedData | None = None
    results: list[TestResult] = field(default_factory=list)


async def converse(item: WorkItem, subject: Subject, *, seconds: float, scorers: Mapping[str, Scorer]) -> CaseResult:
    """Asks and judges one case and never raises, except when it is cancelled.

    A case that takes longer than `seconds`, and a subject that raises anything, make
    the case ERROR; what earlier turns gave is kept.
    """
    progress = _Progress(utterance=item.case.turns[0].utterance if item.case.turns else "")
    started = time.time()
    error = await _broken_off(item.case, subject, progress, seconds=seconds, scorers=scorers)
    if _is_cancelled():
        # The agent swallowed the cancellation; what it gave after that is no answer.
        raise asyncio.CancelledError
    return CaseResult(
        item.case.number,
        item.iteration,
        progress.utterance,
        case_verdict(progress.results) if error is None else Verdict.ERROR,
        started,
        time.time(),
        tuple(progress.results),
        progress.generated,
        error,
    )


async def close(closable: _Closable) -> None:
    """Closes a session or subject; what it raises, or that it takes longer than the limit, spoils no result."""
    with suppress(Exception, SystemExit, asyncio.CancelledError):
        async with asyncio.timeout(_HASTY_CLOSE_SECONDS if _is_cancelled() else limits.CLOSE_SECONDS):
            await closable.close()


async def _broken_off(
    case: Case, subject: Subject, progress: _Progress, *, seconds: float, scorers: Mapping[str, Scorer]
) -> str | None:
    deadline, begun = asyncio.timeout(seconds), time.monotonic()
    session: Session | None = None
    try:
        async with deadline:
            session = await subject.open(case)
            for turn in case.turns:
                await _take_turn(turn, case, session, progress, scorers)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a broken subject spoils one case, not the run
        return _too_late(seconds) if deadline.expired() else reason(error)
    except asyncio.CancelledError:
        return "the agent cancelled itself"
    finally:
        if session is not None:
            await close(session)
    # An agent may swallow the cancellation, or block the loop so that none can reach it.
    late = deadline.expired() or progress.answered - begun > seconds
    return _too_late(seconds) if late else None


def _too_late(seconds: float) -> str:
    return f"no answer within {seconds:g} s"


async def _take_turn(
    turn: Turn, case: Case, session: Session, progress: _Progress, scorers: Mapping[str, Scorer]
) -> None:
    progress.utterance, progress.generated = turn.utterance, None
    asked = time.perf_counter()
    answer = await session.ask(turn.utterance)
    elapsed = round((time.perf_counter() - asked) * 1000, 1)
    progress.answered = time.monotonic()
    progress.generated = generated_data(answer, measured_ms=elapsed)
    exchange = Exchange(case, turn.utterance, progress.generated)
    for expectation in turn.expectations:
        result = score(expectation, exchange, scorers=scorers)
        progress.results.append(result if isinstance(result, TestResult) else await result)


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
