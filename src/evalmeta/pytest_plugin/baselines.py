"""An evaluation beside what a baseline has of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.engine.comparison import compare
from evalmeta.report.comparison import comparison_lines
from evalmeta.report.words import percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.statistics import CaseCounts
    from evalmeta.pytest_plugin.tallies import EvaluationTally

__all__ = ["comparison_with"]


def comparison_with(before: Sequence[CaseCounts], tally: EvaluationTally, *, label: str) -> list[str]:
    """Says the pass rate before, and of which cases something became since; what was not selected is no news."""
    decided, passed = sum(each.decided for each in before), sum(each.passed for each in before)
    rate = f"{percent(passed / decided)} ({passed} of {decided})" if decided else "nothing decided"
    comparison = compare(
        before, tally.case_counts(), name=tally.name, labels=(label, "this session"), partial=(False, True)
    )
    _, *lines = comparison_lines(comparison)
    return [f"in {label}: {rate}", *(line.text for line in lines)]
