"""Runs as workflow commands of GitHub Actions: an annotation for each case that did not pass, one for each run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.model.run import Verdict
from evalmeta.report.conversations import asked
from evalmeta.report.details import shows_iterations, what_failed
from evalmeta.report.plain import clean, one_line
from evalmeta.report.report import decision, has_passed, verdict_of
from evalmeta.report.words import count
from evalmeta.report.workflowcommands import workflow_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.run import CaseResult
    from evalmeta.report.report import Report

__all__ = ["render"]


def render(reports: Sequence[Report]) -> str:
    """Writes commands: the decision on each run first, then one for each case that failed or ended in an error.

    A case that did so in several iterations is told once. GitHub shows ten errors of a step
    and counts the rest, so the decision says how many there are. In a run that passed by its
    pass rate, failed cases are warnings. Undecided cases are told by the human report alone.
    """
    return "".join(command for report in reports for command in _commands(report))


def _commands(report: Report) -> Iterator[str]:
    passed = has_passed(report)
    title = one_line(f"{report.run.definition}: subject {report.run.subject_name}", chars=200)
    level = "notice" if passed or not report.run.status.is_over else "error"
    yield workflow_command(level, clean(decision(report)), [*_place(report, None), ("title", title)])
    for cases in _broken_cases(report):
        text = f"{_where(report, cases)}{what_failed(cases[0], report.summary)}"
        properties = [*_place(report, cases[0].number), ("title", _title(cases[0]))]
        yield workflow_command("warning" if passed else "error", text, properties)


def _broken_cases(report: Report) -> list[list[CaseResult]]:
    """Gives the results that are failures or errors, those of one case together."""
    found: dict[int, list[CaseResult]] = {}
    for case in report.run.cases:
        if verdict_of(report, case) in {Verdict.FAILURE, Verdict.ERROR}:
            found.setdefault(case.number, []).append(case)
    return list(found.values())


def _where(report: Report, cases: list[CaseResult]) -> str:
    if not shows_iterations(report.run):
        return ""
    return f"in {len(cases):,} of {count(report.run.options.iterations, 'iteration')}: "


def _title(case: CaseResult) -> str:
    name = f"{case.number} {one_line(case.label)}".rstrip()
    return f"{name}: {one_line(asked(case)) or '(no utterance)'}"


def _place(report: Report, number: int | None) -> Iterator[tuple[str, str]]:
    if not report.file:
        return
    yield "file", clean(report.file)
    line = report.lines.get(number) if number is not None else None
    if line:
        yield "line", f"{line}"
