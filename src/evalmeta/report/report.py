"""What every report is made from: a run, its summary, and the facts that all formats tell alike."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from evalmeta.model.aggregation import verdict_in
from evalmeta.model.run import RunStatus, Verdict
from evalmeta.report.text import count, decimal, one_line, percent, told_apart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.model.run import Average, CaseResult, Run, Summary
    from evalmeta.model.statistics import RunStatistics


_SHOWN_AVERAGES: Final = 3


def _no_lines() -> Mapping[int, int]:
    return {}


@dataclass(frozen=True, slots=True)
class Report:
    """One run to be reported.

    Attributes:
        run: the run with its cases.
        summary: the counts over these cases.
        file: the path of the definition's file, if it is known here.
        lines: the line of each case in that file, by case number; may be empty.
        statistics: the numbers over these cases, where they were collected.
    """

    run: Run
    summary: Summary
    file: str | None = None
    lines: Mapping[int, int] = field(default_factory=_no_lines)
    statistics: RunStatistics | None = None


def incident(run: Run) -> str | None:
    """Says what kept a run from completing, or gives None for a complete run."""
    missing = run.total - len(run.cases)
    if run.status is RunStatus.COMPLETED and missing <= 0 and not run.error:
        return None
    state = f"the run is {run.status} with {len(run.cases):,} of {count(run.total, 'case result')}"
    return f"{state}: {run.error}" if run.error else state


def has_passed(report: Report) -> bool:
    """Says whether the run is complete and its summary succeeded."""
    return report.summary.succeeded and incident(report.run) is None


def has_rate(report: Report) -> bool:
    """Says whether the pass rate tells more than the counts: several iterations, or less than all must pass."""
    return report.run.options.iterations > 1 or report.summary.min_pass_rate < 1


def decision(report: Report) -> str:
    """Says in one line whether the run passed, and why or why not; or how far it is."""
    if not report.run.status.is_over:
        state = "waiting" if report.run.status is RunStatus.NEW else "in progress"
        return f"{state}: {len(report.run.cases):,} of {count(report.run.total, 'case result')} so far"
    if has_passed(report):
        return f"passed: {_merit(report)}"
    return f"not passed: {'; '.join(_obstacles(report))}"


def duration(run: Run) -> float:
    """Gives the seconds a run took, to the end of its last case when it has no end of its own."""
    ended = run.ended
    if ended is None:
        ended = max((case.ended for case in run.cases), default=run.started)
    return max(0.0, ended - run.started)


def place(report: Report, case: CaseResult) -> str | None:
    """Gives `file:line` of a case, or the file alone when the line is unknown."""
    line = report.lines.get(case.number)
    return f"{report.file}:{line}" if report.file and line else report.file


def verdict_of(report: Report, case: CaseResult) -> Verdict:
    """Gives what a case counts as in the run's summary."""
    return verdict_in(report.summary.averaged, case, report.run.options)


def _merit(report: Report) -> str:
    summary = report.summary
    if summary.pass_rate is None:
        return "no case was decided"
    if not summary.failed:
        return "every decided case passed"
    reached = f"the pass rate of {percent(summary.pass_rate)} reaches the {percent(summary.min_pass_rate)} asked for"
    return f"{reached}, though {_times(report, Verdict.FAILURE, 'failed')}"


def _undecided(report: Report) -> str:
    """Says why nothing was decided; only measured results are expected of nobody."""
    if any(not result.is_measured for case in report.run.cases for result in case.results):
        return "nothing was decided, because no rater here can judge what is expected"
    measured = any(case.results for case in report.run.cases)
    return "nothing was decided: results are only measured" if measured else "nothing is expected"


def _times(report: Report, verdict: Verdict, what: str) -> str:
    """Gives `1 case failed`, and of several iterations `1 case failed in 2 of 3 iterations`."""
    found = [case.number for case in report.run.cases if verdict_of(report, case) is verdict]
    cases, iterations = len(set(found)), report.run.options.iterations
    told = f"{count(cases, 'case')} {what}"
    if iterations == 1:
        return told
    if cases == 1:
        return f"{told} in {len(found):,} of {count(iterations, 'iteration')}"
    return f"{told}, {count(len(found), 'time')} in {count(iterations, 'iteration')}"


def _missed(summary: Summary) -> Iterator[str]:
    missed = [each for each in summary.averages if each.verdict is Verdict.FAILURE]
    yield from map(missed_text, missed[:_SHOWN_AVERAGES])
    if len(missed) > _SHOWN_AVERAGES:
        yield f"{count(len(missed) - _SHOWN_AVERAGES, 'more average')} missed"


def _obstacles(report: Report) -> Iterator[str]:
    summary, what_happened = report.summary, incident(report.run)
    if what_happened:
        yield what_happened
    if summary.errors:
        yield _times(report, Verdict.ERROR, "ended in an error")
    if summary.pass_rate is None and summary.undecided:
        yield _undecided(report)
    if summary.pass_rate is None or summary.pass_rate >= summary.min_pass_rate:
        return
    if summary.min_pass_rate >= 1:
        yield _times(report, Verdict.FAILURE, "failed")
    else:
        rate, asked = percent(summary.pass_rate), percent(summary.min_pass_rate)
        yield f"the pass rate of {rate} is below the {asked} asked for"
    yield from _missed(summary)


def case_of(average: Average) -> str:
    """Gives what people know a mean's case by, on one line: its label, or `case 3`."""
    return one_line(average.label) or f"case {average.number}"


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
