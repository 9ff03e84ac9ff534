"""Workflow commands of GitHub Actions, which shows them as annotations beside changed lines; runs as such commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.model.run import Verdict
from evalmeta.report.details import case_title, why_not_passed
from evalmeta.report.report import decision, has_passed, verdict_of
from evalmeta.report.text import clean, count, one_line, workflow_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.run import CaseResult
    from evalmeta.report.report import Report


def render(reports: Sequence[Report]) -> str:
    """Return commands: the decision on each run, then one for each case that failed or ended in an error.

    A case appears once, even if it failed in several iterations. GitHub shows only ten errors of a step, so the
    decision includes the number of cases. In a run that passed by its pass rate, failed cases are warnings.
    Undecided cases are not included.
    """
    return "".join(command for report in reports for command in _commands(report))


def _commands(report: Report) -> Iterator[str]:
    passed = has_passed(report)
    title = one_line(f"{report.run.definition}: subject {report.run.subject_name}", chars=200)
    level = "notice" if passed or not report.run.status.is_over else "error"
    yield workflow_command(level, clean(decision(report)), [*_location(report, None), ("title", title)])
    for cases in _failed_cases(report):
        iterations = count(report.run.options.iterations, "iteration")
        where = f"in {len(cases):,} of {iterations}: " if report.run.options.iterations > 1 else ""
        text = f"{where}{why_not_passed(cases[0], report.summary)}"
        properties = [*_location(report, cases[0].number), ("title", case_title(cases[0]))]
        yield workflow_command("warning" if passed else "error", text, properties)


def _failed_cases(report: Report) -> list[list[CaseResult]]:
    """Return the failures and errors of each case."""
    found: dict[int, list[CaseResult]] = {}
    for case in report.run.cases:
        if verdict_of(report, case) in {Verdict.FAILURE, Verdict.ERROR}:
            found.setdefault(case.number, []).append(case)
    return list(found.values())


def _location(report: Report, number: int | None) -> Iterator[tuple[str, str]]:
    if not report.file:
        return
    yield "file", clean(report.file)
    line = report.lines.get(number) if number is not None else None
    if line:
        yield "line", f"{line}"
