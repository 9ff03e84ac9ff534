"""Means for people and for programs: of results that are averaged, and of what is measured and not judged."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from evalmeta.model.run import Verdict
from evalmeta.report.text import clean, count, decimal, one_line, told_apart

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import Average, CaseResult, Summary, TestResult
    from evalmeta.model.statistics import Measure
    from evalmeta.report.report import Report


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


def case_cell(average: Average) -> str:
    """Gives number and label of a mean's case, on one short line."""
    return f"{average.number} {one_line(average.label, chars=_LABEL_CHARS)}".rstrip()


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
