"""Call functions that block in daemon threads, which never delay the end of the process."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

_T = TypeVar("_T")


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
        while (work := self._next()) is not None:
            work()

    def _next(self) -> Callable[[], None] | None:
        self._waiting.get()
        return self._calls.popleft()


def _outcome(function: Callable[[], _T]) -> tuple[_T | None, BaseException | None]:
    try:
        return function(), None
    except (KeyboardInterrupt, SystemExit, asyncio.CancelledError) as error:
        # In the event loop these would end the whole run.
        return None, RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__)
    except BaseException as error:  # noqa: BLE001 - the caller raises it
        return None, error
