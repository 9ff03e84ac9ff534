"""Running a coroutine from a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

__all__ = ["run_async"]

_T = TypeVar("_T")


def run_async(work: Coroutine[None, None, _T]) -> _T:
    """Runs a coroutine to its end; Ctrl-C cancels it and lets it tidy up."""
    import asyncio  # noqa: PLC0415 - 47 ms, not needed for --help

    try:
        return asyncio.run(_interruptible(work))
    except KeyboardInterrupt:
        work.close()
        raise


async def _interruptible(work: Coroutine[None, None, _T]) -> _T:
    import signal  # noqa: PLC0415 - not needed for --help

    # A polite end from outside is an interruption like Ctrl-C, which asyncio.run handles by now.
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGINT))
    return await work
