"""Runs on a terminal, drawn with rich: the bars of their progress, and their reports.

A report has the parts of `evalmeta.report.human`, with colours and a panel for each case that is shown in full.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from rich import progress
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from evalmeta.model.run import Verdict
from evalmeta.report.details import SHOWN_RESULTS, Field, blocks, group_title
from evalmeta.report.human import CaseDetails, Detail, Line, human_parts, stream
from evalmeta.report.report import VERDICT_WORDS, Report
from evalmeta.report.steps import ERROR_WORD, STEPS_LABEL
from evalmeta.report.text import clean, escape_commands, one_line, shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


_BAR_CHARS: Final = 20
# The narrowest terminals that show a column of bars.
_BAR_FROM: Final = 120
_JOB_BAR_FROM: Final = 80
_PASSED_FROM: Final = 100
_FAILED_FROM: Final = 80
_TIME_FROM: Final = 60
_LABEL_CHARS: Final = 9
# The borders of a panel, and the gaps of the columns in it.
_FRAME_CHARS: Final = 8
_ERROR_LINE: Final = rf"(?m)^ +{ERROR_WORD}.*"
_STYLES: Final = {
    Verdict.PASS: "green",
    Verdict.FAILURE: "bold red",
    Verdict.ERROR: "bold magenta",
    Verdict.UNDECIDED: "yellow",
}
_WORD_STYLES: Final = {VERDICT_WORDS[verdict]: style for verdict, style in _STYLES.items()}
_LINE_STYLES: Final = {"title": "bold", "dim": "dim", "good": "bold green", "bad": "bold red"}


def print_human(
    reports: Sequence[Report], console: Console, *, detail: Detail = "failures", closing: Sequence[str] = ()
) -> None:
    """Print runs on a terminal, and as plain lines elsewhere; texts are never read as markup."""
    if not console.is_terminal:
        for text in stream(reports, detail=detail, closing=closing):
            console.file.write(text)
        return
    for part in human_parts(reports, detail=detail, closing=closing):
        if isinstance(part, Line):
            _print_line(part, console)
            continue
        if where := part.report.place_in_list(part.group.case):
            _print_line(Line(one_line(where, chars=400), "whole"), console)
        console.print(_panel(part, console.width))


def _print_line(line: Line, console: Console) -> None:
    """Print a line; if it is broken into several, none of them is a command to a CI system (FORCE_COLOR)."""
    for part in _broken(line, console.width):
        part.plain = escape_commands(part.plain)
        console.print(part, soft_wrap=True)


def _broken(line: Line, width: int) -> Sequence[Text]:
    """Return the lines of a terminal; a command or a place that is broken into lines could not be copied."""
    text, style = clean(line.text), _LINE_STYLES.get(line.style, "")
    word = text.split(" ", 1)[0] if line.style == "word" else ""
    lines = [text]
    if line.style != "whole" and len(text) > width:
        rest = text[len(word) :].lstrip()
        start = text.removesuffix(rest)
        indent = " " * (len(start) if word else len(start) + 2)
        lines = textwrap.wrap(
            rest, width, initial_indent=start, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    styled = [Text(text, style) for text in lines]
    styled[0].stylize(_WORD_STYLES.get(word, ""), 0, len(word))
    return styled


def _panel(part: CaseDetails, width: int) -> Panel:
    report, group, is_verbose = part
    style = _STYLES[group.verdict]
    parts: list[Text | Table] = []
    steps_chars = max(width - _FRAME_CHARS - _LABEL_CHARS, 1) if is_verbose else 0
    most = None if is_verbose else SHOWN_RESULTS
    for title, fields in blocks(group.case, report.summary, traceback=is_verbose, steps_chars=steps_chars, most=most):
        if title:
            parts += [Text(), _text(one_line(title), "bold")]
        parts.append(_grid(fields))
    head = _text(f"{VERDICT_WORDS[group.verdict]} {group_title(report, group)}", style)
    return Panel(Group(*parts), title=head, title_align="left", border_style=style)


def _grid(fields: Sequence[Field]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True, min_width=_LABEL_CHARS)
    grid.add_column(overflow="fold")
    for field in fields:
        text = _text(shorten(field.text))
        if field.label == STEPS_LABEL:
            text.highlight_regex(_ERROR_LINE, "red")
        grid.add_row(_text(field.label, "dim"), text)
    return grid


def _text(text: str, style: str = "") -> Text:
    return Text(clean(text), style)


class Bars(progress.Progress):
    """Bars below a headline, which is made anew with each refresh for the width of the terminal."""

    headline: Callable[[int], str] | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the headline, if there is one, and the bars."""
        if self.headline:
            yield Text(self.headline(self.console.width), no_wrap=True, overflow="ellipsis")
        yield self.make_tasks_table(self.tasks)

    def label_chars(self, total: int) -> int:
        """Return the width that is left for the label of a run with this number of case results."""
        width, digits = self.console.width, len(str(total))
        columns = (
            (0, 2 * digits + 1),
            (_BAR_FROM, _BAR_CHARS),
            (_PASSED_FROM, digits + len(" passed")),
            (_FAILED_FROM, digits + len(" not passed")),
            (_TIME_FROM, len("0:00:00")),
        )
        return width - sum(chars + 1 for narrowest, chars in columns if width >= narrowest)


def make_bars(console: Console, *, counts_results: bool) -> Bars:
    """Return bars with the columns that fit into the console; those of runs count results."""
    columns: list[tuple[int, progress.ProgressColumn]] = [
        (0, progress.TextColumn("{task.description}", markup=False)),
        (_BAR_FROM if counts_results else _JOB_BAR_FROM, progress.BarColumn(bar_width=_BAR_CHARS)),
    ]
    if counts_results:
        columns += [
            (0, progress.MofNCompleteColumn()),
            (_PASSED_FROM, progress.TextColumn("{task.fields[passed]} passed", style="green")),
            (_FAILED_FROM, progress.TextColumn("{task.fields[failed]} not passed", style="red")),
        ]
    columns.append((_TIME_FROM, progress.TimeElapsedColumn()))
    shown = (column for narrowest, column in columns if console.width >= narrowest)
    return Bars(*shown, console=console, transient=True)
