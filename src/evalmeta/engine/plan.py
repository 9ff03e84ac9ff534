"""Which cases a run sends to the agent, and in which order."""

from __future__ import annotations

import random
import zlib
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from evalmeta.model.evaluation import Case, Evaluation
    from evalmeta.model.run_options import RunOptions


class WorkItem(NamedTuple):
    """One case in one iteration; iterations count from 1."""

    iteration: int
    case: Case


def work_items(
    evaluation: Evaluation, options: RunOptions, finished: Collection[tuple[int, int]]
) -> Iterator[WorkItem]:
    """Yield the work that is not finished, iteration by iteration, in the order of the cases or shuffled by the seed.

    Cases are read lazily, except that a seed needs all cases of an iteration at once.
    """
    for iteration in range(1, options.iterations + 1):
        cases = select_cases(evaluation, options)
        if options.seed is not None:
            shuffled = list(cases)
            random.Random(f"{options.seed}:{iteration}").shuffle(shuffled)
            cases = iter(shuffled)
        yield from (WorkItem(iteration, case) for case in cases if (iteration, case.number) not in finished)


def select_cases(evaluation: Evaluation, options: RunOptions) -> Iterator[Case]:
    """Yield the cases of a run: those with the chosen numbers that are in its shard.

    The CRC-32 of `NAME:NUMBER` decides the shard, so that a case never changes its shard when others are added.
    """
    numbers = None if options.cases is None else frozenset(options.cases)
    shard, shards = options.shard or (1, 1)
    for case in evaluation.cases:
        if numbers is not None and case.number not in numbers:
            continue
        if shards == 1 or zlib.crc32(f"{evaluation.name}:{case.number}".encode()) % shards == shard - 1:
            yield case
