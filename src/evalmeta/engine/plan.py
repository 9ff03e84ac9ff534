"""What a run has to do, one case at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from evalmeta.model.evaluation import Case, Evaluation
    from evalmeta.model.run import RunOptions

__all__ = ["WorkItem", "plan"]


class WorkItem(NamedTuple):
    """One case to ask in one iteration; iterations count from 1."""

    iteration: int
    case: Case


def plan(evaluation: Evaluation, options: RunOptions, finished: Collection[tuple[int, int]]) -> Iterator[WorkItem]:
    """Lists what is still to do, lazily, iteration by iteration in the order of the cases.

    `finished` holds (iteration, case number) of what need not be asked again.
    """
    for iteration in range(1, options.iterations + 1):
        for case in evaluation.cases:
            if (iteration, case.number) not in finished:
                yield WorkItem(iteration, case)
