"""Runs as plain lines for people; `evalmeta.report.tables` prints them on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.run import Verdict
from evalmeta.report.details import case_text, group_cases, group_name, passed_text
from evalmeta.report.report import VERDICT_WORDS, location
from evalmeta.report.summary import heading, summary_lines, totals
from evalmeta.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.report.details import CaseGroup
    from evalmeta.report.report import Report


_WORD_CHARS: Final = max(map(len, VERDICT_WORDS.values()))
_DETAILS_INDENT: Final = " " * (_WORD_CHARS + 1)


def render(reports: Sequence[Report]) -> str:
    """Return plain lines: one line for each case that passed, details of the other cases, and the summary."""
    sections = ["\n".join(_lines(report)) for report in reports]
    if len(reports) > 1:
        sections.append(totals(reports))
    return "\n\n".join(sections) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield heading(report)
    if report.file and report.file != report.run.definition:
        yield one_line(report.file, chars=400)
    yield ""
    for group in group_cases(report):
        yield from _case_lines(report, group)
    if report.run.cases:
        yield ""
    yield from summary_lines(report)


def _case_lines(report: Report, group: CaseGroup) -> Iterator[str]:
    case, verdict = group.case, group.verdict
    start = f"{VERDICT_WORDS[verdict]:{_WORD_CHARS}} {group_name(group)}"
    if verdict is Verdict.PASS:
        yield f"{start} {passed_text(case)}".rstrip()
        return
    where = location(report, case)
    yield f"{start} {one_line(where, chars=400)}" if where else start
    yield case_text(case, report.summary, indent=_DETAILS_INDENT)
