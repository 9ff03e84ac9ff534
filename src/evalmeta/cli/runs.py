"""Starting, following and reporting runs, as the `test` commands share it."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from evalmeta.cli.output import note, print_json, wants_colour
from evalmeta.errors import EXIT_EXPECTATION_FAILED, EXIT_FAILED, EXIT_PASSED, EvalmetaError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from rich.console import Console

    from evalmeta.api.tests import FinishedRun
    from evalmeta.client.connection import Connection
    from evalmeta.model.run import RunOptions
    from evalmeta.package.project import Project
    from evalmeta.report.progress import Progress
    from evalmeta.report.report import Report

__all__ = ["RunsOutcome", "carry_on", "prepare_folder", "report_runs", "run_tests"]

_RUN_ID: Final = re.compile(r"[A-Za-z0-9]{15,18}")


class RunsOutcome(NamedTuple):
    """What came of several tests: those that finished, and why others could not be started."""

    finished: list[FinishedRun]
    errors: list[EvalmetaError]


async def run_tests(project: Project, names: Sequence[str], options: RunOptions, *, wait: bool) -> RunsOutcome:
    """Runs tests one after the other; without `wait` they are started and go on by themselves.

    A test that cannot be started does not keep the others from running.
    """
    from evalmeta.api import changes, orgs, tests  # noqa: PLC0415 - not needed for --help

    outcome = RunsOutcome([], [])
    async with orgs.connect(project, detached=not wait) as connection:
        chosen = await tests.select_tests(connection, names)
        for name in await changes.find_undeployed(connection, project, chosen):
            note(f"Warning: {name} differs from the org's; deploy to test your changes: evalmeta deploy")
        with _progress() as progress:
            for place, name in enumerate(chosen):
                try:
                    run_id = await tests.start_run(connection, name, options=options)
                except EvalmetaError as error:
                    outcome.errors.append(error)
                    continue
                if not wait:
                    click.echo(f"Started {name} (run {run_id}). Wait for it: evalmeta test resume --job-id {run_id}")
                    continue
                with _left_over(chosen[place + 1 :]):
                    outcome.finished.append(await _finish(connection, run_id, progress, name=name, options=options))
    return outcome


async def carry_on(project: Project, run_id: str, *, wait: bool) -> FinishedRun:
    """Waits for a run, working on it if nobody else does; without `wait` gives what there is."""
    from evalmeta.api import orgs, tests  # noqa: PLC0415 - not needed for --help

    if not _RUN_ID.fullmatch(run_id):
        raise UsageError(f"{run_id!r} is no run's id", actions=["Take the one that `evalmeta test run` printed."])
    async with orgs.connect(project) as connection:
        seen = await tests.look_at_run(connection, run_id)
        if seen.run.status.is_over:
            return seen
        if not wait:
            note(f"The run is not finished. Wait for it: evalmeta test resume --job-id {run_id}")
            return seen
        tests.check_subject(project, seen.run)
        with _progress() as progress:
            return await _finish(connection, run_id, progress, name=seen.run.definition)


def prepare_folder(output_dir: Path | None) -> None:
    """Makes the folder for result files before anything is asked of an agent.

    Raises:
        UsageError: it cannot be made.
    """
    if output_dir is None:
        return
    try:
        output_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the folder {str(output_dir)!r} cannot be made: {error.strerror}", actions=["Choose another."]
        ) from None


@contextmanager
def _left_over(names: Sequence[str]) -> Iterator[None]:
    """Names the tests that an interruption kept from being started."""
    from asyncio import CancelledError  # noqa: PLC0415 - not needed for --help

    try:
        yield
    except CancelledError:
        if names:
            note(f"Not started: {', '.join(names)}.")
        raise


def report_runs(
    project: Project, finished: Sequence[FinishedRun], *, result_format: str, output_dir: Path | None, as_json: bool
) -> int:
    """Prints runs, writes their files, and gives the exit code."""
    from evalmeta import report  # noqa: PLC0415 - not needed for --help

    reports = [_report(project, each) for each in finished]
    code = _exit_code(reports)
    if as_json:
        from evalmeta.wire.connect import write_run  # noqa: PLC0415 - not needed for --help

        print_json([write_run(each.run, escape=False) for each in reports], status=code)
    elif result_format == "human":
        from evalmeta.report.human import print_human  # noqa: PLC0415 - likewise

        print_human(reports, _console(err=False))
    else:
        click.echo(report.render(result_format, reports), nl=False)
    if output_dir is not None:
        _write_files(reports, result_format, output_dir)
    return code


async def _finish(
    connection: Connection, run_id: str, progress: Progress, *, name: str, options: RunOptions | None = None
) -> FinishedRun:
    from asyncio import CancelledError  # noqa: PLC0415 - not needed for --help

    from evalmeta.api import tests  # noqa: PLC0415 - likewise

    shown = False

    def show(now: tests.Progress) -> None:
        nonlocal shown
        if not shown:
            progress.start(run_id, now.total, f"{name} (run {run_id})")
            shown = True
        progress.update(run_id, now.done, now.not_passed)

    try:
        # What an agent prints must not mix with a report.
        with redirect_stdout(sys.stderr):
            finished = await tests.finish_run(connection, run_id, definition=name, options=options, on_progress=show)
    except CancelledError:
        note(f"\nFinished results are kept. Go on with: evalmeta test resume --job-id {run_id}")
        raise
    progress.finish(run_id)
    return finished


def _progress() -> Progress:
    from evalmeta.report.progress import Progress  # noqa: PLC0415 - not needed for --help

    return Progress(_console(err=True), enabled=True)


def _console(*, err: bool) -> Console:
    from rich.console import Console  # noqa: PLC0415 - not needed for --help

    colour = wants_colour(err=err)
    return Console(file=sys.stderr if err else sys.stdout, no_color=not colour, highlight=False)


def _report(project: Project, finished: FinishedRun) -> Report:
    from evalmeta.api.metadata import case_lines, shown  # noqa: PLC0415 - not needed for --help
    from evalmeta.package.resolver import find_components  # noqa: PLC0415 - likewise
    from evalmeta.report.report import Report  # noqa: PLC0415 - likewise

    paths = []
    # Files that stand in each other's way do not matter to results that are already there.
    with suppress(EvalmetaError):
        paths = [each.path for each in find_components(project) if each.full_name == finished.run.definition]
    if not paths:
        return Report(finished.run, finished.summary)
    return Report(finished.run, finished.summary, file=shown(paths[0]), lines=case_lines(paths[0]))


def _write_files(reports: Sequence[Report], result_format: str, output_dir: Path) -> None:
    from evalmeta import report  # noqa: PLC0415 - not needed for --help
    from evalmeta.package.files import put_file  # noqa: PLC0415 - likewise

    for each in reports:
        path = output_dir / report.file_name(result_format, each.run.id)
        put_file(path, report.render(result_format, [each]).encode())
        note(f"Wrote {path}")


def _exit_code(reports: Sequence[Report]) -> int:
    from evalmeta.report.report import has_passed, incident  # noqa: PLC0415 - not needed for --help

    if all(has_passed(each) for each in reports):
        return EXIT_PASSED
    broken = any(each.summary.errors or incident(each.run) for each in reports)
    return EXIT_FAILED if broken else EXIT_EXPECTATION_FAILED
