"""How far runs are while they go on: bars on a terminal, two plain lines a run elsewhere.

How far a deployment or retrieve is while it goes on: a bar on a terminal, nothing elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalmeta.report.text import count, one_line

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


@dataclass(slots=True)
class _Row:
    label: str
    total: int
    bar: TaskID | None
    done: int = 0
    failed: int = 0


class Progress:
    """Shows runs going on, from `start` over `update` to `finish`; `key` tells them apart.

    Args:
        console: where to show it; give the one of stderr.
        enabled: without it nothing is shown.
    """

    def __init__(self, console: Console, *, enabled: bool) -> None:
        self._console = console
        self._enabled = enabled
        self._bars: Bars | None = None
        self._rows: dict[str, _Row] = {}

    def __enter__(self) -> Self:
        if self._enabled and self._console.is_terminal and not self._console.is_dumb_terminal:
            self._bars = _bars(self._console)
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars:
            self._bars.stop()

    def start(self, key: str, total: int, label: str) -> None:
        """Begins a run of `total` cases; 0 when that is not known yet."""
        label = one_line(label)
        bar = self._bars.add_task(label, total=total or None, passed=0, failed=0) if self._bars else None
        self._rows[key] = _Row(label, total, bar)
        self._say(f"{label}: started, {count(total, 'case')}" if total else f"{label}: started")

    def update(self, key: str, done: int, failed: int = 0, *, total: int = 0) -> None:
        """Says how many cases of a run are done so far, how many of these did not pass, and of how many if that is new.

        A total of 0 says nothing.
        """
        row = self._rows[key]
        row.done, row.failed, row.total = done, failed, total or row.total
        if self._bars and row.bar is not None:
            self._bars.update(row.bar, completed=done, total=row.total or None, passed=done - failed, failed=failed)

    def finish(self, key: str) -> None:
        """Ends a run."""
        row = self._rows.pop(key)
        if self._bars and row.bar is not None:
            self._bars.stop_task(row.bar)
        self._say(f"{row.label}: finished, {row.done:,} of {count(row.total, 'case')}, {row.failed:,} not passed")

    def _say(self, line: str) -> None:
        if self._enabled and not self._bars:
            self._console.file.write(f"{line}\n")
            self._console.file.flush()


def _bars(console: Console) -> Bars:
    # rich's bars are loaded only for a terminal.
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
    from rich.progress import Progress as Bars  # noqa: PLC0415

    return Bars(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[passed]} passed", style="green"),
        TextColumn("{task.fields[failed]} not passed", style="red"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )


class JobProgress:
    """Shows one job going on; use it as a context manager.

    Args:
        console: where to show it; give the one of stderr.
        label: what is going on.
        enabled: without it nothing is shown.
    """

    def __init__(self, console: Console, label: str, *, enabled: bool) -> None:
        self._console = console
        self._label = one_line(label)
        self._bars: Bars | None = None
        self._enabled = enabled and console.is_terminal and not console.is_dumb_terminal

    def __enter__(self) -> Self:
        if self._enabled:
            self._bars = _job_bars(self._console)
            self._bars.add_task(self._label, total=None)
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars:
            self._bars.stop()

    def update(self, status: str, done: int = 0, total: int = 0) -> None:
        """Says how far the job is: its status, and how many of its components are done."""
        if self._bars:
            count = f", {done:,} of {total:,}" if total else ""
            text = f"{self._label}: {one_line(status)}{count}"
            self._bars.update(self._bars.task_ids[0], description=text, completed=done, total=total or None)


def _job_bars(console: Console) -> Bars:
    # rich's bars are loaded only for a terminal.
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    text = TextColumn("{task.description}", markup=False)
    return Progress(text, BarColumn(), TimeElapsedColumn(), console=console, transient=True)
