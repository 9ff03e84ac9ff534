"""Runs for people: what did not pass in full, counts of what passed, a list of the failures, and the verdict last.

`evalmeta.report.tables` prints the same parts on a terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from evalmeta.model.run import Verdict
from evalmeta.report.details import case_text, group_cases, group_name, group_title, passed_text
from evalmeta.report.findings import find, limits_of
from evalmeta.report.report import (
    PARTLY,
    STATE_WORDS,
    VERDICT_WORDS,
    counts_as_passed,
    duration,
    is_brief,
    is_partly_judged,
    location,
)
from evalmeta.report.summary import fact_lines, heading, passed_count, suite_lines, undecided_lines, verdict_lines
from evalmeta.report.text import count, number_ranges, one_line, seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.report.details import CaseGroup
    from evalmeta.report.findings import Findings
    from evalmeta.report.report import Report

Detail: TypeAlias = Literal["verdict", "failures", "all"]
"""What is shown of the cases: nothing; those that did not pass, up to a limit; or all in full."""

_WORD_CHARS: Final = max(map(len, VERDICT_WORDS.values()))
_DETAILS_INDENT: Final = " " * (_WORD_CHARS + 1)
_SHOWN_RUNS: Final = 20
_RANGES_CHARS: Final = 60


class Line(NamedTuple):
    """A line, and how a terminal shows it.

    `word` colours the verdict that it begins with, and indents the rest of a long line; `whole` is never broken.
    """

    text: str = ""
    style: Literal["", "title", "dim", "good", "bad", "word", "whole"] = ""


class CaseDetails(NamedTuple):
    """A case that is shown in full, with the traceback of its error or without."""

    report: Report
    group: CaseGroup
    traceback: bool = False


def render(reports: Sequence[Report], *, detail: Detail = "failures", closing: Sequence[str] = ()) -> str:
    """Return plain lines: the cases that did not pass in full, a list of them, `closing`, and the verdict."""
    return "".join(stream(reports, detail=detail, closing=closing))


def stream(reports: Sequence[Report], *, detail: Detail = "failures", closing: Sequence[str] = ()) -> Iterator[str]:
    """Yield the text of `render` in parts."""
    for part in human_parts(reports, detail=detail, closing=closing):
        yield f"{part.text if isinstance(part, Line) else _details(part)}\n"


def human_parts(
    reports: Sequence[Report], *, detail: Detail = "failures", closing: Sequence[str] = ()
) -> Iterator[Line | CaseDetails]:
    """Yield the parts of a report in order; `closing` has sentences that follow the list of failures."""
    is_first = True
    for paragraph in _paragraphs(reports, detail, closing):
        for place, part in enumerate(paragraph):
            if not place and not is_first:
                yield Line()
            is_first = False
            yield part


def _paragraphs(
    reports: Sequence[Report], detail: Detail, closing: Sequence[str]
) -> Iterator[Iterable[Line | CaseDetails]]:
    if detail == "verdict":
        yield _verdict(reports, is_short=True)
        return
    is_suite, is_all = len(reports) > 1, detail == "all"
    brief = [each for each in reports if is_suite and not is_all and is_brief(each)]
    others = [each for each in reports if not (is_suite and not is_all and is_brief(each))]
    yield [Line(_passed_run(each), "word") for each in brief]
    yield map(Line, undecided_lines(brief))
    listed: list[Line] = []
    for report, limits in zip(others, limits_of(others), strict=True):
        findings = find(report, limits)
        yield _heading(report, has_places=bool(findings.groups) and not is_all)
        yield _cases(report, findings, is_all=is_all)
        yield map(Line, fact_lines(report))
        if is_suite:
            yield _run_verdict(report)
        listed += [Line(line, "word") for line in findings.lines]
        if findings.failing:
            listed.append(Line(f"... and {_others(findings.failing)} of {one_line(report.run.definition)}"))
    yield listed
    yield [Line(text, "whole") for text in closing]
    yield _verdict(reports)


def _passed_run(report: Report) -> str:
    run, summary = report.run, report.summary
    undecided = f", {summary.undecided:,} undecided" if summary.undecided else ""
    name, run_id = one_line(run.definition), one_line(run.id)
    took = seconds(duration(report))
    return f"{VERDICT_WORDS[Verdict.PASS]} {name}: {passed_count([summary])}{undecided}, run {run_id}, took {took}"


def _heading(report: Report, *, has_places: bool) -> Iterator[Line]:
    """Yield the heading, and the path of a definition unless cases follow with their places."""
    yield Line(heading(report), "title")
    if report.file and report.file != report.run.definition and not has_places:
        yield Line(one_line(report.file, chars=400), "dim")


def _cases(report: Report, findings: Findings, *, is_all: bool) -> Iterator[Line | CaseDetails]:
    for group in group_cases(report) if is_all else findings.groups:
        if group.verdict is Verdict.PASS:
            word = STATE_WORDS[PARTLY] if is_partly_judged(report, group.case) else VERDICT_WORDS[group.verdict]
            name = group_title(report, group) if group.case.is_quarantined else group_name(group)
            start = f"{word:{_WORD_CHARS}} {name}"
            yield Line(f"{start} {passed_text(group.case)}".rstrip(), "word")
        else:
            yield CaseDetails(report, group, traceback=is_all)
    if is_all:
        return
    for numbers, what in ((findings.failing, "did not pass"), (findings.undecided, "undecided")):
        if numbers:
            yield Line(f"... and {_others(numbers)} {what}; -v or the html report shows them in full")
    if findings.known and report.baseline:
        label, number = one_line(report.baseline.comparison.before), len(findings.known)
        cases = f"{'case' if number == 1 else 'cases'} {one_line(number_ranges(findings.known), chars=_RANGES_CHARS)}"
        yield Line(f"{count(number, 'known failure')}, in {label}: {cases}; -v or the html report has all")
    if any(group.case.traceback for group in findings.groups):
        yield Line("Add -v to see the traceback of each error.", "dim")


def _others(numbers: Sequence[int]) -> str:
    return f"{count(len(numbers), 'more case')} ({one_line(number_ranges(numbers), chars=_RANGES_CHARS)})"


def _run_verdict(report: Report) -> Iterator[Line]:
    first, *others = verdict_lines(report)
    yield Line(first, "good" if counts_as_passed(report) else "bad")
    yield from map(Line, others)


def _verdict(reports: Sequence[Report], *, is_short: bool = False) -> Iterator[Line]:
    """Yield the verdict on one run, or on a suite; a short report also has one line for each run that did not pass."""
    if len(reports) == 1:
        yield from _run_verdict(reports[0])
        return
    bad = [each for each in reports if not counts_as_passed(each)]
    for report in bad[:_SHOWN_RUNS] if is_short else ():
        yield Line(next(verdict_lines(report)), "bad")
    if is_short and len(bad) > _SHOWN_RUNS:
        yield Line(f"... and {count(len(bad) - _SHOWN_RUNS, 'more run')} did not pass")
    first, *others = suite_lines(reports)
    yield Line(first, "bad" if bad else "good")
    yield from map(Line, others)


def _details(part: CaseDetails) -> str:
    report, (case, verdict, *_), traceback = part
    start = f"{VERDICT_WORDS[verdict]:{_WORD_CHARS}} {group_title(report, part.group)}"
    where = location(report, case)
    head = f"{start} {one_line(where, chars=400)}" if where else start
    return f"{head}\n{case_text(case, report.summary, indent=_DETAILS_INDENT, traceback=traceback)}"
