"""The engine in a worker process: it asks and judges the cases that it receives, and reports their results."""

from __future__ import annotations

import asyncio
import pickle
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from evalmeta import limits
from evalmeta.engine.case_run import CasePolicy, close, run_case
from evalmeta.engine.deadline import TimeLimit
from evalmeta.engine.event_loop import Threads
from evalmeta.engine.pacer import Pacer
from evalmeta.engine.project_code import functions_context
from evalmeta.engine.remote.messages import News, PaceEvent, pack, read_orders
from evalmeta.errors import EvalmetaError
from evalmeta.model.redaction import error_text

if TYPE_CHECKING:
    from contextvars import Context
    from pathlib import Path

    from evalmeta.engine.interfaces import Subject
    from evalmeta.engine.remote.messages import Begin, Orders, Recipe
    from evalmeta.errors import SubjectBusy
    from evalmeta.model.evaluation import WorkItem
    from evalmeta.model.run import CaseResult


class RemoteWorker:
    """Runs cases of several runs at the same time, whose project is in `root`.

    One driver uses it at a time, in a session. A new session forgets all that the one before has begun.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._session = ""
        self._runs: dict[int, _Run] = {}
        self._outbox = _Outbox()

    async def greet(self, session: str) -> None:
        """Begin a session."""
        await self._end_all()
        self._session, self._outbox = session, _Outbox()

    async def put(self, session: str, orders: bytes) -> None:
        """Follow orders; those of an earlier session are ignored."""
        if session == self._session:
            await self._follow(read_orders(orders))

    async def take(self, session: str, seconds: float) -> bytes:
        """Return what happened since the last call, which may be nothing within some seconds."""
        return pack(await self._outbox.news(seconds) if session == self._session else News())

    async def _follow(self, orders: Orders) -> None:
        for begun in orders.begun:
            self._begin(begun)
        for number, is_free in orders.free:
            if number in self._runs:
                self._runs[number].pacer.is_free = is_free
        for slot in orders.admitted:
            self._outbox.admit(slot)
        for key, number, item in orders.cases:
            if number in self._runs:
                self._runs[number].start(key, item)
        for number in orders.ended:
            if run := self._runs.pop(number, None):
                await run.stop()

    def _begin(self, begun: Begin) -> None:
        threads = Threads()
        context = functions_context(self._root, threads)
        try:
            recipe = cast("Recipe", pickle.loads(begun.recipe))  # noqa: S301 - of the process that started this one
            subject, scorers = context.run(recipe.bind, self._root)
        except ModuleNotFoundError as error:
            self._outbox.fail(begun.run, f"the module {error.name!r} is not installed there")
        except Exception as error:  # noqa: BLE001 - the run's own process reports it
            text = str(error) if isinstance(error, EvalmetaError) else error_text(error)
            self._outbox.fail(begun.run, text)
        else:
            pacer = _RemotePacer(begun.run, self._outbox)
            policy = CasePolicy(scorers, TimeLimit(begun.seconds), retries=begun.retries, pacer=pacer)
            self._runs[begun.run] = _Run(subject, policy, pacer, self._outbox, context, threads)

    async def _end_all(self) -> None:
        runs, self._runs = [*self._runs.values()], {}
        for run in runs:
            await run.stop()


class _Outbox:
    """What a worker has to report, and the requests that wait for slots."""

    def __init__(self) -> None:
        self._results: list[tuple[int, CaseResult]] = []
        self._pace: list[PaceEvent] = []
        self._failures: list[tuple[int, str]] = []
        self._is_filled = asyncio.Event()
        self._slots: dict[int, asyncio.Future[None]] = {}
        self._last_slot = 0

    async def news(self, seconds: float) -> News:
        """Return what was not reported yet, and wait some seconds for the first of it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_filled.wait()
        news = News(self._results, self._pace, self._failures)
        self._results, self._pace, self._failures = [], [], []
        self._is_filled.clear()
        return news

    def add(self, key: int, result: CaseResult) -> None:
        self._results.append((key, result))
        self._is_filled.set()

    def note(self, event: PaceEvent) -> None:
        self._pace.append(event)
        self._is_filled.set()

    def fail(self, run: int, reason: str) -> None:
        self._failures.append((run, reason))
        self._is_filled.set()

    async def slot(self, run: int, *, is_utterance: bool) -> None:
        """Wait until the driver admits a request; only the end of its run cancels this, after which slots are free."""
        self._last_slot = slot = self._last_slot + 1
        self._slots[slot] = admitted = asyncio.get_running_loop().create_future()
        self.note(PaceEvent(run, "enter", slot, is_utterance))
        try:
            await admitted
        finally:
            self._slots.pop(slot, None)

    def admit(self, slot: int) -> None:
        admitted = self._slots.get(slot)
        if admitted is not None and not admitted.done():
            admitted.set_result(None)


class _RemotePacer(Pacer):
    """The pacer of a run in a worker: the driver's pacer admits its requests, unless nothing is limited."""

    def __init__(self, run: int, outbox: _Outbox) -> None:
        super().__init__()
        self._run = run
        self._outbox = outbox

    async def enter(self, *, is_utterance: bool = True) -> None:
        """Wait until the driver admits a request."""
        await self._outbox.slot(self._run, is_utterance=is_utterance)

    def leave(self) -> None:
        """Report that a request has ended."""
        self._outbox.note(PaceEvent(self._run, "leave"))

    def speed_up(self) -> None:
        """Report an answer."""
        self._outbox.note(PaceEvent(self._run, "answer"))

    def back_off(self, busy: SubjectBusy, *, attempt: int) -> None:
        """Report that the agent is busy; further requests wait until the driver admits them."""
        self.is_free = False
        self._outbox.note(PaceEvent(self._run, "busy", attempt=attempt, after=busy.after))


@dataclass(slots=True)
class _Run:
    """A run whose cases this worker asks."""

    subject: Subject
    policy: CasePolicy
    pacer: Pacer
    outbox: _Outbox
    context: Context
    threads: Threads
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def start(self, key: int, item: WorkItem) -> None:
        """Ask a case, whose result will be reported with this key."""
        task = asyncio.get_running_loop().create_task(self._ask(key, item), context=self.context.copy())
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def stop(self) -> None:
        """Cancel the cases under way, and close the agent."""
        for task in self.tasks:
            task.cancel()
        if self.tasks:
            # An agent that does not stop is abandoned.
            await asyncio.wait(self.tasks, timeout=limits.SHUTDOWN_SECONDS / 2)
        await close(self.subject)
        self.threads.close()

    async def _ask(self, key: int, item: WorkItem) -> None:
        self.outbox.add(key, await run_case(item, self.subject, self.policy))
