"""Runs on a terminal: a table of cases for each run, and a panel for each case that did not pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from evalmeta.model.run import Verdict
from evalmeta.report import human
from evalmeta.report.details import all_utterances, blocks, group_cases, group_name, undecided_note, why_not_passed
from evalmeta.report.report import VERDICT_WORDS, has_passed, location, verdict_of
from evalmeta.report.summary import heading, summary_lines, totals
from evalmeta.report.text import clean, one_line, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from evalmeta.report.details import CaseGroup, Field
    from evalmeta.report.report import Report


_LABEL_CHARS: Final = 9
_STYLES: Final = {
    Verdict.PASS: "green",
    Verdict.FAILURE: "bold red",
    Verdict.ERROR: "bold magenta",
    Verdict.UNDECIDED: "yellow",
}


def print_human(reports: Sequence[Report], console: Console) -> None:
    """Print runs as tables and panels on a terminal, and as plain lines elsewhere; texts are never read as markup."""
    if not console.is_terminal:
        console.file.write(human.render(reports))
        return
    for report in reports:
        console.print(_text(heading(report), "bold"))
        if report.file:
            console.print(_text(one_line(report.file, chars=400), "dim"))
        if report.run.cases:
            console.print(_table(report))
        for group in group_cases(report):
            if group.verdict is not Verdict.PASS:
                console.print(_panel(report, group))
        first, *others = summary_lines(report)
        style = "bold green" if has_passed(report) else "bold red"
        console.print(Text("\n").join([_text(first, style), *map(_text, others)]))
        console.print()
    if len(reports) > 1:
        console.print(_text(totals(reports), "bold"))


def _table(report: Report) -> Table:
    iterations = report.run.options.iterations > 1
    table = Table(box=box.SIMPLE_HEAD, expand=True)
    table.add_column("#", justify="right", no_wrap=True)
    if iterations:
        table.add_column("iteration", justify="right", no_wrap=True)
    labels = report.facts.has_labels
    if labels:
        table.add_column("case", ratio=2, no_wrap=True, overflow="ellipsis")
    table.add_column("utterance", ratio=3, no_wrap=True, overflow="ellipsis")
    table.add_column("verdict", no_wrap=True)
    table.add_column("what failed", ratio=2, no_wrap=True, overflow="ellipsis")
    for case in report.run.cases:
        verdict = verdict_of(report, case)
        why = undecided_note(case) if verdict is Verdict.PASS else why_not_passed(case, report.summary)
        cells = [f"{case.number}", *([f"{case.iteration}"] if iterations else [])]
        cells += [*([one_line(case.label)] if labels else []), one_line(all_utterances(case))]
        table.add_row(*map(_text, cells), _text(VERDICT_WORDS[verdict], _STYLES[verdict]), _text(why))
    return table


def _panel(report: Report, group: CaseGroup) -> Panel:
    case, verdict = group.case, group.verdict
    parts: list[Text | Table] = []
    for title, fields in blocks(case, report.summary):
        if title:
            parts += [Text(), _text(one_line(title), "bold")]
        parts.append(_grid(fields))
    where = location(report, case)
    return Panel(
        Group(*parts),
        title=_text(f"{VERDICT_WORDS[verdict]} {group_name(group)}", _STYLES[verdict]),
        title_align="left",
        subtitle=_text(one_line(where, chars=400)) if where else None,
        subtitle_align="left",
        border_style=_STYLES[verdict],
    )


def _grid(fields: Sequence[Field]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, min_width=_LABEL_CHARS)
    grid.add_column(overflow="fold")
    for field in fields:
        grid.add_row(_text(field.label, "dim"), _text(shorten(field.text)))
    return grid


def _text(text: str, style: str = "") -> Text:
    return Text(clean(text), style)
