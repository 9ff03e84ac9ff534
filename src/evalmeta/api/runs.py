"""Agent tests: listing them, running them, following runs, fetching results.

Runs in other orgs: begun and followed there, judged here, and kept beside the project's own.

An org of evalmeta's takes the options of a run. Salesforce's takes none: there, iterations
are runs one after the other whose results are joined, what passes is decided here, and how
many cases are asked at a time, and for how long, is the org's own affair (`left_out`).

Finished runs: what was asked, what it came to, and the report of it.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.sync import receipts_of
from evalmeta.client.metadata import list_components
from evalmeta.client.runs import (
    Progress,
    cancel_run,
    fetch_definition,
    fetch_run,
    kind_of_run,
    poll_run,
    start_run,
    wait_for_run,
)
from evalmeta.engine.statistics import summarise
from evalmeta.errors import AmbiguousTestDefinition, EvalmetaError, NotFound, OrgFault, Suggestion, WaitRanOut
from evalmeta.model.registry import TYPES, metadata_type, types_at
from evalmeta.model.run import Run, RunOptions, RunStatus, join
from evalmeta.org.run_files import subjects_of_run
from evalmeta.org.subjects import bind_subject
from evalmeta.store.database import open_database
from evalmeta.store.history import RemoteRun, list_runs, open_remote_runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from evalmeta.api.agent_tests import FileTest
    from evalmeta.api.org_targets import Target
    from evalmeta.api.run_location import Whereabouts
    from evalmeta.client.connection import Connection
    from evalmeta.model.registry import MetadataType
    from evalmeta.model.run import Summary
    from evalmeta.model.statistics import RunStatistics
    from evalmeta.package.project import Project
    from evalmeta.protocol.metadata_api import FileProperties
    from evalmeta.report.report import Report
    from evalmeta.store.history import PastRun


__all__ = [
    "AgentTest",
    "FinishedRun",
    "FinishedRuns",
    "Progress",
    "begin",
    "cancel",
    "cancel_run",
    "check_subject",
    "fetch_remote_run",
    "finish",
    "finish_run",
    "history",
    "kept",
    "leave_run",
    "left_out",
    "list_tests",
    "load",
    "look_at_run",
    "remember_run",
    "select_tests",
    "start_run",
]


class AgentTest(NamedTuple):
    """A test in an org, or in a file that is not deployed."""

    type: MetadataType
    full_name: str
    file: FileTest | None = None

    @property
    def key(self) -> str:
        """Gives `Type:FullName`, unique in an org."""
        return f"{self.type.name}:{self.full_name}"


async def list_tests(connection: Connection) -> list[FileProperties]:
    """Lists the definitions in the org by type and name."""
    return [each for kind in types_at(connection.api_version) for each in await _list(connection, kind)]


async def select_tests(connection: Connection, names: Sequence[str] = ()) -> list[AgentTest]:
    """Gives the tests to run: those asked for, or all in the org.

    Args:
        connection: the org.
        names: full names, or `Type:FullName` where a name stands for tests of several types.

    Raises:
        NotFound: a name is not in the org, or nothing is.
        AmbiguousTestDefinition: a name stands for tests of several types.
    """
    listed = await list_tests(connection)
    there = [AgentTest(kind, each.full_name) for each in listed if (kind := metadata_type(each.type))]
    if not there:
        raise NotFound("the org has no agent tests", actions=[Suggestion("Deploy some first", "deploy")])
    return list(dict.fromkeys(_named(name, there) for name in names)) or there


async def _list(connection: Connection, kind: MetadataType) -> list[FileProperties]:
    try:
        return await list_components(connection, kind.name)
    except OrgFault as fault:
        # Orgs in which a way of testing is not switched on say that there is no such type.
        if fault.code == "INVALID_TYPE" and kind != TYPES[0]:
            return []
        raise


def _named(name: str, there: Sequence[AgentTest]) -> AgentTest:
    found = [each for each in there if name in (each.full_name, each.key)]
    if len(found) == 1:
        return found[0]
    if found:
        actions = [f"Say which: --api-name {each.key}" for each in found]
        types = " and ".join(each.type.name for each in found)
        raise AmbiguousTestDefinition(f"{name!r} is the name of an {types}", actions=actions)
    known = [each.key if ":" in name else each.full_name for each in there]
    close = get_close_matches(name, known, n=1)
    hint = f"Did you mean {close[0]}?" if close else f"In the org: {', '.join(known)}."
    raise NotFound(f"no agent test {name!r} is in the org", actions=[hint, Suggestion("Deploy it first", "deploy")])


async def check_subject(connection: Connection, project: Project, run: Run) -> None:
    """Makes sure that a run can go on in the project's own org: its agent is bound and loads.

    Raises:
        SubjectNotBound: the agent has no adapter.
        SettingsError: its adapter cannot be used.
        OrgError: the org cannot be reached or refuses the call.
    """
    asked = await fetch_definition(connection, run.id)
    subjects = subjects_of_run(project.settings.subjects, run.subject_name, asked.original)
    bind_subject(subjects, run.subject_name, root=project.root)


async def finish_run(
    connection: Connection,
    run_id: str,
    *,
    definition: str = "",
    options: RunOptions | None = None,
    wait: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> FinishedRun:
    """Waits for a run and fetches its results; `options` decide what passes, the run's own when None.

    A run in an org that keeps to what Salesforce documents has the default options as its own.

    Raises:
        NotFound: no such run is in the org.
        WaitRanOut: the run goes on after `wait` seconds.
        OrgError: the org cannot be reached.
    """
    run = await wait_for_run(connection, run_id, definition=definition, wait=wait, on_progress=on_progress)
    return FinishedRun(run, summarise(run.cases, options or run.options))


async def look_at_run(connection: Connection, run_id: str) -> FinishedRun:
    """Gives a run with the results it has so far, without waiting.

    Raises:
        NotFound: no such run is in the org.
        OrgError: the org cannot be reached.
    """
    run = await fetch_run(connection, run_id)
    return FinishedRun(run, summarise(run.cases, run.options))


async def leave_run(connection: Connection, run_id: str) -> None:
    """Sees to it that a run goes on after this process, over a connection that lets runs do so."""
    # Asking about a run that lost its worker gives it a new one.
    with suppress(WaitRanOut):
        await poll_run(connection, run_id, wait=0)


def remember_run(connection: Connection, project: Project, run_id: str) -> None:
    """Notes a run as the project's most recent one in an org."""
    with receipts_of(project, connection) as receipts:
        receipts.keep("test", run_id, now=time.time())


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


async def fetch_remote_run(connection: Connection, project: Project, remote: RemoteRun) -> FinishedRun:
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
    seen = (await fetch_remote_run(connection, project, remote)).run
    last = (await look_at_run(connection, remote.jobs[-1])).run
    if seen.status.is_over:
        raise EvalmetaError(f"run {seen.id} is already over: its status is {seen.status}")
    # Between two iterations there is nothing to end in the org.
    if not last.status.is_over:
        await cancel_run(connection, remote.jobs[-1])
    fewer = replace(remote.run.options, iterations=len(remote.jobs))
    return await fetch_remote_run(connection, project, replace(remote, run=replace(remote.run, options=fewer)))


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
    with open_database(project.state_dir) as database:
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


@dataclass(frozen=True, slots=True, repr=False)
class FinishedRun:
    """A run with its results, and what they come to; `print` shows its report.

    Attributes:
        run: the run; it has no cases when its results were not kept.
        summary: the counts over all its results.
        file: the definition's file, where the run was asked for by one.
    """

    run: Run
    summary: Summary
    file: Path | None = None

    @property
    def succeeded(self) -> bool:
        """Says whether the run is complete, nothing ended in an error, and enough cases passed."""
        from evalmeta.report.report import has_passed  # noqa: PLC0415 - commands have their own way to it

        return has_passed(_report(self))

    @property
    def statistics(self) -> RunStatistics:
        """Gives intervals, percentiles, tokens and the counts of each case, over the results that were kept."""
        from evalmeta.engine.statistics import collect  # noqa: PLC0415 - not everybody asks for them

        return collect(self.run.cases, self.run.options)

    def report(self, result_format: str = "human") -> str:
        """Gives the run as text, in a format of `evalmeta test run --result-format`.

        Raises:
            SettingsError: there is no format of that name, or the package that adds it is broken.
        """
        return _rendered(result_format, [self])

    def __repr__(self) -> str:
        from evalmeta.report.report import decision  # noqa: PLC0415 - as above

        return f"<FinishedRun {self.run.definition} {decision(_report(self))}>"

    def __str__(self) -> str:
        return self.report().rstrip()


class FinishedRuns(tuple[FinishedRun, ...]):
    """Runs that were asked for together, in that order; `print` shows their report."""

    __slots__ = ()

    @property
    def succeeded(self) -> bool:
        """Says whether every run succeeded."""
        return all(each.succeeded for each in self)

    def report(self, result_format: str = "human") -> str:
        """Gives the runs as one text; raises like `FinishedRun.report`."""
        return _rendered(result_format, self)

    def __str__(self) -> str:
        return self.report().rstrip()


def _rendered(result_format: str, finished: Sequence[FinishedRun]) -> str:
    from evalmeta.report import render  # noqa: PLC0415 - as above

    return render(result_format, [_detailed(each) for each in finished])


def _detailed(finished: FinishedRun) -> Report:
    report = _report(finished)
    if report.run.cases:
        report = replace(report, statistics=finished.statistics)
    if finished.file is None:
        return report
    from evalmeta.api.files import case_lines, shown  # noqa: PLC0415 - not needed without a file

    return replace(report, file=shown(finished.file), lines=case_lines(finished.file))


def _report(finished: FinishedRun) -> Report:
    from evalmeta.report.report import Report  # noqa: PLC0415 - as above

    run, summary = finished.run, finished.summary
    if not run.cases:
        # Reports miss what a run does not have, and results that were counted but not kept are not missing.
        run = replace(run, total=run.total - summary.total)
    return Report(run, summary)
