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

    return asyncio.run(work)
