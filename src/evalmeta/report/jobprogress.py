"""How far a deployment or retrieve is while it goes on: a bar on a terminal, nothing elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.report.plain import one_line

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from rich.console import Console
    from rich.progress import Progress

__all__ = ["JobProgress"]


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
        self._bars: Progress | None = None
        self._enabled = enabled and console.is_terminal and not console.is_dumb_terminal

    def __enter__(self) -> Self:
        if self._enabled:
            self._bars = _bars(self._console)
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


def _bars(console: Console) -> Progress:
    # rich's bars are loaded only for a terminal.
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    text = TextColumn("{task.description}", markup=False)
    return Progress(text, BarColumn(), TimeElapsedColumn(), console=console, transient=True)
