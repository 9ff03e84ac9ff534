"""What a run has to do, one case at a time."""

from __future__ import annotations

import random
import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from evalmeta.model.evaluation import Case, Evaluation
    from evalmeta.model.run import RunOptions

__all__ = ["WorkItem", "choose", "plan"]


class WorkItem(NamedTuple):
    """One case to ask in one iteration; iterations count from 1."""

    iteration: int
    case: Case


def plan(evaluation: Evaluation, options: RunOptions, finished: Collection[tuple[int, int]]) -> Iterator[WorkItem]:
    """Lists what is still to do, lazily, iteration by iteration in the order of the cases or as the seed draws it.

    `finished` holds (iteration, case number) of what need not be asked again. Only a seed
    needs all cases at once.
    """
    for iteration in range(1, options.iterations + 1):
        for case in _ordered(choose(evaluation, options), options.seed, iteration):
            if (iteration, case.number) not in finished:
                yield WorkItem(iteration, case)


def choose(evaluation: Evaluation, options: RunOptions) -> Iterator[Case]:
    """Gives the cases that a run asks: those of its numbers that are in its shard.

    A case is always in the same shard, whatever other cases there are: the CRC-32 of
    `NAME:NUMBER` tells.
    """
    numbers = None if options.cases is None else frozenset(options.cases)
    part, parts = options.shard or (1, 1)
    for case in evaluation.cases:
        if numbers is not None and case.number not in numbers:
            continue
        if parts == 1 or zlib.crc32(f"{evaluation.name}:{case.number}".encode()) % parts == part - 1:
            yield case


def _ordered(cases: Iterable[Case], seed: int | None, iteration: int) -> Iterable[Case]:
    if seed is None:
        return cases
    drawn = list(cases)
    random.Random(f"{seed}:{iteration}").shuffle(drawn)  # noqa: S311 - an order that can be had again, no secret
    return drawn
