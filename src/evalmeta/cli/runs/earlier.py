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
from evalmeta.cli.runs.rerun_commands import can_rerun, file_words
from evalmeta.cli.runs.starting import RunsOutcome, detach_runs, finish_runs, print_started, warn_of_verdict
from evalmeta.errors import EvalmetaError, NotFound, Suggestion, UsageError
from evalmeta.package.project import find_project
from evalmeta.report.comparison import difference_lines
from evalmeta.report.text import seconds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from evalmeta.api.org_targets import Target
    from evalmeta.api.runs.finding import RunLocation
    from evalmeta.api.runs.finished import FinishedRun
    from evalmeta.api.runs.org import RunOrg, StartedRun
    from evalmeta.api.runs.verification import Checking
    from evalmeta.cli.jobs import JobChoice
    from evalmeta.cli.runs.options import Values
    from evalmeta.model.run import Run
    from evalmeta.model.run_options import RunOptions, Scoring
    from evalmeta.package.project import Project


_RUN_ID: Final = re.compile(r"[A-Za-z0-9]{15,18}")


def check_run_id(run_id: str | None) -> None:
    """Refuse what is neither an id nor a name of a run; None stands for the most recent run."""
    if run_id is not None and not _RUN_ID.fullmatch(run_id) and not api.runs.finding.is_run_name(run_id):
        names = "latest, previous, latest:TEST or previous:TEST"
        way_out = f"Use the id that `evalmeta test run` printed, or {names}."
        raise UsageError(f"{run_id!r} is not a valid run id", actions=[way_out])


class EarlierRun(NamedTuple):
    """A run that was started before, and where it is."""

    project: Project
    location: RunLocation

    def target(self) -> Target | None:
        """Return the run's org, None for the embedded one, and print which it is."""
        target = api.runs.finding.target_of(self.location)
        print_target(self.project, target)
        return target


def find_run(run_id: str | None, target_org: str | None) -> EarlierRun:
    """Find a run of the current folder's project, and the org that has it; None stands for the most recent run."""
    check_run_id(run_id)
    project = find_project(Path.cwd())
    return EarlierRun(project, api.runs.finding.locate(project, run_id, named=target_org))


def find_runs(jobs: JobChoice, target_org: str | None) -> list[EarlierRun]:
    """Find the chosen runs; print it if no run is unfinished."""
    if not jobs.is_unfinished:
        return [find_run(run_id, target_org) for run_id in jobs.ids or (None,)]
    run_ids = api.runs.saved.unfinished_runs(find_project(Path.cwd()))
    if not run_ids:
        note("No run of this project is unfinished.")
    return [find_run(run_id, target_org) for run_id in run_ids]


def fetch_run(run: EarlierRun, checking: Checking) -> FinishedRun:
    """Return the results that a run has so far."""
    if (finished := _saved(run, checking)) is not None:
        return finished

    async def fetch(target: Target | None) -> FinishedRun:
        async with _org_of(run, target, checking=checking) as org:
            seen = await org.fetch(org.find(run.location))
            is_stopped = await org.is_stopped(seen.run)
        if not seen.run.status.is_over:
            age = seconds(max(0, round(time.time() - seen.run.started)))
            not_over = f"The run started {age} ago and is not finished."
            way_out = "No process works on it. Continue it" if is_stopped else "Wait for it"
            note(Suggestion(f"{not_over} {way_out}", "test", "resume", "--job-id", seen.run.id))
        return seen

    return run_async(fetch(run.target()))


def resume_runs(
    runs: Sequence[EarlierRun], checking: Checking, *, wait: float, ignore_changes: bool, mixed: bool
) -> RunsOutcome:
    """Wait for runs of one org, and work on those that no other process works on.

    A run that no process works on is not resumed if its definition has changed, unless `ignore_changes` is set, or if
    another agent would answer, unless answers may be `mixed`.
    """
    saved = [_saved(run, checking) for run in runs]
    missing = [run for run, finished in zip(runs, saved, strict=True) if finished is None]
    if len({run.location.org_url for run in missing}) > 1:
        raise UsageError("the runs are in different orgs", actions=["Resume the runs of each org on their own."])
    # A run that did not pass is false.
    outcome = RunsOutcome([finished for finished in saved if finished is not None], [], [])
    if missing:
        target = missing[0].target()
        resumed = run_async(_resume(missing, target, checking, wait=wait, ignore_changes=ignore_changes, mixed=mixed))
        outcome.finished.extend(resumed.finished)
        outcome.errors.extend(resumed.errors)
    return outcome


def _saved(run: EarlierRun, checking: Checking) -> FinishedRun | None:
    finished = api.runs.saved.load_finished(run.location, checking)
    if finished is not None:
        note(f"Saved here: run {run.location.run_id}, which is over at {run.location.org_url}")
    return finished


async def _resume(
    runs: Sequence[EarlierRun],
    target: Target | None,
    checking: Checking,
    *,
    wait: float,
    ignore_changes: bool,
    mixed: bool,
) -> RunsOutcome:
    over: list[FinishedRun] = []
    refused: list[EvalmetaError] = []
    pending: list[tuple[StartedRun, RunOptions | None]] = []
    async with _org_of(runs[0], target, checking=checking) as org:
        for run in runs:
            started = org.find(run.location)
            seen = await org.fetch(started)
            if seen.run.status.is_over:
                _note_missing_results(run.project, seen.run)
                over.append(seen)
                continue
            try:
                await org.check_resumable(seen.run, ignore_changes=ignore_changes, mixed=mixed)
            except EvalmetaError as error:
                if len(runs) == 1:
                    raise
                refused.append(error)
                continue
            started = started._replace(definition=seen.run.definition, iterations=seen.run.options.iterations)
            pending.append((started, None))
        outcome = await finish_runs(org, pending, wait=wait)
    await detach_runs(runs[0].project, target, outcome.errors)
    return RunsOutcome([*over, *outcome.finished], [*refused, *outcome.errors], [])


def cancel_runs(runs: Sequence[EarlierRun]) -> RunsOutcome:
    """Cancel runs; what prevents one does not stop the others."""
    outcome = RunsOutcome([], [], [])
    for run in runs:
        try:
            outcome.finished.append(cancel_run(run))
        except EvalmetaError as error:
            outcome.errors.append(error)
    return outcome


def cancel_run(run: EarlierRun) -> FinishedRun:
    """Cancel a run, and return the results that it has."""

    async def cancel(target: Target | None) -> FinishedRun:
        async with _org_of(run, target) as org:
            return await org.cancel(org.find(run.location))

    return run_async(cancel(run.target()))


def extend_run(
    run: EarlierRun, *, iterations: int, wait: float | None, ignore_changes: bool, mixed: bool, is_quiet: bool = False
) -> RunsOutcome:
    """Add iterations to a run that is over, and wait for it; without `wait`, only start it.

    `is_quiet` reserves stdout for the report.
    """

    async def extend(target: Target | None) -> RunsOutcome:
        async with _org_of(run, target, detached=wait is None) as org:
            started = await org.extend(run.location, iterations=iterations, ignore_changes=ignore_changes, mixed=mixed)
            if wait is None:
                print_started(f"Extended run {started.id}.", started, is_quiet=is_quiet)
                return RunsOutcome([], [], [started])
            outcome = await finish_runs(org, [(started, None)], wait=wait)
        await detach_runs(run.project, target, outcome.errors)
        return outcome

    return run_async(extend(run.target()))


def rescore_run(run: EarlierRun, scoring: Scoring, policy: Values, *, as_deployed: bool) -> RunsOutcome:
    """Score the answers of a run again as a new run, and wait for it; `policy` replaces options of the first run."""

    def change(options: RunOptions) -> RunOptions:
        return replace(options, scoring=scoring, **policy)  # type: ignore[arg-type] # click has checked the values

    async def rescore(rescored: EarlierRun, target: Target | None) -> RunsOutcome:
        async with _org_of(rescored, target) as org:
            if not org.is_salesforce:
                started = await org.rescore(rescored.location, change, as_deployed=as_deployed)
                return await finish_runs(org, [(started, None)], wait=math.inf)
            remote = await org.keep_answers(rescored.location)
        return await rescore(run._replace(location=replace(run.location, remote=remote)), None)

    is_kept = run.location.remote is not None and run.location.remote.content is not None
    return run_async(rescore(run, None if is_kept else run.target()))


@asynccontextmanager
async def _org_of(
    run: EarlierRun, target: Target | None, *, detached: bool = False, checking: Checking | None = None
) -> AsyncIterator[RunOrg]:
    """Connect to a run's org; errors say that another org may have it, or what changed in its definition."""
    try:
        async with connected(run.project, target, detached=detached) as connection:
            org = api.runs.org.RunOrg.of(connection, run.project, target, checking)
            warn_of_verdict(org)
            yield org
    except api.runs.changes.DefinitionChanged as error:
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
        is_here, file = api.runs.finding.is_here(project, run.id), file_words(project, run)
        if is_here and not can_rerun(project, run):
            return
        note(Suggestion("Start a new one", "test", "run", *(file or ("--api-name", run.definition))))
        if is_here:
            note(
                Suggestion(
                    "Or run only what failed or ended in an error", "test", "run", *file, "--failed-from", run.id
                )
            )
