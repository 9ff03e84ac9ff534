"""Running a coroutine from a command."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ["run_async"]

_T = TypeVar("_T")


def run_async(work: Coroutine[None, None, _T]) -> _T:
    """Runs a coroutine to its end; Ctrl-C, or SIGTERM, cancels it and lets it tidy up.

    Raises:
        KeyboardInterrupt: it was cancelled so.
    """
    import asyncio  # noqa: PLC0415 - 47 ms, not needed for --help

    from evalmeta.engine.loop import run_to_end  # noqa: PLC0415 - likewise

    try:
        return run_to_end(_interruptible(work))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    except KeyboardInterrupt:
        work.close()
        raise


async def _interruptible(work: Coroutine[None, None, _T]) -> _T:
    import asyncio  # noqa: PLC0415 - as above
    import signal  # noqa: PLC0415 - as above

    task = asyncio.current_task()
    if task is not None:
        # Windows has no such signal.
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await work
