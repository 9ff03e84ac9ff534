"""The workers of a process elsewhere: cases are sent to them, and those of a worker that died are asked again."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from evalmeta import limits
from evalmeta.engine.remote.messages import Begin, News, Orders, PaceEvent, pack, read_news
from evalmeta.errors import ClusterError, SubjectBusy
from evalmeta.model.fingerprints import checks_of
from evalmeta.model.run import CaseResult, ErrorOrigin, Verdict

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from evalmeta.engine.pacer import Pacer
    from evalmeta.model.evaluation import WorkItem
    from evalmeta.model.run_options import RunOptions

# How long a worker waits for news before it says that there are none.
_NEWS_SECONDS: Final = 1.0
# The pause before a worker that was lost is greeted again.
_PAUSE_SECONDS: Final = 0.2
# After this many deaths, a case is asked alone: if the worker dies again, it is the case that ends it.
_SUSPECT_DEATHS: Final = limits.MAX_WORKER_DEATHS - 2


class WorkerLost(Exception):
    """A worker has died, or cannot be reached; it may come back."""


class Worker(Protocol):
    """A `RemoteWorker` in another process; its methods raise WorkerLost, or ClusterError if it can never be used."""

    @property
    def name(self) -> str:
        """Return what people call it: the machine."""
        ...

    async def greet(self, session: str) -> None:
        """Begin a session, and wait until the worker is there."""
        ...

    async def put(self, session: str, orders: bytes) -> None:
        """Give it orders."""
        ...

    async def take(self, session: str, seconds: float) -> bytes:
        """Return its news."""
        ...


@dataclass(slots=True, eq=False)
class _Asked:
    """A case under way, and the number of workers that died while it was."""

    run: RemoteRun
    item: WorkItem
    result: asyncio.Future[CaseResult]
    begun: float
    deaths: int = 0

    @property
    def is_suspect(self) -> bool:
        """Whether it may have ended so many workers that it must be asked alone, because others die with it."""
        return self.deaths >= _SUSPECT_DEATHS


class Crew:
    """Workers that the runs of a process share; each case is sent to the one with the fewest cases under way."""

    def __init__(self, workers: Sequence[Worker]) -> None:
        self._links = [_Link(worker, self) for worker in workers]
        self._tasks: list[asyncio.Task[None]] = []
        self._unsent: deque[_Asked] = deque()
        self._suspects: deque[_Asked] = deque()
        self._last_run = 0
        self._last_key = 0
        self._is_sending = False
        self.runs: dict[int, RemoteRun] = {}

    async def open(self) -> None:
        """Greet the workers, and wait for the first; raise ClusterError if none can be used in time."""
        ready = asyncio.get_running_loop().create_future()
        self._tasks = [asyncio.ensure_future(link.keep()) for link in self._links]
        self._tasks.append(asyncio.ensure_future(self._watch(ready)))
        try:
            await ready
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the sessions with the workers."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=limits.SHUTDOWN_SECONDS)

    @asynccontextmanager
    async def run(self, recipe: bytes, options: RunOptions, pacer: Pacer) -> AsyncIterator[RemoteRun]:
        """Begin a run in all workers for the block; `pacer` admits its requests."""
        self._last_run += 1
        begun = Begin(self._last_run, recipe, options.case_timeout, options.retries)
        run = self.runs[begun.run] = RemoteRun(begun, pacer, self)
        for link in self._links:
            link.begin(run)
        try:
            yield run
        finally:
            del self.runs[begun.run]
            self._unsent = deque(asked for asked in self._unsent if asked.run is not run)
            self._suspects = deque(asked for asked in self._suspects if asked.run is not run)
            await asyncio.gather(*(link.end(run) for link in self._links))

    def send(self, asked: _Asked) -> None:
        """Send a case soon, together with others that are asked at the same time."""
        (self._suspects if asked.is_suspect else self._unsent).append(asked)
        if not self._is_sending:
            self._is_sending = True
            asyncio.get_running_loop().call_soon(self.distribute)

    def distribute(self) -> None:
        """Send the cases that wait, if a worker is there."""
        self._is_sending = False
        ready = [link for link in self._links if link.is_ready and not link.has_suspect]
        if self._suspects and ready:
            # This worker gets no other case until it has none under way.
            chosen = min(ready, key=_cases_under_way)
            ready.remove(chosen)
            if not chosen.under_way:
                self._ask(chosen, self._suspects.popleft())
        while ready and self._unsent:
            self._ask(min(ready, key=_cases_under_way), self._unsent.popleft())

    def _ask(self, link: _Link, asked: _Asked) -> None:
        if not asked.result.done():
            self._last_key += 1
            link.ask(self._last_key, asked)

    def distribute_waiting(self) -> None:
        """Send cases that waited for a worker with no other case, or for the end of a case that is asked alone."""
        if self._suspects or self._unsent:
            self.distribute()

    def tell_pace(self, pacer: Pacer) -> None:
        """Tell all workers whether requests of a pacer's runs need slots, if that has changed."""
        runs = [run for run in self.runs.values() if run.pacer is pacer and run.is_free is not pacer.is_free]
        for run in runs:
            run.is_free = pacer.is_free
            for link in self._links:
                link.tell_pace(run)

    async def _watch(self, ready: asyncio.Future[None]) -> None:
        """Say when the first worker is there; end all runs when there has been none for too long."""
        since = time.monotonic()
        while True:
            if any(link.is_ready for link in self._links):
                since = time.monotonic()
                if not ready.done():
                    ready.set_result(None)
            elif reason := self._why_lost(time.monotonic() - since):
                if not ready.done():
                    ready.set_exception(reason)
                    return
                for run in self.runs.values():
                    run.fail(reason)
            await asyncio.sleep(_PAUSE_SECONDS / 4)

    def _why_lost(self, seconds: float) -> ClusterError | None:
        refusals = [link.refusal for link in self._links if link.refusal is not None]
        if len(refusals) == len(self._links):
            return refusals[0]
        if seconds < limits.WORKERS_LOST_SECONDS:
            return None
        why = f": {refusals[0]}" if refusals else ""
        return ClusterError(
            f"none of {len(self._links)} workers could be used for {limits.WORKERS_LOST_SECONDS:g} s{why}",
            actions=("See `ray status`: the cluster may have no free CPUs, or its nodes are gone.",),
        )


class RemoteRun:
    """One run whose cases workers ask."""

    def __init__(self, begun: Begin, pacer: Pacer, crew: Crew) -> None:
        self.begun = begun
        self.pacer = pacer
        self.is_free = pacer.is_free
        self._crew = crew
        self._failure: Exception | None = None
        self._waiting: set[_Asked] = set()

    async def ask(self, item: WorkItem) -> CaseResult:
        """Return the result of a case; raise ClusterError if no worker can ask it, and what broke the run."""
        if self._failure is not None:
            raise self._failure
        loop = asyncio.get_running_loop()
        asked = _Asked(self, item, loop.create_future(), time.time())
        self._waiting.add(asked)
        self._crew.send(asked)
        try:
            return await asked.result
        finally:
            self._waiting.discard(asked)

    def fail(self, reason: Exception) -> None:
        """Let all questions of the run raise an error."""
        self._failure = self._failure or reason
        for asked in self._waiting:
            if not asked.result.done():
                asked.result.set_exception(reason)

    def ask_again(self, asked: _Asked) -> None:
        """Ask a case again whose worker has died; when many have, it is likely that the case kills them."""
        asked.deaths += 1
        if asked.deaths < limits.MAX_WORKER_DEATHS:
            self._crew.send(asked)
        elif not asked.result.done():
            asked.result.set_result(_lethal(asked))


def _lethal(asked: _Asked) -> CaseResult:
    case, number = asked.item.case, asked.deaths
    utterance = case.turns[-1].utterance if case.turns else ""
    return CaseResult(
        case.number, asked.item.iteration, utterance, Verdict.ERROR, asked.begun, time.time(), label=case.label,
        error=f"{number} workers died while this case was asked; the agent may end its process",
        checks=checks_of(case), asked_again=number - 1, origin=ErrorOrigin.CRASH,
    )  # fmt: skip


def _cases_under_way(link: _Link) -> int:
    return len(link.under_way)


@dataclass(slots=True)
class _Requests:
    """The requests of one run in a worker that the pacer has admitted, and those that wait for it."""

    admitted: int = 0
    waiting: set[asyncio.Task[None]] = field(default_factory=set)


class _Link:
    """The session with one worker."""

    def __init__(self, worker: Worker, crew: Crew) -> None:
        self._worker = worker
        self._crew = crew
        self._requests: dict[RemoteRun, _Requests] = {}
        self._clear_orders()
        self._has_orders = asyncio.Event()
        self._followed = asyncio.Event()
        self.under_way: dict[int, _Asked] = {}
        self.is_ready = False
        self.refusal: ClusterError | None = None

    @property
    def has_suspect(self) -> bool:
        """Whether the worker has a case that is asked alone."""
        return len(self.under_way) == 1 and next(iter(self.under_way.values())).is_suspect

    async def keep(self) -> None:
        """Keep a session with the worker, and a new one whenever it was lost, until this is cancelled."""
        try:
            while self.refusal is None:
                try:
                    await self._hold_session(uuid.uuid4().hex)
                except* WorkerLost:
                    self._lose()
                except* ClusterError as refused:
                    self.refusal = next(error for error in refused.exceptions if isinstance(error, ClusterError))
                    self._lose()
                await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            self._lose()

    async def _hold_session(self, session: str) -> None:
        async with asyncio.TaskGroup() as group:
            await self._greet(session)
            group.create_task(self._send_all(session))
            group.create_task(self._take_all(session))

    async def _greet(self, session: str) -> None:
        await self._worker.greet(session)
        self._clear_orders()
        self.is_ready = True
        for run in self._crew.runs.values():
            self.begin(run)
        self._crew.distribute()

    async def _send_all(self, session: str) -> None:
        while True:
            await self._has_orders.wait()
            orders = Orders(self._begun, self._cases, self._admitted, self._free, self._over)
            self._clear_orders()
            self._has_orders.clear()
            followed, self._followed = self._followed, asyncio.Event()
            await self._worker.put(session, pack(orders))
            followed.set()

    async def _take_all(self, session: str) -> None:
        while True:
            news = await self._worker.take(session, _NEWS_SECONDS)
            self._read(read_news(news))

    def _clear_orders(self) -> None:
        self._begun: list[Begin] = []
        self._cases: list[tuple[int, int, WorkItem]] = []
        self._admitted: list[int] = []
        self._free: list[tuple[int, bool]] = []
        self._over: list[int] = []

    def begin(self, run: RemoteRun) -> None:
        """Begin a run in the worker, if it is there."""
        if self.is_ready:
            self._requests[run] = _Requests()
            self._begun.append(run.begun)
            self.tell_pace(run)

    async def end(self, run: RemoteRun) -> None:
        """End a run in the worker, and wait a moment until it has closed its agent."""
        if self.is_ready and run in self._requests:
            self._release(run)
            self.under_way = {key: asked for key, asked in self.under_way.items() if asked.run is not run}
            self._over.append(run.begun.run)
            self._has_orders.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(limits.SHUTDOWN_SECONDS):
                    await self._followed.wait()

    def ask(self, key: int, asked: _Asked) -> None:
        """Send a case."""
        self.under_way[key] = asked
        self._cases.append((key, asked.run.begun.run, asked.item))
        self._has_orders.set()

    def tell_pace(self, run: RemoteRun) -> None:
        """Tell the worker whether requests of a run need slots."""
        if self.is_ready:
            self._free.append((run.begun.run, run.pacer.is_free))
            self._has_orders.set()

    def _read(self, news: News) -> None:
        for key, result in news.results:
            asked = self.under_way.pop(key, None)
            if asked is not None and not asked.result.done():
                asked.result.set_result(result._replace(asked_again=asked.deaths) if asked.deaths else result)
        self._crew.distribute_waiting()
        for event in news.pace:
            if run := self._crew.runs.get(event.run):
                self._follow_pace(run, event)
        for number, reason in news.failures:
            if run := self._crew.runs.get(number):
                run.fail(ClusterError(f"the worker on {self._worker.name} cannot run the cases: {reason}"))

    def _follow_pace(self, run: RemoteRun, event: PaceEvent) -> None:
        if event.kind == "enter":
            waiting = self._requests[run].waiting
            task = asyncio.ensure_future(self._admit(run, event))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
        elif event.kind == "leave":
            self._requests[run].admitted -= 1
            run.pacer.leave()
        elif event.kind == "answer":
            run.pacer.speed_up()
        else:
            run.pacer.back_off(SubjectBusy("", after=event.after), attempt=event.attempt)
        self._crew.tell_pace(run.pacer)

    async def _admit(self, run: RemoteRun, event: PaceEvent) -> None:
        try:
            await run.pacer.enter(is_utterance=event.is_utterance)
        except Exception as error:  # noqa: BLE001 - the request would wait for ever
            run.fail(error)
            return
        self._requests[run].admitted += 1
        self._admitted.append(event.slot)
        self._has_orders.set()

    def _release(self, run: RemoteRun) -> None:
        """Give back the slots of a run's requests."""
        requests = self._requests.pop(run)
        for task in requests.waiting:
            task.cancel()
        for _ in range(requests.admitted):
            run.pacer.leave()

    def _lose(self) -> None:
        """Ask the cases again that were under way in a worker that was lost."""
        self.is_ready = False
        for run in [*self._requests]:
            self._release(run)
        lost, self.under_way = [*self.under_way.values()], {}
        for asked in lost:
            asked.run.ask_again(asked)
