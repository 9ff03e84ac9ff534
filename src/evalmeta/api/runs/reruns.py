"""Runs that were started before: fetch, resume, extend, rescore and cancel them, and run their cases again."""

from __future__ import annotations

import math
import re
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta.api.agent_tests import is_deployed, place_of_run, subject_of_run
from evalmeta.api.endpoints import endpoint_settings
from evalmeta.api.org_targets import connect
from evalmeta.api.runs.changes import DefinitionChanged
from evalmeta.api.runs.finding import is_here, is_run_name, locate, target_of
from evalmeta.api.runs.org import RunOrg
from evalmeta.api.runs.saved import load_finished, unfinished_runs
from evalmeta.api.runs.waiting import RunsOutcome, detach_runs, finish_runs
from evalmeta.errors import EvalmetaError, NotFound, Suggestion, UsageError
from evalmeta.package.files import shown
from evalmeta.package.project import find_project
from evalmeta.report.comparison import difference_lines
from evalmeta.report.text import seconds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.api.org_targets import Target
    from evalmeta.api.runs.finding import RunHandle
    from evalmeta.api.runs.finished import FinishedRun
    from evalmeta.api.runs.observer import Observer
    from evalmeta.api.runs.verification import Checking
    from evalmeta.model.run import Run
    from evalmeta.model.run_options import RunOptions, Scoring
    from evalmeta.package.project import Project


_RUN_ID: Final = re.compile(r"[A-Za-z0-9]{15,18}")


def check_run_id(run_id: str | None) -> None:
    """Refuse what is neither an id nor a name of a run; None stands for the most recent run."""
    if run_id is not None and not _RUN_ID.fullmatch(run_id) and not is_run_name(run_id):
        names = "latest, previous, latest:TEST or previous:TEST"
        way_out = f"Use the id that `evalmeta test run` printed, or {names}."
        raise UsageError(f"{run_id!r} is not a valid run id", actions=[way_out])


def find_run(folder: Path, run_id: str | None, *, named: str | None = None) -> RunHandle:
    """Find a run of a folder's project, in the org of this name or in any; None stands for the most recent run."""
    check_run_id(run_id)
    return locate(find_project(folder), run_id, named=named)


def find_unfinished(folder: Path, observer: Observer, *, named: str | None = None) -> list[RunHandle]:
    """Find the runs of a folder's project that are not over."""
    run_ids = unfinished_runs(find_project(folder))
    if not run_ids:
        observer.note("No run of this project is unfinished.")
    return [find_run(folder, run_id, named=named) for run_id in run_ids]


def _target_of(run: RunHandle, observer: Observer) -> Target | None:
    """Return the run's org, None for the embedded one, which the observer then shows."""
    target = target_of(run)
    observer.show_org(run.project, target)
    return target


def fetch_run(run: RunHandle, checking: Checking, observer: Observer) -> FinishedRun:
    """Return the results that a run has so far."""
    if (finished := _saved(run, checking, observer)) is not None:
        return finished

    async def fetch(target: Target | None) -> FinishedRun:
        async with _org_of(run, target, observer, checking=checking) as org:
            seen = await org.fetch(org.find(run))
            is_stopped = await org.is_stopped(seen.run)
        if not seen.run.status.is_over:
            age = seconds(max(0, round(time.time() - seen.run.started)))
            not_over = f"The run started {age} ago and is not finished."
            way_out = "No process works on it. Continue it" if is_stopped else "Wait for it"
            observer.note(Suggestion(f"{not_over} {way_out}", "test", "resume", "--job-id", seen.run.id))
        return seen

    return observer.run(fetch(_target_of(run, observer)))


def resume_runs(
    runs: Sequence[RunHandle], checking: Checking, observer: Observer, *, wait: float, ignore_changes: bool, mixed: bool
) -> RunsOutcome:
    """Wait for runs of one org, and work on those that no other process works on.

    A run that no process works on is not resumed if its definition has changed, unless `ignore_changes` is set, or if
    another agent would answer, unless answers may be `mixed`.
    """
    saved = [_saved(run, checking, observer) for run in runs]
    missing = [run for run, finished in zip(runs, saved, strict=True) if finished is None]
    if len({run.org_url for run in missing}) > 1:
        raise UsageError("the runs are in different orgs", actions=["Resume the runs of each org on their own."])
    # A run that did not pass is false.
    outcome = RunsOutcome([finished for finished in saved if finished is not None], [], [])
    if missing:
        target = _target_of(missing[0], observer)
        how = {"ignore_changes": ignore_changes, "mixed": mixed}
        resumed = observer.run(_resume(missing, target, checking, observer, wait=wait, **how))
        outcome.finished.extend(resumed.finished)
        outcome.errors.extend(resumed.errors)
    return outcome


def _saved(run: RunHandle, checking: Checking, observer: Observer) -> FinishedRun | None:
    finished = load_finished(run, checking)
    if finished is not None:
        observer.note(f"Saved here: run {run.id}, which is over at {run.org_url}")
    return finished


async def _resume(
    runs: Sequence[RunHandle],
    target: Target | None,
    checking: Checking,
    observer: Observer,
    *,
    wait: float,
    ignore_changes: bool,
    mixed: bool,
) -> RunsOutcome:
    over: list[FinishedRun] = []
    refused: list[EvalmetaError] = []
    pending: list[tuple[RunHandle, RunOptions | None]] = []
    async with _org_of(runs[0], target, observer, checking=checking) as org:
        for run in runs:
            started = org.find(run)
            seen = await org.fetch(started)
            if seen.run.status.is_over:
                _note_missing_results(run.project, seen.run, observer)
                over.append(seen)
                continue
            try:
                await org.check_resumable(seen.run, ignore_changes=ignore_changes, mixed=mixed)
            except EvalmetaError as error:
                if len(runs) == 1:
                    raise
                refused.append(error)
                continue
            started = replace(started, definition=seen.run.definition, iterations=seen.run.options.iterations)
            pending.append((started, None))
        outcome = await finish_runs(org, pending, observer, wait=wait)
    await detach_runs(runs[0].project, target, outcome.errors, observer)
    return RunsOutcome([*over, *outcome.finished], [*refused, *outcome.errors], [])


def cancel_runs(runs: Sequence[RunHandle], observer: Observer) -> RunsOutcome:
    """Cancel runs; what prevents one does not stop the others."""
    outcome = RunsOutcome([], [], [])
    for run in runs:
        try:
            outcome.finished.append(_cancel_run(run, observer))
        except EvalmetaError as error:
            outcome.errors.append(error)
    return outcome


def _cancel_run(run: RunHandle, observer: Observer) -> FinishedRun:
    """Cancel a run, and return the results that it has."""

    async def cancel(target: Target | None) -> FinishedRun:
        async with _org_of(run, target, observer) as org:
            return await org.cancel(org.find(run))

    return observer.run(cancel(_target_of(run, observer)))


def extend_run(
    run: RunHandle, observer: Observer, *, iterations: int, wait: float | None, ignore_changes: bool, mixed: bool
) -> RunsOutcome:
    """Add iterations to a run that is over, and wait for it; without `wait`, only start it."""

    async def extend(target: Target | None) -> RunsOutcome:
        async with _org_of(run, target, observer, detached=wait is None) as org:
            started = await org.extend(run, iterations=iterations, ignore_changes=ignore_changes, mixed=mixed)
            if wait is None:
                observer.show_started(f"Extended run {started.id}.", started)
                return RunsOutcome([], [], [started])
            outcome = await finish_runs(org, [(started, None)], observer, wait=wait)
        await detach_runs(run.project, target, outcome.errors, observer)
        return outcome

    return observer.run(extend(_target_of(run, observer)))


def rescore_run(
    run: RunHandle, scoring: Scoring, policy: Mapping[str, object], observer: Observer, *, as_deployed: bool
) -> RunsOutcome:
    """Score the answers of a run again as a new run, and wait for it; `policy` replaces options of the first run."""

    def change(options: RunOptions) -> RunOptions:
        return replace(options, scoring=scoring, **policy)  # type: ignore[arg-type] # click has checked the values

    async def rescore(rescored: RunHandle, target: Target | None) -> RunsOutcome:
        async with _org_of(rescored, target, observer) as org:
            if not org.is_salesforce:
                started = await org.rescore(rescored, change, as_deployed=as_deployed)
                return await finish_runs(org, [(started, None)], observer, wait=math.inf)
            remote = await org.keep_answers(rescored)
        return await rescore(replace(run, remote=remote), None)

    is_kept = run.remote is not None and run.remote.content is not None
    return observer.run(rescore(run, None if is_kept else _target_of(run, observer)))


@asynccontextmanager
async def _org_of(
    run: RunHandle,
    target: Target | None,
    observer: Observer,
    *,
    detached: bool = False,
    checking: Checking | None = None,
) -> AsyncIterator[RunOrg]:
    """Connect to a run's org; errors say that another org may have it, or what changed in its definition."""
    try:
        async with connect(run.project, target, detached=detached, remark=observer.warn) as connection:
            org = RunOrg.of(connection, run.project, target, checking)
            org.warn_of_verdict(observer)
            yield org
    except DefinitionChanged as error:
        for line in difference_lines(error.difference) if error.difference else ():
            observer.note(line.text)
        raise
    except NotFound as error:
        way_out = "It may be in another org: name it with --target-org (see `evalmeta org list`)."
        raise NotFound(str(error), actions=[*error.actions, way_out]) from None


def _note_missing_results(project: Project, run: Run, observer: Observer) -> None:
    if (missing := run.total - len(run.cases)) <= 0:
        return
    results = f"{missing:,} of its {run.total:,} case results are missing"
    observer.note(f"Run {run.id} is over and cannot be resumed; {results}.")
    has_run, file = is_here(project, run.id), file_words(project, run)
    if has_run and not can_rerun(project, run):
        return
    observer.note(Suggestion("Start a new one", "test", "run", *(file or ("--api-name", run.definition))))
    if has_run:
        again = ("test", "run", *file, "--failed-from", run.id)
        observer.note(Suggestion("Or run only what failed or ended in an error", *again))


def can_rerun(project: Project, run: Run) -> bool:
    """Return whether cases of a run can run again here: in its file, or in its definition in the project's own org.

    Its answers must not be those of a run of another org, which another agent gave.
    """
    if run.answers_of and not is_here(project, run.answers_of):
        return False
    return place_of_run(project, run.id) is not None or is_deployed(project, run)


def file_words(project: Project, run: Run) -> tuple[str, ...]:
    """Return the file of a run, and its agent if the project does not bind it; nothing for deployed definitions."""
    place = place_of_run(project, run.id)
    if place is None:
        return ()
    return (shown(place[0]), *(_subject_words(project, run) if ":" in run.subject_name else ()))


def _subject_words(project: Project, run: Run) -> Iterator[str]:
    yield from ("--agent", run.subject_name)
    settings = subject_of_run(project, run.id)
    for key in ("model", "api_key_env"):
        # A value that the URL alone leads to need not be repeated.
        if (value := settings.get(key)) and value != endpoint_settings(run.subject_name).get(key):
            yield from (f"--{key.replace('_', '-')}", f"{value}")
