"""An event loop, and threads for calls that block, which end when their work ends, whatever agents leave behind."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


_P = ParamSpec("_P")
_T = TypeVar("_T")


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


class Threads:
    """Daemon threads that are used again, because starting one takes longer than most calls; `close` ends them.

    Calls begin in their order. After a cancellation a thread is abandoned, and used again when its call has ended.
    """

    def __init__(self) -> None:
        # All threads share the calls, and each takes the first when it runs: since Python 3.13, a queue gives its items
        # to threads that wait, and these do not run in their order.
        self._calls: deque[Callable[[], None] | None] = deque()
        self._waiting: SimpleQueue[None] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._is_closed = False

    async def call(self, function: Callable[[], _T]) -> _T:
        """Return what a function returns, or raise what it raises; it runs in a copy of the current context."""
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        done: asyncio.Future[tuple[_T | None, BaseException | None]] = loop.create_future()

        def deliver(outcome: tuple[_T | None, BaseException | None]) -> None:
            if not done.done():
                done.set_result(outcome)

        def work() -> None:
            outcome = context.run(_outcome, function)
            # The outcome leads to the next call, which can use this thread.
            self._add_idle()
            # The loop may be closed when a late answer comes.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(deliver, outcome)

        self._take_thread()
        self._put(work)
        result, raised = await done
        if raised is not None:
            raise raised
        return cast("_T", result)

    def close(self) -> None:
        """End the idle threads now, and the others after their calls."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._put(None)

    def _put(self, work: Callable[[], None] | None) -> None:
        self._calls.append(work)
        self._waiting.put(None)

    def _take_thread(self) -> None:
        with self._lock:
            if self._idle:
                self._idle -= 1
                return
        threading.Thread(target=self._run, name="evalmeta-agent", daemon=True).start()

    def _add_idle(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle += 1
                return
        self._put(None)

    def _run(self) -> None:
        while True:
            self._waiting.get()
            if (work := self._calls.popleft()) is None:
                return
            work()


def _outcome(function: Callable[[], _T]) -> tuple[_T | None, BaseException | None]:
    try:
        return function(), None
    except (KeyboardInterrupt, SystemExit, asyncio.CancelledError) as error:
        # In the event loop these would end the whole run.
        return None, RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__)
    except BaseException as error:  # noqa: BLE001 - the caller raises it
        return None, error
