"""Progress of runs and jobs: bars on a terminal, elsewhere plain lines for runs, and nothing for jobs."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.report.text import LINE_CHARS, count, one_line

if TYPE_CHECKING:
    from typing import Self

    from rich.console import Console
    from rich.progress import TaskID

    from evalmeta.report.terminal import Bars


# Logs of CI show that runs are alive.
_LINE_SECONDS: Final = 30
_MINUTE: Final = 60


class _Display(ExitStack):
    """Bars that are shown inside a `with` statement, if they are enabled and the console is a terminal."""

    _counts_results = False

    def __init__(self, console: Console, *, enabled: bool) -> None:
        super().__init__()
        self._console = console
        self._enabled = enabled
        self._bars: Bars | None = None

    def __enter__(self) -> Self:
        if self._enabled and self._console.is_terminal and not self._console.is_dumb_terminal:
            from evalmeta.report.terminal import make_bars

            self._bars = make_bars(self._console, counts_results=self._counts_results)
            self._bars.start()
            self.callback(self._bars.stop)
        return self


class Progress(_Display):
    """The progress of runs, each known by its id: `start`, then `update`, then `finish`.

    With several `runs`, a first line counts all of them. Without a terminal, a line is written at least every 30
    seconds, as long as `update` is called.
    """

    _counts_results = True

    def __init__(self, console: Console, *, enabled: bool, runs: int = 1) -> None:
        super().__init__(console, enabled=enabled)
        self._rows: dict[str, _Row] = {}
        self._suite = _Suite(runs)
        self._next_line = time.monotonic() + _LINE_SECONDS

    def __enter__(self) -> Self:
        super().__enter__()
        if self._bars and self._suite.runs > 1:
            self._bars.headline = self._suite.text
        return self

    @property
    def counts(self) -> str:
        """Return the counts of all runs on one line."""
        return ", ".join(self._suite.counts().values())

    def start(self, run_id: str, total: int, name: str, *, iterations: int = 1) -> None:
        """Begin a run with `total` case results in all iterations; 0 if the number is not known yet.

        `iterations` is 0 if some cases run more often than others.
        """
        row = self._rows[run_id] = _Row(f" (run {run_id})" if name else f"run {run_id}", name, total, iterations)
        self._suite.rows.append(row)
        if self._bars:
            label = row.label(self._bars.label_chars(row.total))
            row.bar = self._bars.add_task(label, total=total or None, passed=0, failed=0)
        if self._suite.runs == 1:
            self._write_line(f"{row.label()}: started{row.cases()}")

    def update(
        self, run_id: str, done: int, failed: int = 0, *, errors: int = 0, undecided: int = 0, total: int = 0
    ) -> None:
        """Set the numbers of case results that are done, and of those that failed (with `errors`) or are undecided.

        The total remains unless it is not 0.
        """
        row = self._rows[run_id]
        row.done, row.failed, row.errors, row.undecided = done, failed, errors, undecided
        row.total = total or row.total
        if self._bars and row.bar is not None:
            self._bars.update(
                row.bar,
                description=row.label(self._bars.label_chars(row.total)),
                completed=done,
                total=row.total or None,
                passed=row.passed,
                failed=failed,
            )
        self._write_due_line(row)

    def finish(
        self, run_id: str, *, failed: int | None = None, undecided: int | None = None, is_over: bool = True
    ) -> None:
        """End a run, or the wait for it; the numbers are those of case results, as the run's summary counts them."""
        row = self._rows.pop(run_id)
        row.has_ended = True
        row.failed = row.failed if failed is None else failed
        row.undecided = row.undecided if undecided is None else undecided
        if self._bars and row.bar is not None:
            # Of many runs, only those that are in progress have a bar.
            self._bars.stop_task(row.bar) if self._suite.runs == 1 else self._bars.remove_task(row.bar)
        if self._suite.runs > 1:
            # The report has a line for each run.
            self._write_due_line(row)
            return
        unjudged = f", {row.undecided:,} undecided" if row.undecided else ""
        results = count(row.total, "case" if row.iterations == 1 else "case result")
        end = "finished" if is_over else "stopped waiting"
        self._write_line(f"{row.label()}: {end}, {row.done:,} of {results}, {row.failed:,} not passed{unjudged}")

    def _write_due_line(self, row: _Row) -> None:
        if time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _LINE_SECONDS
            self._write_line(self._suite.text() if self._suite.runs > 1 else f"{row.label()}: {self._suite.text()}")

    def _write_line(self, line: str) -> None:
        if self._enabled and not self._bars:
            # A full disk or a terminal that has gone does not end the runs.
            with suppress(OSError):
                self._console.file.write(f"{line}\n")
                self._console.file.flush()


class JobProgress(_Display):
    """The progress of one deployment or retrieve; the label names the bar, such as `Deploy`."""

    def __init__(self, console: Console, label: str, *, enabled: bool) -> None:
        super().__init__(console, enabled=enabled)
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
    """A run: its id in words, its name, and the numbers of its case results."""

    id: str
    name: str
    total: int
    iterations: int
    bar: TaskID | None = None
    done: int = 0
    failed: int = 0
    errors: int = 0
    undecided: int = 0
    has_ended: bool = False

    @property
    def passed(self) -> int:
        return self.done - self.failed - self.undecided

    def label(self, chars: int = LINE_CHARS) -> str:
        """Return the name and the id; only the name is shortened."""
        return f"{one_line(self.name, chars=max(1, chars - len(self.id)))}{self.id}"

    def cases(self) -> str:
        """Return the number of cases, of which each iteration runs all."""
        if not self.total:
            return ""
        if not self.iterations:
            return f", {count(self.total, 'case result')}"
        cases = count(self.total // self.iterations, "case")
        return f", {cases} x {self.iterations:,} iterations" if self.iterations > 1 else f", {cases}"


class _Suite:
    """The counts of all runs of a command, the number of which is `runs`; `rows` are those that have begun."""

    def __init__(self, runs: int) -> None:
        self.runs = runs
        self.rows: list[_Row] = []
        self._started = time.monotonic()

    def text(self, width: int = LINE_CHARS) -> str:
        """Return the counts in one line, with the rate and an estimate of the time that is left.

        In a narrow line, the least important parts are left out.
        """
        parts = self.counts() | self._pace()
        for name in ("rate", "runs", "left", "undecided", "errors"):
            if len(", ".join(parts.values())) <= width:
                break
            parts.pop(name, None)
        return ", ".join(parts.values())

    def counts(self) -> dict[str, str]:
        """Return the counts by what they are."""
        rows, parts = tuple(self.rows), dict[str, str]()
        done, total = sum(row.done for row in rows), sum(row.total for row in rows)
        if self.runs > 1:
            ended = sum(row.has_ended or 0 < row.total <= row.done for row in rows)
            parts["runs"] = f"{ended:,} of {self.runs:,} runs"
        # The totals of runs that have not begun are not known yet.
        is_known = len(rows) == self.runs and all(row.total for row in rows)
        parts["cases"] = f"{done:,} of {count(total, 'case')}" if is_known else count(done, "case")
        errors = sum(row.errors for row in rows)
        parts["passed"] = f"{sum(row.passed for row in rows):,} passed"
        parts["failed"] = f"{sum(row.failed for row in rows) - errors:,} failed"
        if undecided := sum(row.undecided for row in rows):
            parts["undecided"] = f"{undecided:,} undecided"
        if errors:
            parts["errors"] = count(errors, "error")
        return parts

    def _pace(self) -> dict[str, str]:
        done, total = sum(row.done for row in self.rows), sum(row.total for row in self.rows)
        elapsed = max(time.monotonic() - self._started, 1e-9)
        rate = done / elapsed
        parts = {"rate": f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min"}
        expected = total * self.runs / max(1, len(self.rows))
        if done and expected > done:
            left = math.ceil(elapsed * (expected / done - 1))
            minutes = math.ceil(left / _MINUTE)
            parts["left"] = f"about {left} s left" if left < _MINUTE else f"about {minutes:,} min left"
        return parts
