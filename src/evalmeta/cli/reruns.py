"""Going on with runs that were begun before: to their end, with more iterations, judged again, or no further."""

from __future__ import annotations

import math
import re
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta.cli.options import connected
from evalmeta.cli.output import note, say_target
from evalmeta.cli.run_options import with_policy
from evalmeta.cli.runs import RunsOutcome, StartedRun, finish_run, leave_runs, org_at, shown_progress, waited_for
from evalmeta.cli.suggestions import repeated
from evalmeta.errors import NotFound, UsageError, WaitRanOut

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.api.org_targets import Target
    from evalmeta.api.run_location import Whereabouts
    from evalmeta.api.runs import FinishedRun
    from evalmeta.cli.runs import Org
    from evalmeta.client.connection import Connection
    from evalmeta.model.run import Run, Scoring
    from evalmeta.package.project import Project


_RUN_ID: Final = re.compile(r"[A-Za-z0-9]{15,18}")


def locate_run(run_id: str | None, target_org: str | None) -> tuple[Project, Whereabouts]:
    """Finds the project, and the org that a run is in; None stands for the most recent run.

    Raises:
        UsageError: it is no run's id.
        NotFound: no run, or no such org, is known.
    """
    from evalmeta.api.run_location import locate  # noqa: PLC0415 - not needed for --help
    from evalmeta.package.project import find_project  # noqa: PLC0415 - likewise

    check_id(run_id)
    project = find_project(Path.cwd())
    return project, locate(project, run_id, named=target_org)


def reach_run(project: Project, place: Whereabouts) -> Target | None:
    """Gives the org that a run is in, and says which it is."""
    from evalmeta.api.run_location import target_of  # noqa: PLC0415 - not needed for --help

    target = target_of(place)
    say_target(project, target)
    return target


async def extend_run(
    project: Project,
    place: Whereabouts,
    target: Target | None,
    *,
    iterations: int,
    wait: float | None,
    ignore_changes: bool,
    is_quiet: bool = False,
) -> RunsOutcome:
    """Adds iterations to a run that is over, and waits for it; without `wait` it goes on by itself.

    `is_quiet` leaves stdout to the report.
    """
    from evalmeta.api import run_selection  # noqa: PLC0415 - not needed for --help

    with _sought():
        async with connected(project, target, detached=wait is None) as connection:
            org = _own_org(connection, project, target)
            with _shown_changes():
                await run_selection.extend(
                    connection, place.run_id, iterations=iterations, ignore_changes=ignore_changes
                )
            started = await _begun(org, place)
            if wait is None:
                way_on = f"Wait for it: evalmeta test resume --job-id {started.id}"
                click.echo(repeated(f"Extended run {started.id}. {way_on}"), err=is_quiet)
                return RunsOutcome([], [], [started])
            try:
                with shown_progress() as progress:
                    return RunsOutcome([await finish_run(org, started, progress, wait=wait)], [], [])
            except WaitRanOut as over:
                error = waited_for(over, wait)
    await leave_runs(project, target, [error])
    return RunsOutcome([], [error], [])


async def rescore_run(
    project: Project,
    place: Whereabouts,
    target: Target | None,
    scoring: Scoring,
    policy: Mapping[str, object],
    *,
    as_deployed: bool,
) -> FinishedRun:
    """Judges the answers of a run again, in a run of its own, and waits for that.

    What `policy` does not say of what passes is as it was in that run.
    """
    from evalmeta.api import run_selection, runs  # noqa: PLC0415 - not needed for --help

    with _sought():
        async with connected(project, target) as connection:
            org = _own_org(connection, project, target)
            options = (await runs.look_at_run(connection, place.run_id)).run.options
            options = with_policy(replace(options, scoring=scoring), policy)
            run_id = await run_selection.rescore(connection, place.run_id, options, as_deployed=as_deployed)
            started = await _begun(org, replace(place, run_id=run_id, remote=None))
            with shown_progress() as progress:
                return await finish_run(org, started, progress, wait=math.inf)


async def _begun(org: Org, place: Whereabouts) -> StartedRun:
    """Remembers a run that has more to do than was known of it, and keeps it as it is now."""
    from evalmeta.api import runs  # noqa: PLC0415 - not needed for --help

    runs.remember_run(org.connection, org.project, place.run_id)
    if org.elsewhere is None:
        seen = await runs.look_at_run(org.connection, place.run_id)
        return StartedRun(place.run_id, seen.run.definition)
    remote = runs.kept(place, org.elsewhere)
    seen = await runs.fetch_remote_run(org.connection, org.project, remote)
    return StartedRun(place.run_id, seen.run.definition, replace(remote, run=seen.run))


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
        await leave_runs(project, target, [over])
        raise waited_for(over, wait or 0) from None


async def cancel(project: Project, place: Whereabouts, target: Target | None) -> FinishedRun:
    """Cancels a run and gives what it had finished."""
    with _sought():
        return await _cancel(project, place, target)


async def _cancel(project: Project, place: Whereabouts, target: Target | None) -> FinishedRun:
    from evalmeta.api import runs  # noqa: PLC0415 - not needed for --help

    async with connected(project, target) as connection:
        org = org_at(connection, project, target)
        if org.elsewhere is not None:
            return await runs.cancel(connection, project, runs.kept(place, org.elsewhere))
        await runs.cancel_run(connection, place.run_id)
        return await runs.look_at_run(connection, place.run_id)


async def _carry_on(
    project: Project, place: Whereabouts, target: Target | None, *, wait: float | None, ignore_changes: bool
) -> FinishedRun:
    from evalmeta.api import run_selection, runs  # noqa: PLC0415 - not needed for --help

    async with connected(project, target) as connection:
        org, remote = org_at(connection, project, target), None
        if org.elsewhere is None:
            seen = await runs.look_at_run(connection, place.run_id)
        else:
            remote = runs.kept(place, org.elsewhere)
            seen = await runs.fetch_remote_run(connection, project, remote)
        if seen.run.status.is_over:
            if wait is not None:
                _tell_end(seen.run)
            return seen
        if wait is None:
            note(f"{_age(seen.run)} Wait for it: evalmeta test resume --job-id {place.run_id}")
            return seen
        if connection.is_ours and not ignore_changes:
            await run_selection.check_unchanged(connection, seen.run)
        if target is None:
            await runs.check_subject(connection, project, seen.run)
        with shown_progress() as progress:
            return await finish_run(org, StartedRun(place.run_id, seen.run.definition, remote), progress, wait=wait)


def check_id(run_id: str | None) -> None:
    """Refuses what can be no run's id; None stands for the most recent run.

    Raises:
        UsageError: it is none.
    """
    if run_id is not None and not _RUN_ID.fullmatch(run_id):
        raise UsageError(f"{run_id!r} is no run's id", actions=["Take the one that `evalmeta test run` printed."])


def _own_org(connection: Connection, project: Project, target: Target | None) -> Org:
    if not connection.is_ours:
        way_out = "Run it here against recorded answers: the subject adapter replay reads results files."
        raise UsageError("an org of Salesforce's neither extends runs nor judges answers again", actions=[way_out])
    return org_at(connection, project, target)


@contextmanager
def _shown_changes() -> Iterator[None]:
    """Shows what changed in a definition when a run is refused for it."""
    from evalmeta.api.run_selection import DefinitionChanged  # noqa: PLC0415 - not needed for --help
    from evalmeta.report.comparison import difference_lines  # noqa: PLC0415 - likewise

    try:
        yield
    except DefinitionChanged as error:
        for line in difference_lines(error.difference) if error.difference else ():
            note(line.text)
        raise


@contextmanager
def _sought() -> Iterator[None]:
    """Says of a run that an org does not have that another one may."""
    try:
        yield
    except NotFound as error:
        way_on = "It may be in another org: name that one with --target-org (evalmeta org list)."
        raise NotFound(str(error), actions=[*error.actions, way_on]) from None


def _age(run: Run) -> str:
    from evalmeta.report.text import seconds  # noqa: PLC0415 - not needed for --help

    return f"The run began {seconds(max(0, round(time.time() - run.started)))} ago and is not finished."


def _tell_end(run: Run) -> None:
    """Says of a run that was stopped what can be done; one that is complete needs no words."""
    missing = run.total - len(run.cases)
    if missing <= 0:
        return
    note(f"Run {run.id} is over and does not go on; {missing:,} of its {run.total:,} case results are missing.")
    note(f"Begin a new one: evalmeta test run --api-name {run.definition}")
    note(f"Or ask only what failed or ended in an error: evalmeta test run --failed-from {run.id}")
