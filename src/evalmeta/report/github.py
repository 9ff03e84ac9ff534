"""Workflow commands of GitHub Actions, which shows them as annotations beside changed lines; runs as such commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.model.run import Verdict
from evalmeta.report.details import case_title, why_not_passed
from evalmeta.report.org_checks import check_lines
from evalmeta.report.report import counts_as_passed, is_brief, outcome, place_of, verdict_of, why_not_counted
from evalmeta.report.summary import totals
from evalmeta.report.text import clean, count, one_line, workflow_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.report.report import Report


def stream(reports: Sequence[Report]) -> Iterator[str]:
    """Yield commands: the decision on each run, then one for each case that failed or ended in an error.

    Runs of a suite that passed share one command, because GitHub shows only ten notices of a step.
    A case appears once, even if it failed in several iterations. GitHub shows only ten errors of a step, so the
    decision includes the number of cases. In a run that passed by its pass rate, failed cases are warnings, and so are
    failures that a baseline forgives. Undecided cases are not included.
    """
    shown = [report for report in reports if len(reports) == 1 or not is_brief(report)]
    if len(shown) < len(reports):
        yield workflow_command("notice", totals(reports), [("title", "evalmeta")])
    for report in shown:
        yield from _commands(report)


def _commands(report: Report) -> Iterator[str]:
    passed = counts_as_passed(report)
    title = one_line(f"{report.run.definition}: subject {report.run.subject_name}", chars=200)
    level = "notice" if passed or not report.run.status.is_over else "error"
    yield workflow_command(level, clean(outcome(report)), [*_location(report, None), ("title", title)])
    if checks := "\n".join(check_lines(report.run, report.tally.differences)):
        yield workflow_command("warning", clean(checks), [*_location(report, None), ("title", title)])
    numbers: set[int] = set()
    for case in report.run.cases:
        if case.number in numbers or verdict_of(report, case) not in {Verdict.FAILURE, Verdict.ERROR}:
            continue
        numbers.add(case.number)
        forgiven = why_not_counted(report, case)
        times = "" if case.is_quarantined else _times(report, case.number)
        text = f"{times}{why_not_passed(case, report.summary)}"
        text = f"{clean(forgiven)}: {text}" if forgiven else text
        properties = [*_location(report, case.number), ("title", case_title(case))]
        yield workflow_command("warning" if passed or forgiven else "error", text, properties)


def _times(report: Report, number: int) -> str:
    """Return in how many iterations a case failed or ended in an error, if the run has several."""
    iterations, times = report.run.options.iterations, report.times
    if iterations == 1:
        return ""
    return f"in {times.failed[number] + times.broken[number]:,} of {count(iterations, 'iteration')}: "


def _location(report: Report, number: int | None) -> Iterator[tuple[str, str]]:
    file, line = (report.file, None) if number is None else place_of(report, number)
    if not file:
        return
    yield "file", clean(file)
    if line:
        yield "line", f"{line}"
