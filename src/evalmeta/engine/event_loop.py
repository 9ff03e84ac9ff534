"""An event loop, and threads for calls that block, which end when their work ends, whatever agents leave behind."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Final, ParamSpec, TypeAlias, TypeVar, cast

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


_P = ParamSpec("_P")
_T = TypeVar("_T")
# What a call returned, what it raised, and its seconds.
_Outcome: TypeAlias = "tuple[object, BaseException | None, float]"
_Done: TypeAlias = "asyncio.Future[_Outcome]"

# Calls are quick after so many in a row that took less time than waking two threads.
_QUICK_CALLS: Final = 32
_QUICK_SECONDS: Final = 0.000_2
# How long calls wait for one that is not quick after all.
_LOOK_SECONDS: Final = 0.001


class EventLoop:
    """An event loop that runs one coroutine after the other; tasks rest in between, until it is closed."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()
        self._loop.set_default_executor(_Threads())

    def run(self, work: Coroutine[object, None, _T]) -> _T:
        """Run a coroutine as `asyncio.run` does; Ctrl-C cancels it and raises KeyboardInterrupt."""
        results: list[_T] = []
        has_begun = False

        async def keep() -> None:
            nonlocal has_begun
            has_begun = True
            results.append(await work)

        task = self._loop.create_task(keep())
        try:
            while not task.done():
                self._run_until_exit(task)
        finally:
            # After Ctrl-C, the work may wait for something. It must end in its own task, which `close` waits for: from
            # outside, its blocks would be left in another context.
            task.cancel()
            if not has_begun:
                work.close()
        # Not the result of the task: asyncio formats its task, and a representation of many results takes long.
        return results[0]

    def _run_until_exit(self, task: asyncio.Task[None]) -> None:
        """Run a task to its end, or until another one calls `sys.exit`, which is an error of what awaits it."""

        async def wait() -> None:
            await task

        try:
            self._runner.run(wait())
        except SystemExit:
            if task.done():
                raise

    def close(self) -> None:
        """Cancel all tasks, and wait at most `SHUTDOWN_SECONDS` for them.

        Tasks that ignore their cancellation, and threads of `asyncio.to_thread` that are blocked, are abandoned;
        they do not keep the process from ending.
        """
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=limits.SHUTDOWN_SECONDS / 4))
        if not asyncio.all_tasks(self._loop):
            self._runner.close()
        else:
            # Closing the runner would wait for the tasks, and asyncio would warn when they are destroyed.
            self._loop.set_exception_handler(lambda *_: None)
            self._loop.close()


def run_to_end(work: Coroutine[object, None, _T]) -> _T:
    """Run a coroutine as `asyncio.run` does, and abandon what it leaves behind if that does not end in time.

    If an event loop runs in this thread, as in notebooks, the work gets a thread of its own, for which the loop waits.
    """
    if _is_in_event_loop():
        return _run_in_thread(work)
    loop = EventLoop()
    try:
        return loop.run(work)
    finally:
        loop.close()


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _run_in_thread(work: Coroutine[object, None, _T]) -> _T:
    """Run a coroutine in a thread with the current context; Ctrl-C and a cancellation of the current task stop it."""
    started = Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[object]]]()

    async def stoppable() -> _T:
        if task := asyncio.current_task():
            started.set_result((asyncio.get_running_loop(), task))
        return await work

    waiting, done = asyncio.current_task(), Future[_T]()
    cancellations = waiting.cancelling() if waiting else 0
    context = contextvars.copy_context()
    try:
        _start_thread("evalmeta-loop", done, lambda: context.run(run_to_end, stoppable()))
        # `asyncio.run` turns the first Ctrl-C into a cancellation, which a task that is blocked does not notice.
        while not wait([done], limits.THREAD_POLL_SECONDS).done:
            if waiting and waiting.cancelling() > cancellations:
                raise asyncio.CancelledError  # noqa: TRY301 - it is handled as a Ctrl-C in this block
    except BaseException:
        # The loop may have ended by itself, or may not begin, if the thread was interrupted in its start.
        with suppress(RuntimeError, TimeoutError):
            loop, task = started.result(limits.SHUTDOWN_SECONDS)
            loop.call_soon_threadsafe(task.cancel)
            wait([done])
        raise
    return done.result()


def _start_thread(name: str, future: Future[_T], function: Callable[[], _T]) -> None:
    """Call a function in a new daemon thread, unless the future is cancelled first; it gets the result or the error."""

    def call() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001 - the future raises it to its waiter
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=call, name=name, daemon=True).start()


class _Threads(ThreadPoolExecutor):
    """Start a daemon thread for every call; `asyncio` only accepts a `ThreadPoolExecutor`."""

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        future: Future[_T] = Future()
        _start_thread("evalmeta-call", future, partial(fn, *args, **kwargs))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as its base class has it
        """Return at once."""


DELAYS: Final = contextvars.ContextVar("DELAYS", default=0.0)
"""The seconds that calls of a task waited for a thread and for the event loop: they are not the agent's."""


class _Outcomes:
    """What the calls of one event loop return or raise; it gets all that are there with one wake-up."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.is_handing_over = False
        # Whether all calls have been made, if the event loop waits for that.
        self.made: SimpleQueue[bool] = SimpleQueue()
        self._is_woken = False
        self._finished: deque[tuple[_Done, _Outcome]] = deque()

    def add(self, done: _Done, outcome: _Outcome) -> None:
        """Add what a call returned or raised."""
        self._finished.append((done, outcome))

    def wake(self) -> None:
        """Wake the event loop, if nobody has done so; it may be closed when a late answer comes."""
        if not self._is_woken:
            self._is_woken = True
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(self.deliver)

    def deliver(self) -> None:
        """Give outcomes to what waits for them; called in the event loop."""
        self._is_woken = False
        while self._finished:
            done, outcome = self._finished.popleft()
            if not done.done():
                done.set_result(outcome)


# A function, the context in which it runs, and what waits for its outcome. A named tuple would take longer to make.
_Call: TypeAlias = "tuple[Callable[[], object], contextvars.Context, _Done, _Outcomes]"


class Threads:
    """Daemon threads that are used again, because starting one takes longer than most calls; `close` ends them.

    Calls begin in their order. Waking a thread, and the event loop after the call, also takes longer than a quick call.
    So while calls are quick, the event loop hands all that wait to one thread, and waits until it has made them. If one
    takes longer, each call behind it gets a thread, as all do until calls are quick again. After a cancellation a
    thread is abandoned, and used again when its call has ended.
    """

    def __init__(self) -> None:
        # All threads share the calls, and each takes the first when it runs: since Python 3.13, a queue gives its items
        # to threads that wait, and these do not run in their order.
        self._calls: deque[_Call] = deque()
        self._wakes: SimpleQueue[bool] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._is_closed = False
        # How many calls have begun, and how many of the last ones were quick.
        self._begun = self._quick = 0
        self._outcomes: _Outcomes | None = None
        # Those of the event loop that waits until no call is left.
        self._awaited: _Outcomes | None = None

    async def call(self, function: Callable[[], _T]) -> _T:
        """Return what a function returns, or raise what it raises; it runs in a copy of the current context."""
        loop, outcomes = asyncio.get_running_loop(), self._outcomes
        if outcomes is None or outcomes.loop is not loop:
            outcomes = self._outcomes = _Outcomes(loop)
        done: _Done = loop.create_future()
        call = function, contextvars.copy_context(), done, outcomes
        if self._quick < _QUICK_CALLS:
            self._take_thread()
            self._calls.append(call)
            self._wakes.put(True)
        else:
            self._calls.append(call)
            if not outcomes.is_handing_over:
                outcomes.is_handing_over = True
                loop.call_soon(self._hand_over, outcomes)
        asked = time.perf_counter()
        result, raised, seconds = await done
        DELAYS.set(DELAYS.get() + time.perf_counter() - asked - seconds)
        if raised is not None:
            raise raised
        return cast("_T", result)

    def close(self) -> None:
        """End the idle threads now, and the others after their calls."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._wakes.put(False)

    def _take_thread(self) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
                return
        threading.Thread(target=self._run, name="evalmeta-agent", daemon=True).start()

    def _hand_over(self, outcomes: _Outcomes) -> None:
        """Let one thread make the calls that wait, and wait for it; if one is not quick, the others get threads."""
        outcomes.is_handing_over = False
        if not self._make_quickly(outcomes):
            self._quick = 0
            # If no thread can start, those that there are make the calls.
            with suppress(RuntimeError):
                for _ in range(len(self._calls)):
                    self._take_thread()
                    self._wakes.put(True)
        outcomes.deliver()

    def _make_quickly(self, outcomes: _Outcomes) -> bool:
        """Let one thread make all calls that wait, and return whether they were quick."""
        with self._lock:
            if self._awaited:
                # Another event loop waits.
                return False
            self._awaited, outcomes.made = outcomes, SimpleQueue()
        ends, begun = time.monotonic() + limits.TURN_SECONDS, -1
        try:
            self._take_thread()
            self._wakes.put(True)
            while begun != self._begun and time.monotonic() < ends:
                begun = self._begun
                with suppress(Empty):
                    return outcomes.made.get(timeout=_LOOK_SECONDS)
        except RuntimeError:
            # No thread can start.
            return False
        finally:
            self._awaited = None
        return False

    def _run(self) -> None:
        while self._wakes.get():
            call = self._next()
            while call is not None:
                call = self._make(call)

    def _make(self, call: _Call) -> _Call | None:
        """Make a call, and return the next one."""
        function, context, done, outcomes = call
        begun = time.perf_counter()
        result, raised = context.run(_outcome, function)
        seconds = time.perf_counter() - begun
        self._quick = self._quick + 1 if seconds < _QUICK_SECONDS else 0
        outcomes.add(done, (result, raised, seconds))
        if outcomes is self._awaited:
            return self._next()
        if self._calls:
            # Telling lets other threads run, so it is not done between taking a call and making it.
            outcomes.wake()
            return self._next()
        following = self._next()
        # The outcome leads to another call, which can use this thread if it is idle by then.
        outcomes.wake()
        return following

    def _next(self) -> _Call | None:
        """Return the next call; without one, this thread is idle."""
        with self._lock:
            if self._calls:
                self._begun += 1
                return self._calls.popleft()
            self._idle += not self._is_closed
            awaited, self._awaited = self._awaited, None
        if awaited:
            awaited.made.put(True)
        if self._is_closed:
            self._wakes.put(False)
        return None


def _outcome(function: Callable[[], object]) -> tuple[object, BaseException | None]:
    try:
        return function(), None
    except (KeyboardInterrupt, SystemExit, asyncio.CancelledError) as error:
        # In the event loop these would end the whole run.
        return None, RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__)
    except BaseException as error:  # noqa: BLE001 - the caller raises it
        return None, error
