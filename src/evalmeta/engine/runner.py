"""The runner: a fixed set of workers asks or judges; results are committed in batches, then others are told."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.engine.case_run import Terms, close, converse, judge_again, plan
from evalmeta.engine.retry import Pacer
from evalmeta.engine.scorers.registry import SCORERS
from evalmeta.errors import TooManyErrors
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from evalmeta.engine.case_run import WorkItem
    from evalmeta.engine.journal import Journal
    from evalmeta.engine.scorer import Scorer
    from evalmeta.engine.subject import Subject
    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.run import CaseResult, RunOptions

    Answers = Callable[[int, int], CaseResult | None]
    _Work = Callable[[WorkItem], Awaitable[CaseResult]]


async def execute(
    evaluation: Evaluation,
    subject: Subject,
    journal: Journal,
    *,
    options: RunOptions,
    on_results: Callable[[Sequence[CaseResult]], None] | None = None,
    scorers: Mapping[str, Scorer] = SCORERS,
) -> None:
    """Asks every case the journal does not hold yet and keeps each result.

    `on_results` is told about results after the journal has committed them, in the
    order they were finished. What goes wrong with a subject or a scorer becomes a
    result. A cancelled run commits what is finished, closes sessions and subject
    within `SHUTDOWN_SECONDS` and raises CancelledError. The subject is closed in any case.

    Raises:
        TooManyErrors: as many cases as the options allow ended in errors; what is finished is kept.
        Exception: what the journal or `on_results` raised; it stops the run.
    """
    pacer = Pacer(rate=options.rate_limit, concurrency=options.concurrency)
    terms = Terms(scorers, seconds=options.case_timeout, retries=options.retries, pacer=pacer)
    try:
        await _carry_out(evaluation, lambda item: converse(item, subject, terms), journal, options, on_results)
    finally:
        await close(subject)


async def rescore(
    evaluation: Evaluation,
    answers: Answers,
    journal: Journal,
    *,
    options: RunOptions,
    on_results: Callable[[Sequence[CaseResult]], None] | None = None,
    scorers: Mapping[str, Scorer] = SCORERS,
) -> None:
    """Judges recorded answers again, as `execute` judges new ones, and asks no agent.

    `answers` gives what an earlier run has for an iteration and a case number, None
    for nothing; its times and latencies are kept.

    Raises:
        Exception: what the journal or `on_results` raised; it stops the run.
    """

    async def judge(item: WorkItem) -> CaseResult:
        return await judge_again(item, answers(item.iteration, item.case.number), scorers, seconds=options.case_timeout)

    await _carry_out(evaluation, judge, journal, options, on_results)


async def _carry_out(
    evaluation: Evaluation,
    work: _Work,
    journal: Journal,
    options: RunOptions,
    on_results: Callable[[Sequence[CaseResult]], None] | None,
) -> None:
    post = _Post(journal, on_results, max_errors=options.max_errors)
    items = plan(evaluation, options, journal.finished())
    turns = _Turns()
    workers = [_work(items, work, post, turns) for _ in range(max(1, options.concurrency))]
    await _run(post, [asyncio.ensure_future(worker) for worker in workers])


class _Post:
    """Results on their way into the journal; `failure` is what stops the run, and ends `stop`."""

    def __init__(
        self, journal: Journal, on_results: Callable[[Sequence[CaseResult]], None] | None, *, max_errors: int | None
    ) -> None:
        self._journal = journal
        self._on_results = on_results
        self._max_errors = max_errors
        self._errors = 0
        self._waiting: list[CaseResult] = []
        self._loop = asyncio.get_running_loop()
        self.failure: Exception | None = None
        self.stop: asyncio.Future[None] = self._loop.create_future()

    def hand_in(self, result: CaseResult) -> None:
        """Takes a result and commits a full batch; what is no full batch is committed within `JOURNAL_SECONDS`."""
        if not self._waiting:
            self._loop.call_later(limits.JOURNAL_SECONDS, self.commit)
        self._waiting.append(result)
        if result.verdict is Verdict.ERROR:
            self._count_error()
        if len(self._waiting) >= limits.JOURNAL_BATCH:
            self.commit()

    def commit(self) -> None:
        """Commits what waits, and tells of it; the run fails when that fails."""
        batch = self._waiting
        if not batch or not (self.failure is None or isinstance(self.failure, TooManyErrors)):
            return
        self._waiting = []
        try:
            self._journal.append(batch)
            if self._on_results:
                self._on_results(batch)
        except Exception as error:  # noqa: BLE001 - whoever runs the cases raises it
            self._fail(error)

    def _count_error(self) -> None:
        self._errors += 1
        if self._errors == self._max_errors:
            self._fail(TooManyErrors(f"stopped at error {self._errors}, as max_errors says"))

    def _fail(self, error: Exception) -> None:
        self.failure = error
        if not self.stop.done():
            self.stop.set_result(None)


class _Turns:
    """Lets others have their turn, Ctrl-C too, while agents answer at once: then no worker waits for anything."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._is_over = False

    def are_due(self) -> bool:
        """Tells whether the event loop has not come round for `TURN_SECONDS`."""
        return time.monotonic() - self._begun >= limits.TURN_SECONDS

    async def share(self) -> None:
        """Gives way."""
        if not self._is_over:
            self._is_over = True
            asyncio.get_running_loop().call_soon(self._begin)
        await asyncio.sleep(0)

    def _begin(self) -> None:
        self._begun, self._is_over = time.monotonic(), False


async def _run(post: _Post, workers: list[asyncio.Future[None]]) -> None:
    work = asyncio.gather(*workers)
    ends: list[asyncio.Future[list[None]] | asyncio.Future[None]] = [work, post.stop]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        try:
            await _stop(work, workers)
        finally:
            post.commit()
            post.stop.cancel()
            if post.failure is not None:
                raise post.failure
    work.result()


async def _work(items: Iterator[WorkItem], work: _Work, post: _Post, turns: _Turns) -> None:
    for item in items:
        post.hand_in(await work(item))
        if turns.are_due():
            await turns.share()
        if post.failure is not None:
            return


async def _stop(work: asyncio.Future[list[None]], workers: list[asyncio.Future[None]]) -> None:
    # Whoever raises ends the work as a whole, and the others do not notice.
    busy = [worker for worker in workers if not worker.done()]
    if not busy:
        return
    # Its end was wanted: nobody asks how it came about.
    work.add_done_callback(lambda done: done.cancelled() or done.exception())
    for worker in busy:
        worker.cancel()
    # Half of the time is for sessions that are being closed; who does not stop is left behind.
    await asyncio.wait(busy, timeout=limits.SHUTDOWN_SECONDS / 2)
