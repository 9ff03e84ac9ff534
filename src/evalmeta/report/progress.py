"""Progress of runs and jobs: bars on a terminal, elsewhere plain lines for runs, and nothing for jobs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.report.text import LINE_CHARS, count, one_line, seconds

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID


class _Display:
    """Bars that are shown inside a `with` statement, if they are enabled and the console is a terminal."""

    def __init__(self, console: Console, *, enabled: bool, counts_results: bool) -> None:
        self._console = console
        self._enabled = enabled
        self._counts_results = counts_results
        self._bars: Bars | None = None

    def __enter__(self) -> Self:
        if self._enabled and self._console.is_terminal and not self._console.is_dumb_terminal:
            self._bars = _bars(self._console, counts_results=self._counts_results)
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars:
            self._bars.stop()


class Progress(_Display):
    """The progress of runs, each known by its id: `start`, then `update`, then `finish`.

    With several `runs`, a first line counts all of them; without a terminal it is written every 30 seconds.
    """

    def __init__(self, console: Console, *, enabled: bool, runs: int = 1) -> None:
        super().__init__(console, enabled=enabled, counts_results=True)
        self._rows: dict[str, _Row] = {}
        self._suite = _Suite(runs)
        self._suite_bar: TaskID | None = None
        self._next_line = time.monotonic() + _LINE_SECONDS

    def start(self, run_id: str, total: int, name: str, *, iterations: int = 1) -> None:
        """Begin a run with `total` case results in all iterations; 0 if the number is not known yet."""
        row = self._rows[run_id] = _Row(f" (run {run_id})" if name else f"run {run_id}", name, total, iterations)
        if self._bars:
            if self._suite.runs > 1 and self._suite_bar is None:
                self._suite_bar = self._bars.add_task("", total=self._suite.runs, passed=0, failed=0)
            label = row.label(self._console.width)
            row.bar = self._bars.add_task(label, total=total or None, passed=0, failed=0)
        if self._suite.runs == 1:
            self._write_line(f"{row.label()}: started{row.cases()}")

    def update(self, run_id: str, done: int, failed: int = 0, *, total: int = 0) -> None:
        """Set the numbers of case results that are done and that did not pass, and the total unless it is 0."""
        row = self._rows[run_id]
        self._suite.add(done - row.done, failed - row.failed)
        row.done, row.failed, row.total = done, failed, total or row.total
        if self._bars and row.bar is not None:
            label, total_or_none, passed = row.label(self._console.width), row.total or None, done - failed
            self._bars.update(
                row.bar, description=label, completed=done, total=total_or_none, passed=passed, failed=failed
            )
        self._show_suite()

    def finish(self, run_id: str, *, failed: int | None = None, undecided: int = 0) -> None:
        """End a run; the numbers are those of case results, as the run's summary counts them."""
        row = self._rows.pop(run_id)
        failed = row.failed if failed is None else failed
        self._suite.add(0, failed - row.failed)
        self._suite.finished += 1
        row.failed = failed
        if self._bars and row.bar is not None:
            # Of many runs, only those that are in progress have a bar.
            self._bars.stop_task(row.bar) if self._suite.runs == 1 else self._bars.remove_task(row.bar)
        unjudged = f", {undecided:,} undecided" if undecided else ""
        results = count(row.total, "case result" if row.iterations > 1 else "case")
        self._write_line(f"{row.label()}: finished, {row.done:,} of {results}, {row.failed:,} not passed{unjudged}")
        self._show_suite()

    def _show_suite(self) -> None:
        suite = self._suite
        if suite.runs == 1:
            return
        if self._bars and self._suite_bar is not None:
            passed = suite.done - suite.failed
            label = one_line(suite.text(), chars=self._console.width)
            self._bars.update(
                self._suite_bar, description=label, completed=suite.finished, passed=passed, failed=suite.failed
            )
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _LINE_SECONDS
            self._write_line(suite.text())

    def _write_line(self, line: str) -> None:
        if self._enabled and not self._bars:
            self._console.file.write(f"{line}\n")
            self._console.file.flush()


class JobProgress(_Display):
    """The progress of one deployment or retrieve; the label names the bar, such as `Deploy`."""

    def __init__(self, console: Console, label: str, *, enabled: bool) -> None:
        super().__init__(console, enabled=enabled, counts_results=False)
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
    id: str
    name: str
    total: int
    iterations: int
    bar: TaskID | None = None
    done: int = 0
    failed: int = 0

    def label(self, width: int | None = None) -> str:
        """Return the name and the id; only the name is shortened, on a terminal to the width that is left."""
        others = 0 if width is None else _columns_width(width, len(str(self.total)))
        chars = (LINE_CHARS if width is None else width) - len(self.id) - others
        return f"{one_line(self.name, chars=max(1, chars))}{self.id}"

    def cases(self) -> str:
        """Return the number of cases, of which each iteration runs all."""
        if not self.total:
            return ""
        cases = count(self.total // self.iterations, "case")
        return f", {cases} x {self.iterations:,} iterations" if self.iterations > 1 else f", {cases}"


class _Suite:
    """The counts of all runs of a command, the number of which is `runs`."""

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self.finished = self.done = self.failed = 0
        self._started = time.monotonic()

    def add(self, done: int, failed: int) -> None:
        """Add case results that are done, and those that did not pass."""
        self.done += done
        self.failed += failed

    def text(self) -> str:
        """Return the counts in one line, with the rate and an estimate of the time that is left."""
        elapsed = max(time.monotonic() - self._started, 1e-9)
        text = f"{self.finished:,} of {self.runs:,} runs, {count(self.done, 'case')}, {self.failed:,} not passed"
        text += f", {self.done / elapsed:.1f}/s"
        if 0 < self.finished < self.runs:
            text += f", about {seconds(round(elapsed * (self.runs / self.finished - 1)))} left"
        return text


# Logs of CI show that a suite is alive.
_LINE_SECONDS: Final = 30
_BAR_CHARS: Final = 20
# The narrowest terminals that show a column.
_BAR_FROM: Final = 120
_JOB_BAR_FROM: Final = 80
_PASSED_FROM: Final = 100
_FAILED_FROM: Final = 80
_TIME_FROM: Final = 60


def _columns_width(width: int, digits: int) -> int:
    """Return the width of a run's columns but the first one on a terminal, with the blanks between them."""
    columns = (
        (0, 2 * digits + 1),
        (_BAR_FROM, _BAR_CHARS),
        (_PASSED_FROM, digits + len(" passed")),
        (_FAILED_FROM, digits + len(" not passed")),
        (_TIME_FROM, len("0:00:00")),
    )
    return sum(chars + 1 for narrowest, chars in columns if width >= narrowest)


def _bars(console: Console, *, counts_results: bool) -> Bars:
    from rich import progress  # noqa: PLC0415 - only terminals need it

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
    return progress.Progress(*shown, console=console, transient=True)
