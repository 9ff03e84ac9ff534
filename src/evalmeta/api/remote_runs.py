"""Runs in other orgs: begun and followed there, judged here, and kept beside the project's own.

An org of evalmeta's takes the options of a run. Salesforce's takes none: there, iterations
are runs one after the other whose results are joined, what passes is decided here, and how
many cases are asked at a time, and for how long, is the org's own affair (`left_out`).
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta.api.tests import FinishedRun, Progress, cancel_run, finish_run, look_at_run, start_run
from evalmeta.client.agent_tests import kind_of_run
from evalmeta.engine.policy import summarise
from evalmeta.errors import EvalmetaError
from evalmeta.model.iterations import join
from evalmeta.model.run import Run, RunOptions, RunStatus
from evalmeta.store.database import open_database
from evalmeta.store.history import list_runs
from evalmeta.store.remote_runs import RemoteRun, open_remote_runs

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.api.targets import Target
    from evalmeta.api.tests import AgentTest
    from evalmeta.api.whereabouts import Whereabouts
    from evalmeta.client.connection import Connection
    from evalmeta.package.project import Project
    from evalmeta.store.history import PastRun

__all__ = ["begin", "cancel", "finish", "history", "kept", "left_out", "load", "look"]

_HERE_ONLY: Final = ("concurrency", "case_timeout", "rate_limit", "retries", "max_errors", "scoring")


def left_out(options: RunOptions) -> list[str]:
    """Names the options that were set and that only an org of evalmeta's could follow."""
    default = RunOptions()
    return [name for name in _HERE_ONLY if getattr(options, name) != getattr(default, name)]


async def begin(
    connection: Connection, project: Project, target: Target, test: AgentTest, options: RunOptions
) -> RemoteRun:
    """Starts a run, or the first of its iterations, and keeps it; raises like `start_run`."""
    run_id = await start_run(connection, test.full_name, kind=test.type, options=options)
    run = Run(run_id, test.full_name, "", RunStatus.NEW, time.time(), 0, options=options)
    return _keep(project, RemoteRun(target.login.url, target.login.name, run, (run_id,)))


async def finish(
    connection: Connection,
    project: Project,
    remote: RemoteRun,
    *,
    wait: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> FinishedRun:
    """Waits for a run, begins the iterations that are missing, and keeps what came back.

    Args:
        connection: the run's org.
        project: where it is kept.
        remote: the run, as it is kept or found.
        wait: seconds for all of it; None waits without end.
        on_progress: is told every answer on the way, the iterations taken together.

    Raises:
        NotFound: no such run is in the org.
        WaitRanOut: the run goes on.
        OrgError: the org cannot be reached, or refuses a call.
    """
    deadline = None if wait is None else time.monotonic() + wait
    parts: list[Run] = []
    while True:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        show = _shifted(on_progress, parts, _iterations(connection, remote))
        job_id, name = remote.jobs[len(parts)], remote.run.definition
        done = await finish_run(connection, job_id, definition=name, wait=left, on_progress=show)
        remote = _keep(project, _with(connection, remote, parts := [*parts, done.run]))
        if remote.run.status.is_over:
            return _judged(remote.run)
        if len(parts) == len(remote.jobs):
            remote = _keep(project, await _next_iteration(connection, remote))


async def look(connection: Connection, project: Project, remote: RemoteRun) -> FinishedRun:
    """Gives a run with the results that it has so far, and keeps them; raises like `look_at_run`."""
    parts = [(await look_at_run(connection, job_id)).run for job_id in remote.jobs]
    return _judged(_keep(project, _with(connection, remote, parts)).run)


async def cancel(connection: Connection, project: Project, remote: RemoteRun) -> FinishedRun:
    """Ends a run in its org, begins no more iterations, and gives what it had finished.

    Raises:
        NotFound: no such run is in the org.
        EvalmetaError: the run is over already.
        OrgError: the org does not end it, or cannot be reached.
    """
    seen = (await look(connection, project, remote)).run
    last = (await look_at_run(connection, remote.jobs[-1])).run
    if seen.status.is_over:
        raise EvalmetaError(f"run {seen.id} is over already: it is {seen.status}")
    # Between two iterations there is nothing to end in the org.
    if not last.status.is_over:
        await cancel_run(connection, remote.jobs[-1])
    fewer = replace(remote.run.options, iterations=len(remote.jobs))
    return await look(connection, project, replace(remote, run=replace(remote.run, options=fewer)))


def kept(place: Whereabouts, target: Target) -> RemoteRun:
    """Gives what is kept of a run of another org; of one that others began there is only the id."""
    if place.remote is not None:
        return place.remote
    run = Run(place.run_id, "", "", RunStatus.NEW, time.time(), 0)
    return RemoteRun(target.login.url, target.login.name, run, (place.run_id,))


def load(place: Whereabouts) -> FinishedRun | None:
    """Gives a run of another org that was over when it was kept, without asking the org; None for others."""
    if place.remote is None or not place.remote.run.status.is_over:
        return None
    return _judged(place.remote.run)


def history(project: Project, *, definition: str | None = None, limit: int | None = None) -> list[PastRun]:
    """Lists the runs of a definition, or all, in the project's own org and in others; the oldest first.

    With a `limit` only so many of the latest.

    Raises:
        StoreError: the project's database cannot be used.
    """
    with closing(open_database(project.state_dir)) as database:
        return list_runs(database, definition=definition, limit=limit)


def _iterations(connection: Connection, remote: RemoteRun) -> int:
    """Tells how many runs in the org one is: orgs of evalmeta's repeat a set of cases by themselves."""
    return 1 if connection.is_ours else remote.run.options.iterations


def _with(connection: Connection, remote: RemoteRun, parts: list[Run]) -> RemoteRun:
    """Gives a run with the results of its parts; an org of evalmeta's joins them by itself."""
    run = parts[0] if connection.is_ours else join(parts, remote.run)
    return replace(remote, run=run)


async def _next_iteration(connection: Connection, remote: RemoteRun) -> RemoteRun:
    job_id = await start_run(connection, remote.run.definition, kind=kind_of_run(remote.run.id))
    return replace(remote, jobs=(*remote.jobs, job_id))


def _shifted(on_progress: Callable[[Progress], None], parts: list[Run], iterations: int) -> Callable[[Progress], None]:
    before = [summarise(each.cases, each.options) for each in parts]
    done, not_passed = sum(each.total for each in before), sum(each.failed + each.errors for each in before)

    def show(now: Progress) -> None:
        counts = (done + now.done, not_passed + now.not_passed, now.total * iterations)
        on_progress(Progress(now.status, *counts, now.error))

    return show


def _judged(run: Run) -> FinishedRun:
    return FinishedRun(run, summarise(run.cases, run.options))


def _keep(project: Project, remote: RemoteRun) -> RemoteRun:
    with open_remote_runs(project.state_dir) as runs:
        runs.keep(remote)
    return remote
