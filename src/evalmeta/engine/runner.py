"""Run an evaluation: a fixed number of workers runs the cases, and results are committed in batches, then reported."""

from __future__ import annotations

import asyncio
import contextvars
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.engine.case_run import CasePolicy, UnscoredCase, ask_case, close, rescore_case
from evalmeta.engine.deadline import TimeLimit
from evalmeta.engine.event_loop import DELAYS
from evalmeta.engine.interfaces import PreparedSubject
from evalmeta.engine.process import exits_refused, rare_collections
from evalmeta.engine.scheduler import Places, Pool
from evalmeta.engine.scorers import SCORERS
from evalmeta.engine.spending import CostLimit, Spending
from evalmeta.errors import StoreLocked, SubjectBusy, SubjectUnreachable, TooManyErrors
from evalmeta.model.evaluation import Case, Evaluation, Quarantines, WorkItem, today, work_items
from evalmeta.model.run import CaseResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from evalmeta.engine.interfaces import Journal, Scorer, Subject
    from evalmeta.model.run_options import RunOptions

    OnResults = Callable[[Sequence[CaseResult]], None]
    _Work = Callable[[WorkItem], Awaitable[CaseResult | UnscoredCase]]

# The pause before another attempt to commit while another program holds the database.
_LOCKED_SECONDS: Final = 0.05
# Before Python 3.12, `Verdict.ERROR` calls a function.
_ERROR: Final = Verdict.ERROR


async def execute(  # noqa: PLR0913 - as documented
    evaluation: Evaluation,
    subject: Subject,
    journal: Journal,
    *,
    options: RunOptions,
    on_results: OnResults | None = None,
    scorers: Mapping[str, Scorer] = SCORERS,
    places: Places | None = None,
    spending: Spending | None = None,
) -> None:
    """Run every case that the journal does not hold yet, and close the subject.

    Errors of a subject or a scorer become results. A cancelled run commits its finished results, closes sessions and
    subject within `SHUTDOWN_SECONDS`, and raises CancelledError. `on_results` is called with results after the journal
    has committed them, in the order they finished. `places` is the run's part of the pool that it shares with other
    runs of the agent; None makes a pool for this run alone. `spending` has the prices of replies. TooManyErrors says
    that `options.max_errors` cases ended in errors, CostLimitReached that cases were left out because of its limit; an
    exception of the journal or of `on_results` stops the run too.
    """
    places = places or Places(Pool(options))
    policy = CasePolicy(scorers, TimeLimit(options.case_timeout), retries=options.retries, pacer=places.pacer)
    with exits_refused(), rare_collections():
        try:
            if isinstance(subject, PreparedSubject):
                # What does not answer now may answer the cases, which ask again.
                with suppress(SubjectBusy, SubjectUnreachable, TimeoutError):
                    async with asyncio.timeout(options.case_timeout):
                        await subject.prepare()
            ask = partial(ask_case, subject=subject, policy=policy)
            await _run(evaluation, ask, journal, options, on_results, places, spending)
        finally:
            await close(subject)


async def execute_elsewhere(
    evaluation: Evaluation,
    ask: Callable[[WorkItem], Awaitable[CaseResult]],
    journal: Journal,
    *,
    options: RunOptions,
    on_results: OnResults | None = None,
    places: Places | None = None,
    spending: Spending | None = None,
) -> None:
    """Run cases as `execute` does, where `ask` has them asked and judged by other processes."""
    with rare_collections():
        await _run(evaluation, ask, journal, options, on_results, places or Places(Pool(options)), spending)


async def rescore(  # noqa: PLR0913 - as `execute`
    evaluation: Evaluation,
    answers: Callable[[int, int], CaseResult | None],
    journal: Journal,
    *,
    options: RunOptions,
    on_results: OnResults | None = None,
    scorers: Mapping[str, Scorer] = SCORERS,
    places: Places | None = None,
    spending: Spending | None = None,
) -> None:
    """Score recorded answers again, as `execute` scores new ones, without calling an agent.

    `answers` returns the recorded result of an iteration and a case number; its times and latencies are kept.
    """

    async def work(item: WorkItem) -> CaseResult:
        recorded = answers(item.iteration, item.case.number)
        return await rescore_case(item, recorded, scorers, seconds=options.case_timeout)

    await _run(evaluation, work, journal, options, on_results, places or Places(Pool(options)), spending)


async def _run(
    evaluation: Evaluation,
    work: _Work,
    journal: Journal,
    options: RunOptions,
    on_results: OnResults | None,
    places: Places,
    spending: Spending | None,
) -> None:
    spending = spending or Spending()
    limit = spending.limit
    writer = _ResultWriter(journal, on_results, limit, max_errors=options.max_errors)
    items = work_items(evaluation, options, journal.finished())
    if limit is not None:
        items = limit.items(items)
    crew = _Crew(items, work, writer, places, evaluation, spending)
    places.request(max(1, options.concurrency), crew.start_worker, writer.fail)
    try:
        await asyncio.wait((crew.done, writer.stop), return_when=asyncio.FIRST_COMPLETED)
    finally:
        places.withdraw()
        try:
            await crew.stop()
        finally:
            await writer.close()
            writer.stop.cancel()
            if writer.failure is not None:
                raise writer.failure
    if limit is not None:
        limit.check()


class _Crew:
    """The workers of one run; each keeps its place in the pool until no case is left, and then all are `done`."""

    def __init__(
        self,
        items: Iterator[WorkItem],
        work: _Work,
        writer: _ResultWriter,
        places: Places,
        evaluation: Evaluation,
        spending: Spending,
    ) -> None:
        self._items = items
        self._work = work
        self._writer = writer
        self._places = places
        self._evaluation = evaluation
        self._quarantines = evaluation.quarantines or Quarantines(today())
        self._spending = spending
        self._yielding = _CooperativeYield()
        self._cases_begun = 0
        self._workers: set[asyncio.Task[None]] = set()
        self._unscored = asyncio.Semaphore(limits.MAX_UNSCORED_CASES)
        self._context = contextvars.copy_context()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def start_worker(self) -> None:
        """Start a worker, which has a place in the pool."""
        # Another run's worker may have left the place.
        worker = asyncio.get_running_loop().create_task(self._run_cases(), context=self._context.copy())
        self._workers.add(worker)
        worker.add_done_callback(self._end_worker)

    async def stop(self) -> None:
        """Cancel the workers that still run."""
        for worker in self._workers:
            worker.cancel()
        if self._workers:
            # Sessions may use half of the time to close; a worker that does not stop is abandoned.
            await asyncio.wait(self._workers, timeout=limits.SHUTDOWN_SECONDS / 2)

    async def _run_cases(self) -> None:
        try:
            for item in self._items:
                self._cases_begun = number = self._cases_begun + 1
                begun, delays = time.monotonic(), DELAYS.get()
                result = await self._work(item)
                if isinstance(result, UnscoredCase):
                    await self._finish_later(item.case, result)
                    continue
                if (priced := self._add(item.case, result)) is not None:
                    await priced
                # After a crash, no answer that took time is asked for again, except those that were under way.
                seconds = time.monotonic() - begun
                if seconds > limits.INSTANT_SECONDS and seconds - DELAYS.get() + delays > limits.INSTANT_SECONDS:
                    await self._writer.committed()
                # If another worker began a case meanwhile, this one has waited, and asks its next question at once.
                if number == self._cases_begun and self._yielding.is_due():
                    await self._yielding.wait()
                if self._writer.failure is not None:
                    return
        except Exception as error:  # noqa: BLE001 - `_run` raises it
            self._writer.fail(error)

    async def _finish_later(self, case: Case, unscored: UnscoredCase) -> None:
        """Let a case wait for its traces without a place; if very many wait, this one keeps its place."""
        await self._unscored.acquire()
        task = asyncio.get_running_loop().create_task(self._finish(case, unscored))
        self._workers.add(task)
        task.add_done_callback(self._end_finishing)

    async def _finish(self, case: Case, unscored: UnscoredCase) -> None:
        try:
            if (priced := self._add(case, await unscored.finish())) is not None:
                await priced
        except Exception as error:  # noqa: BLE001 - `_run` raises it
            self._writer.fail(error)

    def _end_finishing(self, task: asyncio.Task[None]) -> None:
        self._unscored.release()
        self._workers.discard(task)
        self._end_if_done()

    def _add(self, case: Case, result: CaseResult) -> Awaitable[None] | None:
        """Add a result to the journal; for one that may have a price, return what does so, to be awaited."""
        if result.spent or self._spending.limit is not None:
            return self._add_priced(case, result)
        self._writer.add(self._marked(case, result))
        return None

    async def _add_priced(self, case: Case, result: CaseResult) -> None:
        try:
            await self._spending.load_prices(result)
        finally:
            # A worker that is cancelled while it waits keeps the answer: it is paid.
            self._writer.add(self._marked(case, self._spending.priced(result)))

    def _marked(self, case: Case, result: CaseResult) -> CaseResult:
        """Return the result of a case with its tags, metadata and quarantine; a recorded result may have others."""
        if (tags := self._evaluation.tags_of(case)) or result.tags:
            result = result._replace(tags=tags)
        if case.metadata or result.metadata:
            result = result._replace(metadata=case.metadata or None)
        if case.quarantine is None and not self._quarantines.listed and result.quarantine is None:
            # The usual case costs next to nothing.
            return result
        utterances = (turn.utterance for turn in case.turns)
        quarantine = self._quarantines.find(case.quarantine, case.number, case.label, *utterances)
        return result._replace(quarantine=quarantine)

    def _end_worker(self, worker: asyncio.Task[None]) -> None:
        # A worker only ends when no case is left, or when the run stops.
        self._workers.discard(worker)
        self._places.withdraw()
        self._places.leave()
        self._end_if_done()

    def _end_if_done(self) -> None:
        if not self._workers and not self.done.done():
            self.done.set_result(None)


class _ResultWriter:
    """Commit results to the journal in batches, then report them; `stop` is done when there is a `failure`."""

    def __init__(
        self, journal: Journal, on_results: OnResults | None, limit: CostLimit | None, *, max_errors: int | None
    ) -> None:
        self._journal = journal
        self._keeps_nothing = getattr(journal, "keeps_nothing", False)
        self._limit = limit
        self._on_results = on_results
        self._max_errors = max_errors
        self._errors = 0
        self._is_broken = False
        self._batch: list[CaseResult] = []
        self._loop = asyncio.get_running_loop()
        self._committed: asyncio.Event | None = None
        self._locked_since: float | None = None
        self._not_before = 0.0
        self.failure: Exception | None = None
        self.stop: asyncio.Future[None] = self._loop.create_future()

    def add(self, result: CaseResult) -> None:
        """Add a result; commit a full batch at once, and others within `JOURNAL_SECONDS`."""
        if not self._batch:
            self._loop.call_later(limits.JOURNAL_SECONDS, self.commit)
        self._batch.append(result)
        if result.verdict is _ERROR and not result.is_quarantined:
            self._errors += 1
            if self._errors == self._max_errors:
                self.fail(TooManyErrors(f"stopped at error {self._errors} (max_errors)"))
        if len(self._batch) >= limits.JOURNAL_BATCH:
            self.commit()

    async def committed(self) -> None:
        """Wait until the added results are committed, or the run stops.

        Results that end together are committed together, and commits take at most a fifth of the time.
        """
        if not self._batch or self._is_broken or self._keeps_nothing:
            return
        if self._committed is None:
            self._committed = asyncio.Event()
            self._loop.call_later(max(0.0, self._not_before - time.monotonic()), self.commit)
        await self._committed.wait()

    def commit(self) -> None:
        """Commit and report the current batch; an exception stops the run."""
        batch = self._batch
        if not batch or self._is_broken:
            return
        self._batch, begun = [], time.monotonic()
        try:
            self._journal.append(batch)
            if self._limit is not None:
                self._limit.exchange()
            if self._on_results:
                self._on_results(batch)
        except StoreLocked as error:
            self._batch = batch
            self._retry(error)
            return
        except Exception as error:  # noqa: BLE001 - `_run` raises it
            self._break(error)
            return
        now = time.monotonic()
        self._locked_since, self._not_before = None, now + 4 * (now - begun)
        self._release()

    async def close(self) -> None:
        """Commit what is left; another program may hold the database for a while."""
        self.commit()
        while self._batch and not self._is_broken:
            await asyncio.sleep(_LOCKED_SECONDS)
            self.commit()

    def _retry(self, error: StoreLocked) -> None:
        now = time.monotonic()
        self._locked_since = self._locked_since or now
        if now - self._locked_since > limits.STORE_BUSY_SECONDS:
            self._break(error)
        else:
            self._loop.call_later(_LOCKED_SECONDS, self.commit)

    def _break(self, error: Exception) -> None:
        self._is_broken = True
        self.fail(error)
        self._release()

    def _release(self) -> None:
        if self._committed is not None:
            self._committed.set()
            self._committed = None

    def fail(self, error: Exception) -> None:
        """Stop the run with an error."""
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
