"""Running an event loop that ends when its work does, whatever agents have left in it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["run_to_end"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def run_to_end(work: Coroutine[object, None, _T]) -> _T:
    """Gives what the work gives, as `asyncio.run` does, and waits for nothing after that but `SHUTDOWN_SECONDS`.

    Tasks that swallow their cancellation, and calls that block a thread of
    `asyncio.to_thread`, are left behind; they do not keep the process from ending.
    """
    runner = asyncio.Runner()
    loop = runner.get_loop()
    loop.set_default_executor(_Threads())
    try:
        return runner.run(work)
    finally:
        if _end_tasks(loop):
            runner.close()
        else:
            # They are told of when they are destroyed otherwise, and closing the runner waits for them.
            loop.set_exception_handler(lambda *_: None)
            loop.close()


class _Threads(ThreadPoolExecutor):
    """A thread for every call, which nobody waits for; `asyncio` takes no executor of another class."""

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        future: Future[_T] = Future()

        def call() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - whatever ends the call is told to who waits for it
                future.set_exception(error)
            else:
                future.set_result(result)

        threading.Thread(target=call, name="evalmeta-call", daemon=True).start()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 - as its base class has it
        """Waits for nothing."""


def _end_tasks(loop: asyncio.AbstractEventLoop) -> bool:
    """Cancels what is left and tells whether it ended in time."""
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=limits.SHUTDOWN_SECONDS / 4))
    return not asyncio.all_tasks(loop)
