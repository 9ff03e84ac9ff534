"""Progress of runs and jobs: bars on a terminal; elsewhere two plain lines for each run, and nothing for jobs."""

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


class _Display:
    """Bars that are shown inside a `with` statement, if they are enabled and the console is a terminal."""

    def __init__(self, console: Console, *, enabled: bool, counts_cases: bool) -> None:
        self._console = console
        self._enabled = enabled
        self._counts_cases = counts_cases
        self._bars: Bars | None = None

    def __enter__(self) -> Self:
        if self._enabled and self._console.is_terminal and not self._console.is_dumb_terminal:
            self._bars = _bars(self._console, counts_cases=self._counts_cases)
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars:
            self._bars.stop()


class Progress(_Display):
    """The progress of runs, each known by its key: `start`, then `update`, then `finish`."""

    def __init__(self, console: Console, *, enabled: bool) -> None:
        super().__init__(console, enabled=enabled, counts_cases=True)
        self._rows: dict[str, _Row] = {}

    def start(self, key: str, total: int, label: str) -> None:
        """Begin a run of `total` cases; 0 if the number is not known yet."""
        label = one_line(label)
        bar = self._bars.add_task(label, total=total or None, passed=0, failed=0) if self._bars else None
        self._rows[key] = _Row(label, total, bar)
        self._write_line(f"{label}: started, {count(total, 'case')}" if total else f"{label}: started")

    def update(self, key: str, done: int, failed: int = 0, *, total: int = 0) -> None:
        """Set the numbers of cases that are done and that did not pass, and the total unless it is 0."""
        row = self._rows[key]
        row.done, row.failed, row.total = done, failed, total or row.total
        if self._bars and row.bar is not None:
            self._bars.update(row.bar, completed=done, total=row.total or None, passed=done - failed, failed=failed)

    def finish(self, key: str) -> None:
        """End a run."""
        row = self._rows.pop(key)
        if self._bars and row.bar is not None:
            self._bars.stop_task(row.bar)
        cases = f"{row.done:,} of {count(row.total, 'case')}"
        self._write_line(f"{row.label}: finished, {cases}, {row.failed:,} not passed")

    def _write_line(self, line: str) -> None:
        if self._enabled and not self._bars:
            self._console.file.write(f"{line}\n")
            self._console.file.flush()


class JobProgress(_Display):
    """The progress of one deployment or retrieve; the label names the bar, such as `Deploy`."""

    def __init__(self, console: Console, label: str, *, enabled: bool) -> None:
        super().__init__(console, enabled=enabled, counts_cases=False)
        self._label = one_line(label)

    def __enter__(self) -> Self:
        super().__enter__()
        if self._bars:
            self._bars.add_task(self._label, total=None)
        return self

    def update(self, status: str, done: int = 0, total: int = 0) -> None:
        """Set the job's status, and the numbers of components that are done and in total."""
        if self._bars:
            numbers = f", {done:,} of {total:,}" if total else ""
            text = f"{self._label}: {one_line(status)}{numbers}"
            self._bars.update(self._bars.task_ids[0], description=text, completed=done, total=total or None)


@dataclass(slots=True)
class _Row:
    label: str
    total: int
    bar: TaskID | None
    done: int = 0
    failed: int = 0


def _bars(console: Console, *, counts_cases: bool) -> Bars:
    from rich import progress  # noqa: PLC0415 - only terminals need it

    columns = [progress.TextColumn("{task.description}", markup=False), progress.BarColumn()]
    if counts_cases:
        columns += [
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[passed]} passed", style="green"),
            progress.TextColumn("{task.fields[failed]} not passed", style="red"),
        ]
    return progress.Progress(*columns, progress.TimeElapsedColumn(), console=console, transient=True)
