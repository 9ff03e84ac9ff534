"""Starting, following and canceling runs, as the `test` commands share it."""

from __future__ import annotations

import re
import sys
import time
from contextlib import contextmanager, redirect_stdout
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from evalmeta.cli.jobs import seconds_of
from evalmeta.cli.output import console, note
from evalmeta.cli.targets import connected
from evalmeta.errors import EvalmetaError, UsageError, WaitRanOut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.api.targets import Target
    from evalmeta.api.tests import AgentTest, FinishedRun
    from evalmeta.client.connection import Connection
    from evalmeta.model.run import RunOptions
    from evalmeta.package.project import Project
    from evalmeta.report.progress import Progress

__all__ = ["RunsOutcome", "cancel", "carry_on", "run_tests"]

_RUN_ID: Final = re.compile(r"[A-Za-z0-9]{15,18}")


class RunsOutcome(NamedTuple):
    """What came of several tests: those that finished, and why others could not be started."""

    finished: list[FinishedRun]
    errors: list[EvalmetaError]


async def run_tests(
    project: Project, target: Target | None, names: Sequence[str], options: RunOptions, *, wait: float | None
) -> RunsOutcome:
    """Runs tests one after the other; without `wait` they are started and go on by themselves.

    Where the wait, in seconds, runs out, the run goes on too, and the tests after it are not
    started. A test that cannot be started does not keep the others from running.
    """
    from evalmeta.api import changes, tests  # noqa: PLC0415 - not needed for --help

    outcome = RunsOutcome([], [])
    async with connected(project, target, detached=wait is None) as connection:
        chosen = await tests.select_tests(connection, names)
        for name in await changes.find_undeployed(connection, project, chosen):
            note(f"Warning: {name} differs from the org's; deploy to test your changes: evalmeta deploy")
        if wait is None:
            await _start_all(connection, project, chosen, options, outcome)
        else:
            await _run_all(connection, project, chosen, options, outcome, wait=wait)
    await _leave(project, target, outcome.errors)
    return outcome


async def _start_all(
    connection: Connection, project: Project, chosen: Sequence[AgentTest], options: RunOptions, outcome: RunsOutcome
) -> None:
    for test in chosen:
        run_id = await _start(connection, project, test, options, outcome)
        if run_id:
            click.echo(f"Started {test.full_name} (run {run_id}). Wait for it: evalmeta test resume --job-id {run_id}")


async def _run_all(
    connection: Connection,
    project: Project,
    chosen: Sequence[AgentTest],
    options: RunOptions,
    outcome: RunsOutcome,
    *,
    wait: float,
) -> None:
    deadline = time.monotonic() + wait
    with _progress() as progress:
        for place, test in enumerate(chosen):
            run_id = await _start(connection, project, test, options, outcome)
            if not run_id:
                continue
            left = max(0.0, deadline - time.monotonic())
            try:
                with _left_over([each.full_name for each in chosen[place + 1 :]]):
                    done = await _finish(connection, run_id, progress, name=test.full_name, options=options, wait=left)
            except WaitRanOut as over:
                outcome.errors.append(over)
                return
            outcome.finished.append(done)


async def _start(
    connection: Connection, project: Project, test: AgentTest, options: RunOptions, outcome: RunsOutcome
) -> str | None:
    from evalmeta.api import tests  # noqa: PLC0415 - not needed for --help

    try:
        run_id = await tests.start_run(connection, test.full_name, kind=test.type, options=options)
    except EvalmetaError as error:
        outcome.errors.append(error)
        return None
    tests.remember_run(connection, project, run_id)
    return run_id


async def carry_on(project: Project, target: Target | None, job_id: str | None, *, wait: float | None) -> FinishedRun:
    """Waits for a run, the most recent one by default, and works on it if nobody else does.

    Without `wait`, which is in seconds, gives what there is.
    """
    try:
        return await _carry_on(project, target, job_id, wait=wait)
    except WaitRanOut as over:
        await _leave(project, target, [over])
        raise


async def cancel(project: Project, target: Target | None, job_id: str | None) -> FinishedRun:
    """Cancels a run, the most recent one by default, and gives what it had finished."""
    from evalmeta.api import tests  # noqa: PLC0415 - not needed for --help

    async with connected(project, target) as connection:
        run_id = _checked(job_id) if job_id is not None else tests.most_recent_run(connection, project)
        await tests.cancel_run(connection, run_id)
        return await tests.look_at_run(connection, run_id)


async def _carry_on(project: Project, target: Target | None, job_id: str | None, *, wait: float | None) -> FinishedRun:
    from evalmeta.api import tests  # noqa: PLC0415 - not needed for --help

    async with connected(project, target) as connection:
        run_id = _checked(job_id) if job_id is not None else tests.most_recent_run(connection, project)
        seen = await tests.look_at_run(connection, run_id)
        if seen.run.status.is_over:
            return seen
        if wait is None:
            note(f"The run is not finished. Wait for it: evalmeta test resume --job-id {run_id}")
            return seen
        if target is None:
            tests.check_subject(project, seen.run)
        with _progress() as progress:
            return await _finish(connection, run_id, progress, name=seen.run.definition, wait=wait)


def _checked(run_id: str) -> str:
    if not _RUN_ID.fullmatch(run_id):
        raise UsageError(f"{run_id!r} is no run's id", actions=["Take the one that `evalmeta test run` printed."])
    return run_id


async def _leave(project: Project, target: Target | None, errors: Sequence[EvalmetaError]) -> None:
    """Lets runs of the embedded org go on that were waited for too long; others do so by themselves."""
    from evalmeta.api import tests  # noqa: PLC0415 - not needed for --help

    left = [error.job_id for error in errors if isinstance(error, WaitRanOut)]
    if target is not None or not left:
        return
    async with connected(project, None, detached=True) as connection:
        for run_id in left:
            await tests.leave_run(connection, run_id)


@contextmanager
def _left_over(names: Sequence[str]) -> Iterator[None]:
    """Names the tests that an interruption, or too short a wait, kept from being started."""
    from asyncio import CancelledError  # noqa: PLC0415 - not needed for --help

    try:
        yield
    except (CancelledError, WaitRanOut):
        if names:
            note(f"Not started: {', '.join(names)}.")
        raise


async def _finish(
    connection: Connection,
    run_id: str,
    progress: Progress,
    *,
    name: str,
    wait: float,
    options: RunOptions | None = None,
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
            finished = await tests.finish_run(
                connection,
                run_id,
                definition=name,
                options=options,
                wait=seconds_of(wait, otherwise=None),
                on_progress=show,
            )
    except CancelledError:
        note(f"\nFinished results are kept. Go on with: evalmeta test resume --job-id {run_id}")
        raise
    except WaitRanOut as over:
        ways = (f"{verb} it: evalmeta test {verb.lower()} --job-id {run_id}" for verb in ("Resume", "Cancel"))
        raise WaitRanOut(str(over), job_id=run_id, actions=tuple(ways)) from None
    progress.finish(run_id)
    return finished


def _progress() -> Progress:
    from evalmeta.report.progress import Progress  # noqa: PLC0415 - not needed for --help

    return Progress(console(err=True), enabled=True)
