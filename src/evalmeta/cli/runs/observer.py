"""What the command line prints while tests run."""

from __future__ import annotations

import asyncio
import sys
import threading
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import click

from evalmeta import api
from evalmeta.cli.groups import completed
from evalmeta.cli.orgs import print_target, run_async
from evalmeta.cli.output import console, note, print_warnings, warn
from evalmeta.errors import Suggestion
from evalmeta.report.progress import Progress
from evalmeta.report.text import escape_commands

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import TextIO

    from evalmeta.api.org_targets import Target
    from evalmeta.api.runs.finding import RunHandle
    from evalmeta.model.problem import Problem
    from evalmeta.package.project import Project
    from evalmeta.report.human import Detail

_T = TypeVar("_T")


class Printer(NamedTuple):
    """Prints what an `Observer` of runs learns, to stderr; stdout has what was started, if people read it.

    Attributes:
        detail: how much is said of files that are not tests.
        has_report: whether stdout is reserved for a report.
    """

    detail: Detail = "failures"
    has_report: bool = False

    def run(self, work: Coroutine[None, None, _T], /) -> _T:
        """Carry out a coroutine, until a signal cancels it."""
        return run_async(work)

    def note(self, text: str, /) -> None:
        """Print a remark."""
        note(text)

    def warn(self, text: str, /) -> None:
        """Print a warning."""
        warn(text)

    def warn_of(self, problems: Sequence[Problem], paths: Sequence[Path] = (), /) -> None:
        """Print a line for each code of warnings."""
        print_warnings(problems, paths=[*map(str, paths)])

    def show_others(self, others: Mapping[Path, str], /) -> None:
        """Print how many files are not tests, or which, unless only the verdict is shown."""
        if self.detail != "verdict" and (text := api.discovery.others_note(others, verbose=self.detail == "all")):
            note(text)

    def show_org(self, project: Project, target: Target | None, /) -> None:
        """Print which org a command works with."""
        print_target(project, target)

    def show_started(self, what: str, run: RunHandle, /) -> None:
        """Print that a run was started, and how to wait for it."""
        suggestion = Suggestion(f"{what} Wait for it", "test", "resume", "--job-id", run.id)
        click.echo(completed(suggestion), err=self.has_report)

    @contextmanager
    def progress(self, runs: int, /) -> Iterator[Progress]:
        """Show progress on stderr, unless the command is called with --quiet, and there also what agents print."""
        context = click.get_current_context(silent=True)
        is_hidden = context is not None and bool(context.params.get("quiet"))
        # What an agent prints must not mix with a report.
        with Progress(console(err=True), enabled=not is_hidden, runs=runs) as progress, agent_output():
            yield progress


class _Lines:
    """A stream that keeps what one thread or task writes until its line ends; all else is as on stderr."""

    def __init__(self) -> None:
        self._unfinished: dict[tuple[int, int], str] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(sys.stderr, name)

    def write(self, text: str) -> int:
        """Write the lines that end in the text, and keep the rest."""
        writer = threading.get_ident(), _current_task()
        lines, newline, rest = (self._unfinished.pop(writer, "") + text).rpartition("\n")
        if rest:
            self._unfinished[writer] = rest
        if newline:
            sys.stderr.write(escape_commands(f"{lines}\n"))
        return len(text)

    def writelines(self, texts: Iterable[str]) -> None:
        """Write texts."""
        self.write("".join(texts))

    def flush(self) -> None:
        """Do nothing: the end of a line is what writes it."""

    def finish(self) -> None:
        """Write what has no end of line."""
        for rest in self._unfinished.values():
            sys.stderr.write(escape_commands(f"{rest}\n"))


def _current_task() -> int:
    with suppress(RuntimeError):
        return id(asyncio.current_task())
    return 0


@contextmanager
def agent_output() -> Iterator[None]:
    """Write what is printed meanwhile to stderr, in whole lines that are not commands to a CI system."""
    lines = _Lines()
    try:
        with redirect_stdout(cast("TextIO", lines)):
            yield
    finally:
        lines.finish()
