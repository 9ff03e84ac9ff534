"""Runs as GitHub-flavoured Markdown, for job summaries ($GITHUB_STEP_SUMMARY) and comments on pull requests."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING, Final

from evalmeta.model.run import Verdict
from evalmeta.report.averages import case_cell, shown_averages
from evalmeta.report.details import asked, case_text, group_number, grouped, undecided_reasons
from evalmeta.report.human import WORDS, totals
from evalmeta.report.report import decision, duration, has_passed, mean_cells, place
from evalmeta.report.text import count, decimal, one_line, percent, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.report.details import CaseGroup
    from evalmeta.report.report import Report


# GitHub takes 65,536 characters in a comment, 1 MiB in a job summary.
_MAX_CHARS: Final = 60_000
# What Markdown, HTML, tables and GitHub itself (mentions, references, emoji, formulas) give a meaning to.
_ACTIVE: Final = re.compile(r"[&<>`*_~\[\]\\|@#$^!]|:(?!\s)|(?<=www)\.", re.IGNORECASE)
_HEAD: Final = (
    "| | definition | cases | passed | failed | errors | undecided | pass rate | took |",
    "|---|---|--:|--:|--:|--:|--:|--:|--:|",
)
_SIGNS: Final = {True: "✅", False: "❌"}
_MEANS: Final = {Verdict.PASS: "✅", Verdict.FAILURE: "❌", Verdict.ERROR: "❌", Verdict.UNDECIDED: "❔"}


def render(reports: Sequence[Report]) -> str:
    """Writes a table of the runs, then the cases that did not pass, each folded up.

    The text is at most 60,000 characters long, so that it fits into a comment: what does not
    is counted at the end. No text of a test or an answer can act as Markdown or HTML.
    """
    kept, left_out, chars = [], 0, 0
    for block in _blocks(reports):
        if chars + len(block) > _MAX_CHARS:
            left_out += 1
            continue
        kept.append(block)
        chars += len(block)
    if left_out:
        kept.append(f"\n{count(left_out, 'part')} more did not fit in here; the other formats have them.\n")
    return "".join(kept)


def _blocks(reports: Sequence[Report]) -> Iterator[str]:
    yield "".join(f"{line}\n" for line in _HEAD)
    for report in reports:
        yield f"| {' | '.join(_cells(report))} |\n"
    if len(reports) > 1:
        yield f"\n{totals(reports)}\n"
    for report in reports:
        yield from _section(report)


def _cells(report: Report) -> Iterator[str]:
    summary = report.summary
    yield _SIGNS[has_passed(report)] if report.run.status.is_over else "⏳"
    yield _code(one_line(report.run.definition))
    for number in (summary.total, summary.passed, summary.failed, summary.errors, summary.undecided):
        yield f"{number:,}"
    yield "none" if summary.pass_rate is None else percent(summary.pass_rate)
    yield seconds(duration(report.run))


def _section(report: Report) -> Iterator[str]:
    yield f"\n### {_code(one_line(report.run.definition))}\n\n{_prose(one_line(decision(report), chars=400))}\n"
    yield from filter(None, (_averages(report), _measures(report)))
    for name, number, reason in undecided_reasons(report):
        yield f"\n- undecided: {_code(one_line(name))}, {count(number, 'result')}: {_prose(reason)}\n"
    for group in grouped(report):
        if group.verdict is not Verdict.PASS:
            yield _details(report, group)


def _details(report: Report, group: CaseGroup) -> str:
    case, name = group.case, html.escape(group_number(group), quote=False)
    head = f"<b>{WORDS[group.verdict]}</b> {name} {_html_code(one_line(asked(case)))}"
    where = place(report, case)
    at = f"\n{_code(one_line(where, chars=400))}\n" if where else ""
    # An empty line ends an HTML block of Markdown, but not one that begins with <pre>.
    text = html.escape(case_text(case, report.summary), quote=False)
    return f"\n<details><summary>{head}</summary>\n{at}\n<pre>{text}</pre>\n\n</details>\n"


def _averages(report: Report) -> str:
    """Writes a table of the means that there are; of many, those that missed come first."""
    averages, left_out = shown_averages(report)
    if not averages:
        return ""
    rows = ["| | case | average | mean | threshold | results |", "|---|---|---|--:|--:|--:|"]
    for each in averages:
        cells = _code(case_cell(each)), _code(one_line(each.name)), *mean_cells(each), f"{each.count:,}"
        rows.append(f"| {_MEANS[each.verdict]} | {' | '.join(cells)} |")
    more = f"\nand {count(left_out, 'more average')}\n" if left_out else ""
    return "\n" + "".join(f"{row}\n" for row in rows) + more


def _measures(report: Report) -> str:
    """Writes a table of what was measured and not judged."""
    measures = report.statistics.measures if report.statistics else ()
    if not measures:
        return ""
    rows = ["| measured | mean | results |", "|---|--:|--:|"]
    rows += [f"| {_code(one_line(each.name))} | {decimal(each.mean)} | {each.count:,} |" for each in measures]
    return "\n" + "".join(f"{row}\n" for row in rows)


def _html_code(text: str) -> str:
    return f"<code>{html.escape(text, quote=False)}</code>"


def _code(text: str) -> str:
    """Gives text in a code element, where GitHub looks for no mentions."""
    return f"<code>{_escape(text)}</code>"


def _prose(text: str) -> str:
    # GitHub looks for @names and #numbers in what is shown: a space of no width keeps them apart.
    return _escape(text).replace("&#64;", "&#64;&#8203;").replace("&#35;", "&#35;&#8203;")


def _escape(text: str) -> str:
    """Writes characters that could act as character references, which never are structure (CommonMark 2.5)."""
    return _ACTIVE.sub(lambda match: f"&#{ord(match[0])};", text)
