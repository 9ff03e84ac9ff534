"""Runs that were started before: resume, extend, rescore and cancel them."""

from __future__ import annotations

import math
import re
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import api
from evalmeta.cli.orgs import connected, print_target, run_async
from evalmeta.cli.output import note
from evalmeta.cli.runs import RunsOutcome, detach_runs, finish_run, print_started, run_progress, with_total_wait
from evalmeta.errors import NotFound, Suggestion, UsageError, WaitRanOut
from evalmeta.package.files import shown
from evalmeta.package.project import find_project
from evalmeta.report.comparison import difference_lines
from evalmeta.report.text import seconds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from evalmeta.api.finished_runs import FinishedRun
    from evalmeta.api.org_targets import Target
    from evalmeta.api.run_location import RunLocation
    from evalmeta.api.runs import RunOrg
    from evalmeta.cli.run_options import Values
    from evalmeta.model.run import Run, RunOptions, Scoring
    from evalmeta.package.project import Project


_RUN_ID: Final = re.compile(r"[A-Za-z0-9]{15,18}")


def check_run_id(run_id: str | None) -> None:
    """Refuse what is not a valid id of a run; None stands for the most recent run."""
    if run_id is not None and not _RUN_ID.fullmatch(run_id):
        raise UsageError(f"{run_id!r} is not a valid run id", actions=["Use the id that `evalmeta test run` printed."])


class EarlierRun(NamedTuple):
    """A run that was started before, and where it is."""

    project: Project
    location: RunLocation

    def target(self) -> Target | None:
        """Return the run's org, None for the embedded one, and print which it is."""
        target = api.run_location.target_of(self.location)
        print_target(self.project, target)
        return target


def find_run(run_id: str | None, target_org: str | None) -> EarlierRun:
    """Find a run of the current folder's project, and the org that has it; None stands for the most recent run."""
    check_run_id(run_id)
    project = find_project(Path.cwd())
    return EarlierRun(project, api.run_location.locate(project, run_id, named=target_org))


def resume_run(run: EarlierRun, *, wait: float | None, ignore_changes: bool = False) -> FinishedRun:
    """Wait for a run, and work on it if no other process does; without `wait`, return the results so far.

    A run that no process works on is not resumed if its definition has changed, unless `ignore_changes` is set.
    """
    if (finished := api.runs.load_finished(run.location)) is not None:
        note(f"Saved here: run {run.location.run_id}, which is over at {run.location.org_url}")
        return finished
    return run_async(_resume(run, run.target(), wait=wait, ignore_changes=ignore_changes))


async def _resume(run: EarlierRun, target: Target | None, *, wait: float | None, ignore_changes: bool) -> FinishedRun:
    try:
        async with _org_of(run, target) as org:
            started = org.find(run.location)
            seen = await org.fetch(started)
            if seen.run.status.is_over:
                if wait is not None:
                    _note_missing_results(run.project, seen.run)
                return seen
            if wait is None:
                age = seconds(max(0, round(time.time() - seen.run.started)))
                not_over = f"The run started {age} ago and is not finished."
                note(Suggestion(f"{not_over} Wait for it", "test", "resume", "--job-id", started.id))
                return seen
            await org.check_resumable(seen.run, ignore_changes=ignore_changes)
            started = started._replace(definition=seen.run.definition, iterations=seen.run.options.iterations)
            with run_progress() as progress:
                return await finish_run(org, started, progress, wait=wait)
    except WaitRanOut as timed_out:
        await detach_runs(run.project, target, [timed_out])
        raise with_total_wait(timed_out, wait or 0) from None


def cancel_run(run: EarlierRun) -> FinishedRun:
    """Cancel a run, and return the results that it has."""

    async def cancel(target: Target | None) -> FinishedRun:
        async with _org_of(run, target) as org:
            return await org.cancel(org.find(run.location))

    return run_async(cancel(run.target()))


def extend_run(
    run: EarlierRun, *, iterations: int, wait: float | None, ignore_changes: bool, is_quiet: bool = False
) -> RunsOutcome:
    """Add iterations to a run that is over, and wait for it; without `wait`, only start it.

    `is_quiet` reserves stdout for the report.
    """

    async def extend(target: Target | None) -> RunsOutcome:
        async with _org_of(run, target, detached=wait is None) as org:
            started = await org.extend(run.location, iterations=iterations, ignore_changes=ignore_changes)
            if wait is None:
                print_started(f"Extended run {started.id}.", started, is_quiet=is_quiet)
                return RunsOutcome([], [], [started])
            try:
                with run_progress() as progress:
                    return RunsOutcome([await finish_run(org, started, progress, wait=wait)], [], [])
            except WaitRanOut as timed_out:
                error = with_total_wait(timed_out, wait)
        await detach_runs(run.project, target, [error])
        return RunsOutcome([], [error], [])

    return run_async(extend(run.target()))


def rescore_run(run: EarlierRun, scoring: Scoring, policy: Values, *, as_deployed: bool) -> FinishedRun:
    """Score the answers of a run again as a new run, and wait for it; `policy` replaces options of the first run."""

    def change(options: RunOptions) -> RunOptions:
        return replace(options, scoring=scoring, **policy)  # type: ignore[arg-type] # click has checked the values

    async def rescore(target: Target | None) -> FinishedRun:
        async with _org_of(run, target) as org:
            started = await org.rescore(run.location, change, as_deployed=as_deployed)
            with run_progress() as progress:
                return await finish_run(org, started, progress, wait=math.inf)

    return run_async(rescore(run.target()))


@asynccontextmanager
async def _org_of(run: EarlierRun, target: Target | None, *, detached: bool = False) -> AsyncIterator[RunOrg]:
    """Connect to a run's org; errors say that another org may have it, or what changed in its definition."""
    try:
        async with connected(run.project, target, detached=detached) as connection:
            yield api.runs.RunOrg.of(connection, run.project, target)
    except api.runs.DefinitionChanged as error:
        for line in difference_lines(error.difference) if error.difference else ():
            note(line.text)
        raise
    except NotFound as error:
        way_out = "It may be in another org: name it with --target-org (see `evalmeta org list`)."
        raise NotFound(str(error), actions=[*error.actions, way_out]) from None


def _note_missing_results(project: Project, run: Run) -> None:
    missing = run.total - len(run.cases)
    if missing > 0:
        note(f"Run {run.id} is over and cannot be resumed; {missing:,} of its {run.total:,} case results are missing.")
        file = _file_words(project, run)
        note(Suggestion("Start a new one", "test", "run", *(file or ("--api-name", run.definition))))
        note(Suggestion("Or run only what failed or ended in an error", "test", "run", *file, "--failed-from", run.id))


def _file_words(project: Project, run: Run) -> tuple[str, ...]:
    """Return the file of a run, and its agent if the project does not bind it; nothing for deployed definitions."""
    place = api.agent_tests.place_of_run(project, run.id)
    if place is None:
        return ()
    return (shown(place[0]), *(("--subject", run.subject_name) if ":" in run.subject_name else ()))
