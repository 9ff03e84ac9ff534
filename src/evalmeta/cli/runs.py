"""Starting, following and canceling runs, as the `test` commands share it."""

from __future__ import annotations

import math
import re
import sys
import time
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from evalmeta.cli.calls import repeated
from evalmeta.cli.jobs import seconds_of
from evalmeta.cli.output import console, note, say_target
from evalmeta.cli.targets import connected
from evalmeta.errors import EvalmetaError, NotFound, OrgFault, UsageError, WaitRanOut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.api.choices import Choice
    from evalmeta.api.targets import Target
    from evalmeta.api.tests import AgentTest, FinishedRun
    from evalmeta.api.whereabouts import Whereabouts
    from evalmeta.client.connection import Connection
    from evalmeta.model.run import Run, RunOptions
    from evalmeta.package.project import Project
    from evalmeta.report.progress import Progress
    from evalmeta.store.remote_runs import RemoteRun

__all__ = [
    "Order",
    "RunsOutcome",
    "cancel",
    "carry_on",
    "check_id",
    "extend_run",
    "locate_run",
    "reach_run",
    "rescore_run",
    "run_tests",
]

_RUN_ID: Final = re.compile(r"[A-Za-z0-9]{15,18}")


class _Org(NamedTuple):
    """Where tests run; `elsewhere` is None for the project's own org, embedded or served."""

    connection: Connection
    project: Project
    elsewhere: Target | None


class _Started(NamedTuple):
    """A run that was started, and what is kept of it when it is in another org."""

    id: str
    remote: RemoteRun | None = None


class Order(NamedTuple):
    """What is to be run: which tests and cases, how, and how many seconds to wait; None starts runs and leaves them."""

    choice: Choice
    options: RunOptions
    wait: float | None


class RunsOutcome(NamedTuple):
    """What came of several tests: those that finished, and why others could not be started."""

    finished: list[FinishedRun]
    errors: list[EvalmetaError]


async def run_tests(project: Project, target: Target | None, order: Order) -> RunsOutcome:
    """Runs tests one after the other; without a wait they are started and go on by themselves.

    Where the wait, in seconds, runs out, the run goes on too, and the tests after it are not
    started. A test that cannot be started does not keep the others from running.
    """
    from evalmeta.api import changes, tests  # noqa: PLC0415 - not needed for --help

    outcome, wait = RunsOutcome([], []), order.wait
    async with connected(project, target, detached=wait is None) as connection:
        org = _org(connection, project, target)
        chosen = await tests.select_tests(connection, order.choice.names)
        for name in await changes.find_undeployed(connection, project, chosen):
            note(f"Warning: {name} differs from the org's; deploy to test your changes: evalmeta deploy")
        _check_selection(connection, order)
        _tell_options(connection, order.options)
        if wait is None:
            await _start_all(org, chosen, order, outcome)
        else:
            await _run_all(org, chosen, order, outcome, wait=wait)
    await _leave(project, target, outcome.errors)
    return outcome


async def extend_run(
    project: Project,
    place: Whereabouts,
    target: Target | None,
    *,
    iterations: int,
    wait: float | None,
    ignore_changes: bool,
) -> RunsOutcome:
    """Adds iterations to a run that is over, and waits for it; without `wait` it goes on by itself."""
    from evalmeta.api import reruns, tests  # noqa: PLC0415 - not needed for --help

    run_id = place.run_id
    with _sought():
        async with connected(project, target, detached=wait is None) as connection:
            org = _own_org(connection, project, target)
            with _shown_changes():
                await reruns.extend(connection, run_id, iterations=iterations, ignore_changes=ignore_changes)
            tests.remember_run(connection, project, run_id)
            if wait is None:
                click.echo(repeated(f"Extended run {run_id}. Wait for it: evalmeta test resume --job-id {run_id}"))
                return RunsOutcome([], [])
            return await _waited_for(org, project, target, run_id, wait=wait)


async def rescore_run(
    project: Project, place: Whereabouts, target: Target | None, options: RunOptions, *, as_deployed: bool
) -> FinishedRun:
    """Judges the answers of a run again, in a run of its own, and waits for that."""
    from evalmeta.api import reruns, tests  # noqa: PLC0415 - not needed for --help

    with _sought():
        async with connected(project, target) as connection:
            org = _own_org(connection, project, target)
            run_id = await reruns.rescore(connection, place.run_id, options, as_deployed=as_deployed)
            tests.remember_run(connection, project, run_id)
            name = f"answers of {place.run_id}"
            with _progress() as progress:
                return await _finish(org, _Started(run_id), progress, name=name, wait=math.inf)


async def _waited_for(org: _Org, project: Project, target: Target | None, run_id: str, *, wait: float) -> RunsOutcome:
    from evalmeta.api import tests  # noqa: PLC0415 - not needed for --help

    name = (await tests.look_at_run(org.connection, run_id)).run.definition
    try:
        with _progress() as progress:
            return RunsOutcome([await _finish(org, _Started(run_id), progress, name=name, wait=wait)], [])
    except WaitRanOut as over:
        errors: list[EvalmetaError] = [_waited(over, wait)]
        await _leave(project, target, errors)
        return RunsOutcome([], errors)


def locate_run(run_id: str | None, target_org: str | None) -> tuple[Project, Whereabouts]:
    """Finds the project, and the org that a run is in; None stands for the most recent run.

    Raises:
        UsageError: it is no run's id.
        NotFound: no run, or no such org, is known.
    """
    from evalmeta.api.whereabouts import locate  # noqa: PLC0415 - not needed for --help
    from evalmeta.package.project import find_project  # noqa: PLC0415 - likewise

    check_id(run_id)
    project = find_project(Path.cwd())
    return project, locate(project, run_id, named=target_org)


def reach_run(project: Project, place: Whereabouts) -> Target | None:
    """Gives the org that a run is in, and says which it is."""
    from evalmeta.api.whereabouts import target_of  # noqa: PLC0415 - not needed for --help

    target = target_of(place)
    say_target(project, target)
    return target


def _own_org(connection: Connection, project: Project, target: Target | None) -> _Org:
    if not connection.is_ours:
        way_out = "Run it here against recorded answers: the subject adapter replay reads results files."
        raise UsageError("an org of Salesforce's neither extends runs nor judges answers again", actions=[way_out])
    return _org(connection, project, target)


def _check_selection(connection: Connection, order: Order) -> None:
    chosen = order.choice.lists or order.options.shard or order.options.seed is not None
    if chosen and not connection.is_ours:
        way_out = "Leave out --case, --tag, --failed-from, --shard and --seed."
        raise UsageError("an org of Salesforce's runs whole definitions in its own order", actions=[way_out])


@contextmanager
def _shown_changes() -> Iterator[None]:
    """Shows what changed in a definition when a run is refused for it."""
    from evalmeta.api.reruns import DefinitionChanged  # noqa: PLC0415 - not needed for --help
    from evalmeta.report.differences import difference_lines  # noqa: PLC0415 - likewise

    try:
        yield
    except DefinitionChanged as error:
        for line in difference_lines(error.difference) if error.difference else ():
            note(line.text)
        raise


def _org(connection: Connection, project: Project, target: Target | None) -> _Org:
    from evalmeta.api.whereabouts import is_elsewhere  # noqa: PLC0415 - not needed for --help

    return _Org(connection, project, target if is_elsewhere(project, target) else None)


def _tell_options(connection: Connection, options: RunOptions) -> None:
    from evalmeta.api import remote_runs  # noqa: PLC0415 - not needed for --help

    if not connection.is_ours and (names := remote_runs.left_out(options)):
        shown = " and ".join(name.replace("_", "-") for name in names)
        note(f"Warning: {shown} cannot be chosen in this org, which decides by itself; it runs without")


async def _start_all(org: _Org, chosen: Sequence[AgentTest], order: Order, outcome: RunsOutcome) -> None:
    options = order.options
    for test in chosen:
        started = await _start(org, test, order, outcome)
        if started:
            run_id = started.id
            way_on = f"Wait for it: evalmeta test resume --job-id {run_id}"
            click.echo(repeated(f"Started {test.full_name} (run {run_id}). {way_on}"))
            if options.iterations > 1 and not org.connection.is_ours:
                note(f"It is the first of {options.iterations} iterations; waiting for it starts the others in turn.")


async def _run_all(org: _Org, chosen: Sequence[AgentTest], order: Order, outcome: RunsOutcome, *, wait: float) -> None:
    options = order.options
    deadline = time.monotonic() + wait
    with _progress() as progress:
        for place, test in enumerate(chosen):
            started = await _start(org, test, order, outcome)
            if not started:
                continue
            left = max(0.0, deadline - time.monotonic())
            try:
                with _left_over([each.full_name for each in chosen[place + 1 :]]):
                    done = await _finish(org, started, progress, name=test.full_name, options=options, wait=left)
            except WaitRanOut as over:
                outcome.errors.append(_waited(over, wait))
                return
            outcome.finished.append(done)


async def _start(org: _Org, test: AgentTest, order: Order, outcome: RunsOutcome) -> _Started | None:
    from evalmeta.api import remote_runs, tests  # noqa: PLC0415 - not needed for --help

    options = replace(order.options, cases=order.choice.numbers(test.full_name))
    try:
        if org.elsewhere is None:
            started = _Started(await tests.start_run(org.connection, test.full_name, kind=test.type, options=options))
        else:
            remote = await remote_runs.begin(org.connection, org.project, org.elsewhere, test, options)
            started = _Started(remote.run.id, remote)
    except OrgFault as fault:
        if fault.code == "NOTHING_TO_RUN" and (len(order.choice.names) != 1 or options.shard):
            note(f"Skipped {test.full_name}: none of its cases is chosen.")
            return None
        outcome.errors.append(fault)
        return None
    except EvalmetaError as error:
        outcome.errors.append(error)
        return None
    tests.remember_run(org.connection, org.project, started.id)
    return started


async def carry_on(
    project: Project, place: Whereabouts, target: Target | None, *, wait: float | None, ignore_changes: bool = False
) -> FinishedRun:
    """Waits for a run and works on it if nobody else does.

    Without `wait`, which is in seconds, gives what there is. A run that nobody works on,
    and whose definition is another one now, is not gone on with unless `ignore_changes` says so.
    """
    try:
        with _sought(), _shown_changes():
            return await _carry_on(project, place, target, wait=wait, ignore_changes=ignore_changes)
    except WaitRanOut as over:
        await _leave(project, target, [over])
        raise _waited(over, wait or 0) from None


async def cancel(project: Project, place: Whereabouts, target: Target | None) -> FinishedRun:
    """Cancels a run and gives what it had finished."""
    with _sought():
        return await _cancel(project, place, target)


async def _cancel(project: Project, place: Whereabouts, target: Target | None) -> FinishedRun:
    from evalmeta.api import remote_runs, tests  # noqa: PLC0415 - not needed for --help

    async with connected(project, target) as connection:
        org = _org(connection, project, target)
        if org.elsewhere is not None:
            return await remote_runs.cancel(connection, project, remote_runs.kept(place, org.elsewhere))
        await tests.cancel_run(connection, place.run_id)
        return await tests.look_at_run(connection, place.run_id)


async def _carry_on(
    project: Project, place: Whereabouts, target: Target | None, *, wait: float | None, ignore_changes: bool
) -> FinishedRun:
    from evalmeta.api import remote_runs, reruns, tests  # noqa: PLC0415 - not needed for --help

    async with connected(project, target) as connection:
        org, started = _org(connection, project, target), _Started(place.run_id)
        if org.elsewhere is None:
            seen = await tests.look_at_run(connection, place.run_id)
        else:
            started = started._replace(remote=remote_runs.kept(place, org.elsewhere))
            seen = await remote_runs.look(connection, project, remote_runs.kept(place, org.elsewhere))
        if seen.run.status.is_over:
            return seen
        if wait is None:
            note(f"{_age(seen.run)} Wait for it: evalmeta test resume --job-id {place.run_id}")
            return seen
        if connection.is_ours and not ignore_changes:
            await reruns.check_unchanged(connection, seen.run)
        if target is None:
            tests.check_subject(project, seen.run)
        with _progress() as progress:
            return await _finish(org, started, progress, name=seen.run.definition, wait=wait)


def check_id(run_id: str | None) -> None:
    """Refuses what can be no run's id; None stands for the most recent run.

    Raises:
        UsageError: it is none.
    """
    if run_id is not None and not _RUN_ID.fullmatch(run_id):
        raise UsageError(f"{run_id!r} is no run's id", actions=["Take the one that `evalmeta test run` printed."])


async def _leave(project: Project, target: Target | None, errors: Sequence[EvalmetaError]) -> None:
    """Lets runs of the embedded org go on that were waited for too long; others do so by themselves."""
    from evalmeta.api import tests  # noqa: PLC0415 - not needed for --help

    left = [error.job_id for error in errors if isinstance(error, WaitRanOut)]
    if target is not None or not left:
        return
    async with connected(project, None, detached=True) as connection:
        for run_id in left:
            await tests.leave_run(connection, run_id)


def _waited(over: WaitRanOut, wait: float) -> WaitRanOut:
    """Gives the error with the wait that was asked for: several runs, or iterations, share one."""
    from evalmeta.report.words import seconds  # noqa: PLC0415 - not needed for --help

    message = f"run {over.job_id} is not done after {seconds(wait)}; it goes on in the org"
    return WaitRanOut(message, job_id=over.job_id, actions=over.actions)


def _age(run: Run) -> str:
    from evalmeta.report.words import seconds  # noqa: PLC0415 - not needed for --help

    return f"The run began {seconds(max(0, round(time.time() - run.started)))} ago and is not finished."


@contextmanager
def _sought() -> Iterator[None]:
    """Says of a run that an org does not have that another one may."""
    try:
        yield
    except NotFound as error:
        way_on = "It may be in another org: name that one with --target-org (evalmeta org list)."
        raise NotFound(str(error), actions=[*error.actions, way_on]) from None


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
    org: _Org, started: _Started, progress: Progress, *, name: str, wait: float, options: RunOptions | None = None
) -> FinishedRun:
    from asyncio import CancelledError  # noqa: PLC0415 - not needed for --help

    from evalmeta.api import remote_runs, tests  # noqa: PLC0415 - likewise

    run_id, shown, left = started.id, False, seconds_of(wait, otherwise=None)

    def show(now: tests.Progress) -> None:
        nonlocal shown
        if not shown:
            progress.start(run_id, now.total, f"{name} (run {run_id})")
            shown = True
        progress.update(run_id, now.done, now.not_passed, total=now.total)

    try:
        # What an agent prints must not mix with a report.
        with redirect_stdout(sys.stderr):
            if started.remote is None:
                finished = await tests.finish_run(
                    org.connection, run_id, definition=name, options=options, wait=left, on_progress=show
                )
            else:
                finished = await remote_runs.finish(
                    org.connection, org.project, started.remote, wait=left, on_progress=show
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
