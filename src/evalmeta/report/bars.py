"""The bars that show the progress of runs and jobs on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import progress
from rich.text import Text

from evalmeta.report.columns import BAR_CHARS, BAR_FROM, FAILED_FROM, JOB_BAR_FROM, PASSED_FROM, TIME_FROM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import Console, RenderableType


class Bars(progress.Progress):
    """Bars below a headline, which is made anew with each refresh for the width of the terminal."""

    headline: Callable[[int], str] | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yield the headline, if there is one, and the bars."""
        if self.headline:
            yield Text(self.headline(self.console.width), no_wrap=True, overflow="ellipsis")
        yield self.make_tasks_table(self.tasks)


def make_bars(console: Console, *, counts_results: bool) -> Bars:
    """Return bars with the columns that fit into the console; those of runs count results."""
    columns: list[tuple[int, progress.ProgressColumn]] = [
        (0, progress.TextColumn("{task.description}", markup=False)),
        (BAR_FROM if counts_results else JOB_BAR_FROM, progress.BarColumn(bar_width=BAR_CHARS)),
    ]
    if counts_results:
        columns += [
            (0, progress.MofNCompleteColumn()),
            (PASSED_FROM, progress.TextColumn("{task.fields[passed]} passed", style="green")),
            (FAILED_FROM, progress.TextColumn("{task.fields[failed]} not passed", style="red")),
        ]
    columns.append((TIME_FROM, progress.TimeElapsedColumn()))
    shown = (column for narrowest, column in columns if console.width >= narrowest)
    return Bars(*shown, console=console, transient=True)
