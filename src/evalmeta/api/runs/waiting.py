"""Wait for runs up to a time limit, show their progress, and let unfinished runs continue."""

from __future__ import annotations

import asyncio
import math
import time
from asyncio import CancelledError
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.org_targets import Target, connect
from evalmeta.api.runs.finished import FinishedRun
from evalmeta.api.runs.org import RunOrg, detach_run
from evalmeta.errors import EvalmetaError, OrgBusy, OrgUnreachable, Suggestion, WaitRanOut
from evalmeta.model.run import Run, RunStatus
from evalmeta.report.text import seconds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from evalmeta.api.runs.finding import RunHandle
    from evalmeta.api.runs.observer import Observer
    from evalmeta.client.runs import Progress as RunProgress
    from evalmeta.package.project import Project
    from evalmeta.report.progress import Progress


# Runs whose progress is requested at the same time; the org executes runs in the order in which they started.
_FOLLOWED: Final = 10
# Runs that a suggested command names; more are all that are unfinished.
_NAMED: Final = 3


class RunsOutcome(NamedTuple):
    """The runs of several tests that finished or were only started, and why others could not be started."""

    finished: list[FinishedRun]
    errors: list[EvalmetaError]
    started: list[RunHandle]


async def finish_runs(
    org: RunOrg, runs: Sequence[RunHandle], observer: Observer, *, wait: float, begun: float | None = None
) -> RunsOutcome:
    """Wait for runs together, until `wait` seconds after `begun` or without limit, and show their progress.

    Runs that are not done in time, and all other errors, are errors of the outcome.
    """
    deadline = (time.monotonic() if begun is None else begun) + wait
    unfinished = {run.id: None for run in runs}
    following = asyncio.Semaphore(_FOLLOWED)

    async def follow(run: RunHandle) -> FinishedRun:
        async with following:
            left = max(0.0, deadline - time.monotonic())
            try:
                finished = await _finish_run(org, run, progress, wait=left)
            except (OrgBusy, OrgUnreachable) as error:
                error.actions = (*error.actions, Suggestion("Resume the run", "test", "resume", *job_words([run.id])))
                raise
        del unfinished[run.id]
        return finished

    counts = ""
    try:
        with observer.progress(len(runs)) as progress:
            try:
                ends = await asyncio.gather(*map(follow, runs), return_exceptions=True)
            finally:
                counts = f": {progress.counts}"
    except CancelledError:
        # The end of the progress clears the lines that it used.
        note_interruption(observer, job_words(unfinished), counts)
        raise
    outcome = RunsOutcome([end for end in ends if isinstance(end, FinishedRun)], [], [])
    if late := [end.job_id for end in ends if isinstance(end, WaitRanOut)]:
        outcome.errors.append(_late_runs(late, wait))
    for end in ends:
        if isinstance(end, BaseException) and not isinstance(end, EvalmetaError):
            raise end
        if isinstance(end, EvalmetaError) and not isinstance(end, WaitRanOut):
            outcome.errors.append(end)
    return outcome


async def _finish_run(org: RunOrg, run: RunHandle, progress: Progress, *, wait: float) -> FinishedRun:
    is_shown = False

    def show(now: RunProgress) -> None:
        nonlocal is_shown
        if not is_shown:
            progress.start(run.id, now.total, run.definition, iterations=run.iterations)
            is_shown = True
        progress.update(run.id, now.done, now.not_passed, errors=now.errors, undecided=now.undecided, total=now.total)

    finished = await org.finish(run, wait=None if wait == math.inf else wait, on_progress=show)
    summary, is_over = finished.summary, finished.run.status.is_over
    progress.finish(run.id, failed=summary.failed + summary.errors, undecided=summary.undecided, is_over=is_over)
    return finished


def _late_runs(run_ids: Sequence[str], wait: float) -> WaitRanOut:
    them = "it" if len(run_ids) == 1 else "them"
    what = f"run {run_ids[0]} is" if len(run_ids) == 1 else f"{len(run_ids):,} runs are"
    message = f"{what} not done after {seconds(wait)}; {'it continues' if them == 'it' else 'they continue'} in the org"
    if len(run_ids) > 1:
        message += f": {', '.join(run_ids)}"
    resume = Suggestion(f"Resume {them}", "test", "resume", *job_words(run_ids))
    cancel = Suggestion(f"Cancel {them}", "test", "cancel", *job_words(run_ids))
    return WaitRanOut(message, job_id=run_ids[0], job_ids=run_ids, actions=[resume, cancel])


def note_interruption(observer: Observer, words: Sequence[str], counts: str = "") -> None:
    """Say that what is done is kept, and how to go on; `words` name the runs."""
    observer.note(f"\nFinished results are kept{counts}.")
    observer.note(Suggestion("Resume", "test", "resume", *words))


def has_stopped(run: Run) -> bool:
    """Return whether a run stopped before it asked all cases, because of errors, so that it can continue."""
    return run.status is RunStatus.ERROR and run.answers_of is None and len(run.cases) < run.total


def higher_limit(runs: Iterable[Run]) -> tuple[str, ...]:
    """Return the words of a higher cost limit than that of the first run that was cut; empty if none was."""
    limits_of_cut = (run.options.max_cost for run in runs if run.is_cut)
    return next((("--max-cost", f"{2 * limit:g}") for limit in limits_of_cut if limit), ())


def job_words(run_ids: Collection[str]) -> list[str]:
    """Return the words of a command that name runs."""
    if len(run_ids) > _NAMED:
        return ["--unfinished"]
    return [word for run_id in run_ids for word in ("--job-id", run_id)]


async def detach_runs(
    project: Project, target: Target | None, errors: Sequence[EvalmetaError], observer: Observer
) -> None:
    """Let runs of the embedded org continue after a time-out; those of other orgs do so anyway."""
    run_ids = [run_id for error in errors if isinstance(error, WaitRanOut) for run_id in error.job_ids]
    if target is not None or not run_ids:
        return
    async with connect(project, None, detached=True, remark=observer.warn) as connection:
        for run_id in run_ids:
            await detach_run(connection, run_id)
