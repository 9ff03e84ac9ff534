"""Run an evaluation: a fixed number of workers runs the cases, and results are committed in batches, then reported."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.engine.case_run import CasePolicy, close, rescore_case, run_case
from evalmeta.engine.pacer import Pacer
from evalmeta.engine.plan import work_items
from evalmeta.engine.scorers.registry import SCORERS
from evalmeta.errors import TooManyErrors
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from evalmeta.engine.interfaces import Journal, Scorer, Subject
    from evalmeta.engine.plan import WorkItem
    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.run import CaseResult, RunOptions

    OnResults = Callable[[Sequence[CaseResult]], None]
    _Work = Callable[[WorkItem], Awaitable[CaseResult]]


async def execute(
    evaluation: Evaluation,
    subject: Subject,
    journal: Journal,
    *,
    options: RunOptions,
    on_results: OnResults | None = None,
    scorers: Mapping[str, Scorer] = SCORERS,
) -> None:
    """Run every case that the journal does not hold yet, and close the subject.

    Errors of a subject or a scorer become results. A cancelled run commits its finished results, closes sessions and
    subject within `SHUTDOWN_SECONDS`, and raises CancelledError. `on_results` is called with results after the journal
    has committed them, in the order they finished.

    Raises:
        TooManyErrors: `options.max_errors` cases ended in errors; the finished results are kept.
        Exception: an exception of the journal or of `on_results`; it stops the run.
    """
    pacer = Pacer(rate=options.rate_limit, concurrency=options.concurrency)
    policy = CasePolicy(scorers, seconds=options.case_timeout, retries=options.retries, pacer=pacer)
    try:
        await _run(evaluation, lambda item: run_case(item, subject, policy), journal, options, on_results)
    finally:
        await close(subject)


async def rescore(
    evaluation: Evaluation,
    answers: Callable[[int, int], CaseResult | None],
    journal: Journal,
    *,
    options: RunOptions,
    on_results: OnResults | None = None,
    scorers: Mapping[str, Scorer] = SCORERS,
) -> None:
    """Score recorded answers again, as `execute` scores new ones, without calling an agent.

    `answers` returns the recorded result of an iteration and a case number; its times and latencies are kept.
    """

    async def work(item: WorkItem) -> CaseResult:
        recorded = answers(item.iteration, item.case.number)
        return await rescore_case(item, recorded, scorers, seconds=options.case_timeout)

    await _run(evaluation, work, journal, options, on_results)


async def _run(
    evaluation: Evaluation, work: _Work, journal: Journal, options: RunOptions, on_results: OnResults | None
) -> None:
    writer = _ResultWriter(journal, on_results, max_errors=options.max_errors)
    items, yielding = work_items(evaluation, options, journal.finished()), _CooperativeYield()
    workers = [asyncio.ensure_future(_work(items, work, writer, yielding)) for _ in range(max(1, options.concurrency))]
    all_work = asyncio.gather(*workers)
    ends: list[asyncio.Future[list[None]] | asyncio.Future[None]] = [all_work, writer.stop]
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        try:
            await _stop(all_work, workers)
        finally:
            writer.commit()
            writer.stop.cancel()
            if writer.failure is not None:
                raise writer.failure
    all_work.result()


async def _work(items: Iterator[WorkItem], work: _Work, writer: _ResultWriter, yielding: _CooperativeYield) -> None:
    for item in items:
        writer.add(await work(item))
        if yielding.is_due():
            await yielding.wait()
        if writer.failure is not None:
            return


async def _stop(all_work: asyncio.Future[list[None]], workers: Sequence[asyncio.Future[None]]) -> None:
    """Cancel the workers that still run: an exception of one worker does not cancel the others."""
    busy = [worker for worker in workers if not worker.done()]
    if not busy:
        return
    # Retrieve the exception, because asyncio would log it as never retrieved.
    all_work.add_done_callback(lambda done: done.cancelled() or done.exception())
    for worker in busy:
        worker.cancel()
    # Sessions may use half of the time to close; a worker that does not stop is abandoned.
    await asyncio.wait(busy, timeout=limits.SHUTDOWN_SECONDS / 2)


class _ResultWriter:
    """Commit results to the journal in batches, then report them; `stop` is done when there is a `failure`."""

    def __init__(self, journal: Journal, on_results: OnResults | None, *, max_errors: int | None) -> None:
        self._journal = journal
        self._on_results = on_results
        self._max_errors = max_errors
        self._errors = 0
        self._batch: list[CaseResult] = []
        self._loop = asyncio.get_running_loop()
        self.failure: Exception | None = None
        self.stop: asyncio.Future[None] = self._loop.create_future()

    def add(self, result: CaseResult) -> None:
        """Add a result; commit a full batch at once, and others within `JOURNAL_SECONDS`."""
        if not self._batch:
            self._loop.call_later(limits.JOURNAL_SECONDS, self.commit)
        self._batch.append(result)
        if result.verdict is Verdict.ERROR:
            self._errors += 1
            if self._errors == self._max_errors:
                self._fail(TooManyErrors(f"stopped at error {self._errors}, as max_errors says"))
        if len(self._batch) >= limits.JOURNAL_BATCH:
            self.commit()

    def commit(self) -> None:
        """Commit and report the current batch; an exception stops the run."""
        batch = self._batch
        if not batch or not (self.failure is None or isinstance(self.failure, TooManyErrors)):
            return
        self._batch = []
        try:
            self._journal.append(batch)
            if self._on_results:
                self._on_results(batch)
        except Exception as error:  # noqa: BLE001 - `_run` raises it
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self.failure = error
        if not self.stop.done():
            self.stop.set_result(None)


class _CooperativeYield:
    """Yield to the event loop when agents answer without waiting, so that Ctrl-C is handled."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._is_scheduled = False

    def is_due(self) -> bool:
        """Return whether the event loop was blocked for `TURN_SECONDS`."""
        return time.monotonic() - self._begun >= limits.TURN_SECONDS

    async def wait(self) -> None:
        """Let the event loop run once."""

        def restart() -> None:
            self._begun, self._is_scheduled = time.monotonic(), False

        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(restart)
        await asyncio.sleep(0)
