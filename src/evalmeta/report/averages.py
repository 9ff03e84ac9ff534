"""Means for people and for programs: of results that are averaged, and of what is measured and not judged."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from evalmeta.model.run import Verdict
from evalmeta.report.plain import clean, one_line
from evalmeta.report.words import count, decimal, told_apart

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.jsonvalue import JsonObject
    from evalmeta.model.run import Average, CaseResult, Summary, TestResult
    from evalmeta.model.statistics import Measure
    from evalmeta.report.report import Report

__all__ = [
    "averages_json",
    "averages_of",
    "case_cell",
    "case_of",
    "mean_cells",
    "mean_text",
    "measure_lines",
    "measures_json",
    "missed_averages",
    "missed_text",
    "result_text",
    "shown_averages",
]

_SHOWN: Final = 20
_LABEL_CHARS: Final = 40


def averages_of(summary: Summary, case: CaseResult) -> tuple[Average, ...]:
    """Gives the means that a case counts by; none of one that ended in an error, which counts by that."""
    if case.verdict is Verdict.ERROR or case.number not in summary.averaged:
        return ()
    first = bisect_left(summary.averages, case.number, key=lambda each: each.number)
    last = bisect_left(summary.averages, case.number + 1, key=lambda each: each.number)
    return summary.averages[first:last]


def missed_averages(summary: Summary, case: CaseResult) -> tuple[Average, ...]:
    """Gives the means of a case that miss their thresholds."""
    return tuple(each for each in averages_of(summary, case) if each.verdict is Verdict.FAILURE)


def case_of(average: Average) -> str:
    """Gives what people know a mean's case by, on one line: its label, or `case 3`."""
    return one_line(average.label) or f"case {average.number}"


def case_cell(average: Average) -> str:
    """Gives number and label of a mean's case, on one short line."""
    return f"{average.number} {one_line(average.label, chars=_LABEL_CHARS)}".rstrip()


def mean_cells(average: Average) -> tuple[str, str]:
    """Gives mean and threshold for two columns of a table."""
    if average.score is None:
        return "none", decimal(average.threshold)
    return told_apart(average.score, average.threshold)


def mean_text(average: Average) -> str:
    """Gives `0.667, expected 0.8`; `expected at most` where less is better."""
    if average.score is None:
        return f"no score, expected {decimal(average.threshold)}"
    score, threshold = mean_cells(average)
    most = "at most " if average.verdict is Verdict.FAILURE and average.score > average.threshold else ""
    return f"{score}, expected {most}{threshold}"


def missed_text(average: Average) -> str:
    """Gives `response_match_score of greeting-test: 0.667, expected 0.8`."""
    return f"{one_line(average.name)} of {case_of(average)}: {mean_text(average)}"


def result_text(result: TestResult) -> str:
    """Gives the score of a result that is averaged beside what the mean must reach; nothing for any other."""
    if result.threshold is None:
        return ""
    if result.score is None:
        return f"none, {decimal(result.threshold)} expected in the mean"
    score, threshold = told_apart(result.score, result.threshold)
    return f"{score}, {threshold} expected in the mean"


def shown_averages(report: Report) -> tuple[list[Average], int]:
    """Gives the means that a summary shows and how many it leaves out: of many, those that missed come first."""
    averages: Sequence[Average] = report.summary.averages
    if len(averages) > _SHOWN:
        averages = sorted(averages, key=lambda each: each.verdict is not Verdict.FAILURE)
    return list(averages[:_SHOWN]), max(0, len(averages) - _SHOWN)


def measure_lines(report: Report) -> Iterator[str]:
    """Yields `retrieval/ground_truth/document_recall  0.75 over 4 results` for each measure."""
    for each in () if report.statistics is None else report.statistics.measures:
        yield f"{one_line(each.name)}  {decimal(each.mean)} over {count(each.count, 'result')}"


def averages_json(averages: Sequence[Average]) -> list[JsonObject]:
    """Gives means as JSON values."""
    return [
        {
            "testNumber": each.number,
            "case": clean(each.label),
            "name": clean(each.name),
            "mean": each.score,
            "threshold": each.threshold,
            "results": each.count,
            "verdict": str(each.verdict),
        }
        for each in averages
    ]


def measures_json(measures: Sequence[Measure]) -> list[JsonObject]:
    """Gives the means of what was measured as JSON values."""
    return [{"name": clean(each.name), "mean": each.mean, "count": each.count} for each in measures]
