"""Iterations where an org knows none: several runs of one definition, joined into one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalmeta.model.run import RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.run import Run

__all__ = ["join"]


def join(parts: Sequence[Run], whole: Run) -> Run:
    """Gives a run with the results of others as its iterations, in their order.

    Args:
        parts: the runs that were begun so far, one at least; those that never began for
            want of time or luck are missed in `total`.
        whole: what the joined run is called, and its options.
    """
    last, iterations = parts[-1], whole.options.iterations
    status = _status(parts, iterations)
    return replace(
        whole,
        definition=whole.definition or last.subject_name,
        subject_name=last.subject_name or whole.subject_name,
        status=status,
        started=parts[0].started or whole.started,
        ended=last.ended if status.is_over else None,
        error=next((each.error for each in parts if each.error), None),
        total=sum(each.total for each in parts) + last.total * (iterations - len(parts)),
        cases=tuple(replace(case, iteration=place) for place, each in enumerate(parts, 1) for case in each.cases),
    )


def _status(parts: Sequence[Run], iterations: int) -> RunStatus:
    """Iterations come one after the other; one that ended early ends the run."""
    statuses = {each.status for each in parts}
    for early in (RunStatus.ERROR, RunStatus.TERMINATED):
        if early in statuses:
            return early
    if statuses == {RunStatus.COMPLETED}:
        return RunStatus.COMPLETED if len(parts) >= iterations else RunStatus.IN_PROGRESS
    return RunStatus.NEW if statuses == {RunStatus.NEW} else RunStatus.IN_PROGRESS
