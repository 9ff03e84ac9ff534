"""Timing two things in turn, so that a machine that drifts drifts for both."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 5


class Pair(NamedTuple):
    """Median seconds of what is measured and of its floor, and the median of their ratios."""

    ours: float
    floor: float
    ratio: float


def compare(ours: Callable[[], object], floor: Callable[[], object], *, rounds: int = ROUNDS) -> Pair:
    times = [(_seconds(ours), _seconds(floor)) for _ in range(rounds)]
    mine, theirs = zip(*times, strict=True)
    return Pair(statistics.median(mine), statistics.median(theirs), statistics.median(a / b for a, b in times))


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
