"""Feeding targets, and what came of it."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fuzz.targets import TARGETS

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Tally", "feed", "united"]


@dataclass(frozen=True, slots=True)
class Tally:
    """What some inputs did to a target: `foreign` has the first input's number for each error that nobody promised."""

    inputs: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    foreign: dict[str, int] = field(default_factory=dict)


def feed(name: str, numbers: Iterable[int]) -> Tally:
    """Feeds a target the inputs of these numbers."""
    target = TARGETS[name]
    inputs, seconds, slowest = 0, 0.0, 0.0
    foreign: dict[str, int] = {}
    for number in numbers:
        data = target.input(number)
        started = time.perf_counter()
        try:
            target.feed(data)
        except Exception as error:  # noqa: BLE001 - finding these is what it is for
            foreign.setdefault(_kind(error), number)
        took = time.perf_counter() - started
        inputs, seconds, slowest = inputs + 1, seconds + took, max(slowest, took)
    return Tally(inputs, seconds, slowest, foreign)


def united(tallies: Iterable[Tally]) -> Tally:
    """Adds up what was done in pieces."""
    pieces = list(tallies)
    foreign: dict[str, int] = {}
    for piece in pieces:
        foreign = {**piece.foreign, **foreign}
    return Tally(
        sum(piece.inputs for piece in pieces),
        sum(piece.seconds for piece in pieces),
        max((piece.slowest for piece in pieces), default=0.0),
        foreign,
    )


def _kind(error: Exception) -> str:
    """Names an error by its class and the line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {last.name}, {last.filename.rpartition('/')[2]}:{last.lineno}"
