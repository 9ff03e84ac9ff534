"""Blocking code in threads that nobody has to wait for."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["in_thread"]

T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    """Gives what the function returns, or raises what it raises, from a daemon thread of its own.

    Cancelling leaves the thread behind; it neither blocks the event loop nor the end
    of the process. `asyncio.to_thread` would do both.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Callable[[], T]] = loop.create_future()

    def run() -> None:
        outcome = _outcome(function)
        # The loop may be gone by the time a late answer comes.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_deliver, done, outcome)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="evalmeta-agent", daemon=True).start()
    return (await done)()


def _outcome(function: Callable[[], T]) -> Callable[[], T]:
    try:
        value = function()
    except BaseException as error:  # noqa: BLE001 - whatever ends the thread is told to who waits for it
        return _raiser(error)
    return lambda: value


def _raiser(error: BaseException) -> Callable[[], NoReturn]:
    # In the event loop these would end the whole run.
    if isinstance(error, KeyboardInterrupt | SystemExit | asyncio.CancelledError):
        error = RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__)

    def fail() -> NoReturn:
        raise error

    return fail


def _deliver(done: asyncio.Future[Callable[[], T]], outcome: Callable[[], T]) -> None:
    if not done.done():
        done.set_result(outcome)
