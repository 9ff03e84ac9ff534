"""Checking many files on every core that this process may use."""

from __future__ import annotations

import os
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["map_chunks"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Starting processes takes as long as checking some hundred files.
_WORTHWHILE: Final = 600
_CHUNK: Final = 100
_MOST: Final = 8


def map_chunks(work: Callable[[Sequence[_Item]], list[_Result]], items: Sequence[_Item]) -> list[_Result]:
    """Gives the results of `work` for all items in their order; many items are shared out to processes.

    Args:
        work: takes some items and gives one result for each; a function of a module,
            with items and results that can be pickled.
        items: what to work on.
    """
    cores = min(_cores(), _MOST)
    if len(items) < _WORTHWHILE or cores == 1:
        return work(items)
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - for many files only

    chunks = [items[start : start + _CHUNK] for start in range(0, len(items), _CHUNK)]
    with ProcessPoolExecutor(cores) as pool:
        return list(chain.from_iterable(pool.map(work, chunks)))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
