"""The runner: a fixed set of workers asks, one writer commits, and only then are others told."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.engine.conversation import close, converse
from evalmeta.engine.plan import plan
from evalmeta.engine.scorer import SCORERS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence

    from evalmeta.engine.journal import Journal
    from evalmeta.engine.plan import WorkItem
    from evalmeta.engine.scorer import Scorer
    from evalmeta.engine.subject import Subject
    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.run import CaseResult, RunOptions

__all__ = ["execute"]


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
        Exception: what the journal or `on_results` raised; it stops the run.
    """
    post = _Post(journal, on_results)
    try:
        items = plan(evaluation, options, journal.finished())
        await _run(post, _work_together(items, subject, post, options=options, scorers=scorers))
    finally:
        await close(subject)


class _Post:
    """Results on their way into the journal: handing one in never waits, so none is lost."""

    def __init__(self, journal: Journal, on_results: Callable[[Sequence[CaseResult]], None] | None) -> None:
        self._journal = journal
        self._on_results = on_results
        self._waiting: asyncio.Queue[CaseResult] = asyncio.Queue()

    async def room(self) -> None:
        """Waits until what is waiting has been committed, if that is a full batch."""
        while self._waiting.qsize() >= limits.JOURNAL_BATCH:
            await self._waiting.join()

    def hand_in(self, result: CaseResult) -> None:
        self._waiting.put_nowait(result)

    async def deliver(self) -> None:
        """Commits what is there, batch by batch, until it is cancelled."""
        while True:
            self._commit([await self._waiting.get()])

    def deliver_rest(self) -> None:
        while not self._waiting.empty():
            self._commit([])

    def _commit(self, batch: list[CaseResult]) -> None:
        while len(batch) < limits.JOURNAL_BATCH and not self._waiting.empty():
            batch.append(self._waiting.get_nowait())
        self._journal.append(batch)
        if self._on_results:
            self._on_results(batch)
        for _ in batch:
            self._waiting.task_done()


async def _run(post: _Post, work: Coroutine[None, None, None]) -> None:
    writer, workers = asyncio.create_task(post.deliver()), asyncio.create_task(work)
    try:
        await asyncio.wait({writer, workers}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        try:
            await _stop(workers, writer)
        finally:
            if not _failed(writer):
                post.deliver_rest()
    for task in (writer, workers):
        if not task.cancelled():
            task.result()


async def _work_together(
    items: Iterator[WorkItem], subject: Subject, post: _Post, *, options: RunOptions, scorers: Mapping[str, Scorer]
) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(max(1, options.concurrency)):
            group.create_task(_work(items, subject, post, seconds=options.case_timeout, scorers=scorers))


async def _work(
    items: Iterator[WorkItem], subject: Subject, post: _Post, *, seconds: float, scorers: Mapping[str, Scorer]
) -> None:
    await post.room()
    for item in items:
        post.hand_in(await converse(item, subject, seconds=seconds, scorers=scorers))
        await post.room()


async def _stop(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    # Half of the time is for sessions that are being closed; who does not stop is left behind.
    await asyncio.wait(tasks, timeout=limits.SHUTDOWN_SECONDS / 2)


def _failed(task: asyncio.Task[None]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is not None
