"""Averaged results: the means that cases are judged by, as text and as JSON."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from evalmeta.model.run import Verdict
from evalmeta.report.text import clean, decimal, distinct_decimals, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import Average, CaseResult, Summary, TestResult


_SHOWN: Final = 20
_LABEL_CHARS: Final = 40


def averages_of(summary: Summary, case: CaseResult) -> tuple[Average, ...]:
    """Return the means that a case is judged by; none if the case ended in an error."""
    if case.verdict is Verdict.ERROR or case.number not in summary.averaged:
        return ()
    first = bisect_left(summary.averages, case.number, key=lambda average: average.number)
    last = bisect_left(summary.averages, case.number + 1, key=lambda average: average.number)
    return summary.averages[first:last]


def missed_averages(summary: Summary, case: CaseResult) -> tuple[Average, ...]:
    """Return the means of a case that miss their thresholds."""
    return tuple(average for average in averages_of(summary, case) if average.verdict is Verdict.FAILURE)


def shown_averages(summary: Summary) -> tuple[list[Average], int]:
    """Return the means that a summary shows, missed ones first if there are many, and the number left out."""
    averages: Sequence[Average] = summary.averages
    if len(averages) > _SHOWN:
        averages = sorted(averages, key=lambda average: average.verdict is not Verdict.FAILURE)
    return list(averages[:_SHOWN]), max(0, len(averages) - _SHOWN)


def numbered_label(average: Average) -> str:
    """Return the number and label of a mean's case, on one short line."""
    return f"{average.number} {one_line(average.label, chars=_LABEL_CHARS)}".rstrip()


def case_label(average: Average) -> str:
    """Return the label of a mean's case on one line, or `case 3` if it has none."""
    return one_line(average.label) or f"case {average.number}"


def mean_cells(average: Average) -> tuple[str, str]:
    """Return mean and threshold for two columns of a table."""
    if average.score is None:
        return "none", decimal(average.threshold)
    return distinct_decimals(average.score, average.threshold)


def mean_text(average: Average) -> str:
    """Return `0.667, expected 0.8`, or `expected at most` where less is better."""
    if average.score is None:
        what = "not evaluated" if average.verdict is Verdict.FAILURE else "no score"
        return f"{what}, expected {decimal(average.threshold)}"
    score, threshold = mean_cells(average)
    most = "at most " if average.verdict is Verdict.FAILURE and average.score > average.threshold else ""
    return f"{score}, expected {most}{threshold}"


def missed_text(average: Average) -> str:
    """Return `response_match_score of greeting-test: 0.667, expected 0.8`."""
    return f"{one_line(average.name)} of {case_label(average)}: {mean_text(average)}"


def score_text(result: TestResult) -> str:
    """Return the score of an averaged result with the mean that is required; empty for other results."""
    if result.threshold is None:
        return ""
    if result.score is None:
        return f"none (required mean: {decimal(result.threshold)})"
    score, threshold = distinct_decimals(result.score, result.threshold)
    return f"{score} (required mean: {threshold})"


def averages_json(averages: Sequence[Average]) -> list[JsonObject]:
    """Return means as JSON values."""
    return [
        {
            "testNumber": average.number,
            "case": clean(average.label),
            "name": clean(average.name),
            "mean": average.score,
            "threshold": average.threshold,
            "results": average.count,
            "verdict": str(average.verdict),
        }
        for average in averages
    ]
