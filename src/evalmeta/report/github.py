"""Runs as workflow commands of GitHub Actions: an annotation for each case that did not pass, one for each run.

Workflow commands of GitHub Actions, which shows them as annotations beside changed lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.run import Verdict
from evalmeta.report.details import asked, shows_iterations, what_failed
from evalmeta.report.report import decision, has_passed, verdict_of
from evalmeta.report.text import clean, count, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.run import CaseResult
    from evalmeta.report.report import Report


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


# GitHub Actions, "Workflow commands": data escapes these, properties the colon and comma too.
_DATA: Final = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_PROPERTY: Final = _DATA | str.maketrans({":": "%3A", ",": "%2C"})


def workflow_command(level: str, text: str, properties: Iterable[tuple[str, str]]) -> str:
    """Writes one command on one line; no text in it can begin a command of its own.

    Args:
        level: `error`, `warning` or `notice`.
        text: what is shown.
        properties: names such as `file`, `line` and `title`, with their values.
    """
    pairs = ",".join(f"{name}={value.translate(_PROPERTY)}" for name, value in properties)
    return f"::{level} {pairs}::{text.translate(_DATA)}\n"
