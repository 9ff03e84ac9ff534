"""An event loop that ends when its work ends, even if agents leave tasks or threads behind."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

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

        async def keep() -> None:
            results.append(await work)

        task = self._loop.create_task(keep())
        try:
            while not task.done():
                self._run_until_exit(task)
        finally:
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
    """Run a coroutine as `asyncio.run` does, and abandon what it leaves behind if that does not end in time."""
    loop = EventLoop()
    try:
        return loop.run(work)
    finally:
        loop.close()


class _Threads(ThreadPoolExecutor):
    """Start a daemon thread for every call; `asyncio` only accepts a `ThreadPoolExecutor`."""

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        future: Future[_T] = Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - the future raises it to its waiter
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=call, name="evalmeta-call", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as its base class has it
        """Return at once."""
