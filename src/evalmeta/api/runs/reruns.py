"""Runs that were started before: fetch, resume, extend, rescore and cancel them, and run their cases again."""

from __future__ import annotations

import math
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.api.agent_tests import columns_of_run, is_deployed, place_of_run, subject_of_run
from evalmeta.api.endpoints import endpoint_settings
from evalmeta.api.org_targets import Target, connect
from evalmeta.api.runs.archives import is_archive, open_archive
from evalmeta.api.runs.changes import DefinitionChanged
from evalmeta.api.runs.finding import (
    alone,
    is_here,
    is_run_id,
    is_run_name,
    locate,
    locate_suite,
    target_of,
    unfinished_suites,
)
from evalmeta.api.runs.org import RunOrg
from evalmeta.api.runs.saved import load_finished
from evalmeta.api.runs.starting import Starter
from evalmeta.api.runs.suites import names, startable, why_incomplete
from evalmeta.api.runs.waiting import RunsOutcome, detach_runs, finish_runs, has_stopped, higher_limit
from evalmeta.errors import EvalmetaError, NotFound, Suggestion, UsageError
from evalmeta.model.run import Run, Verdict
from evalmeta.package.files import shown
from evalmeta.package.project import Project, find_project
from evalmeta.report.comparison import difference_lines
from evalmeta.report.text import count, seconds
from evalmeta.store.database import open_database
from evalmeta.store.suites import Suites, SuiteTest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.api.runs.finding import RunHandle, SuiteHandle
    from evalmeta.api.runs.finished import FinishedRun
    from evalmeta.api.runs.observer import Observer
    from evalmeta.api.runs.verification import Checking
    from evalmeta.model.run_options import RunOptions, Scoring


def check_run_id(run_id: str | None) -> None:
    """Refuse what is neither an id nor a name of a run; None stands for the most recent run."""
    if run_id is not None and not is_run_id(run_id) and not is_run_name(run_id):
        names = "latest, previous, latest:TEST or previous:TEST, or the folder of an archive"
        way_out = f"Use the id that `evalmeta test run` printed, or {names}."
        raise UsageError(f"{run_id!r} is not a valid run id", actions=[way_out])


def find_run(folder: Path, run_id: str | None, *, named: str | None = None) -> RunHandle:
    """Find a run of a folder's project, in the org of this name or in any; None stands for the most recent run.

    Raise UsageError if the name of a suite means several runs.
    """
    check_run_id(run_id)
    return locate(find_project(folder), run_id, named=named)


def find_run_of_case(folder: Path, name: str | None, number: int, *, named: str | None = None) -> RunHandle:
    """Find a run as `find_run` does; of a suite of several runs, the only one in which the case did not pass."""
    from evalmeta.api.runs import comparisons

    runs = find_suite(folder, name, named=named).runs
    stored = [(run, comparisons.find_run(run.project, run.id, org_url=run.stored_at)) for run in runs if len(runs) > 1]
    failing = [
        run
        for run, saved in stored
        if any(case.number == number and case.verdict is not Verdict.PASS for case in saved.cases)
    ]
    return failing[0] if len(failing) == 1 else find_run(folder, name, named=named)


def find_suite(
    folder: Path, name: str | None, *, named: str | None = None, is_whole: bool = False, or_archive: bool = False
) -> SuiteHandle:
    """Find a suite of a folder's project, or one of its runs by id; see `locate_suite`.

    With `or_archive`, the name can also be that of an archive, which is then loaded.
    """
    if or_archive and name is not None and is_archive(name):
        return open_archive(find_project(folder, or_folder=True), name).suite()
    check_run_id(name)
    return locate_suite(find_project(folder), name, named=named, is_whole=is_whole)


def find_unfinished(
    folder: Path, observer: Observer, *, named: str | None = None, stopped: bool = False
) -> list[SuiteHandle]:
    """Find the suites of a folder's project that are not complete, as `unfinished_suites` does."""
    suites = unfinished_suites(find_project(folder), named=named, stopped=stopped)
    if not suites:
        observer.note("No run of this project is unfinished.")
    return suites


def _target_of(suite: SuiteHandle, observer: Observer) -> Target | None:
    """Return the org of a suite, None for the embedded one, which the observer then shows."""
    target = target_of(suite.runs[0]) if suite.runs else suite.target
    observer.show_org(suite.project, target)
    return target


def fetch_suite(suite: SuiteHandle, checking: Checking, observer: Observer) -> RunsOutcome:
    """Return the results that the runs of a suite have so far; tests that have no run are an error of the outcome."""
    finished = _saved([suite], checking, observer)
    missing = [run for run in suite.runs if run.id not in finished]

    async def fetch(target: Target | None) -> None:
        async with _org_of(suite, target, observer, checking=checking) as org:
            finished.update([(run.id, await org.fetch(org.find(run))) for run in missing])
            unfinished = [finished[run.id].run for run in missing if not finished[run.id].run.status.is_over]
            if unfinished:
                _note_unfinished(unfinished, observer, is_stopped=await org.is_stopped(unfinished[0]))

    if missing:
        observer.run(fetch(_target_of(suite, observer)))
    incomplete = _incomplete([suite])
    return RunsOutcome([finished[run.id] for run in suite.runs], incomplete, [])


def _note_unfinished(runs: Sequence[Run], observer: Observer, *, is_stopped: bool) -> None:
    """Say that runs are not finished, and how to go on; `is_stopped` says that no process works on the first."""
    age = seconds(max(0, round(time.time() - runs[0].started)))
    what = f"The run started {age} ago and is" if len(runs) == 1 else f"{len(runs):,} runs are"
    it = "it" if len(runs) == 1 else "them"
    way_out = f"No process works on {it}. Continue {it}" if is_stopped else f"Wait for {it}"
    observer.note(Suggestion(f"{what} not finished. {way_out}", "test", "resume", "--job-id", runs[0].id))


def _saved(suites: Sequence[SuiteHandle], checking: Checking, observer: Observer) -> dict[str, FinishedRun]:
    """Return the runs of other orgs that were saved when they were over."""
    found = {run.id: load_finished(run, checking) for suite in suites for run in suite.runs}
    for suite in suites:
        for run_id in suite.run_ids:
            if found[run_id] is not None:
                observer.note(f"Saved here: run {run_id}, which is over at {suite.org_url}")
    # A run that did not pass is false.
    return {run_id: finished for run_id, finished in found.items() if finished is not None}


def _incomplete(suites: Sequence[SuiteHandle]) -> list[EvalmetaError]:
    """Return an error for each suite with tests that have no run now."""
    errors = list[EvalmetaError]()
    for suite in suites:
        if suite.saved is not None:
            with open_database(suite.project.store) as database:
                errors += filter(None, [why_incomplete(Suites(database).get(suite.saved.id), suite.run_ids)])
    return errors


class Resumption(NamedTuple):
    """How suites are completed.

    Attributes:
        wait: seconds, or infinite.
        checking: how the verdicts of a Salesforce org are checked.
        ignore_changes: whether runs continue although their definitions have changed, and tests start that have.
        mixed: whether suites may have answers of several agents.
        max_cost: the new cost limit, in US dollars, of all runs of a suite; None for the one that each has.
    """

    wait: float
    checking: Checking
    ignore_changes: bool = False
    mixed: bool = False
    max_cost: float | None = None


def resume_suites(suites: Sequence[SuiteHandle], resumption: Resumption, observer: Observer) -> RunsOutcome:
    """Complete suites of one org: wait for their runs, and start the tests that never started.

    The outcome has all runs of the suites, also those that were over before, and errors if a test has no run.
    """
    saved = _saved(suites, resumption.checking, observer)
    pending = [replace(suite, runs=tuple(run for run in suite.runs if run.id not in saved)) for suite in suites]
    pending = [suite for suite in pending if suite.runs or suite.due]
    if len({suite.org_url for suite in pending}) > 1:
        raise UsageError("the runs are in different orgs", actions=["Resume the runs of each org on their own."])
    outcome = RunsOutcome([*saved.values()], [], [])
    if pending:
        observer.run(_resume(pending, _target_of(pending[0], observer), resumption, observer, outcome))
    outcome.finished.sort(key=_order_of(suites))
    if not outcome.errors:
        outcome.errors.extend(_incomplete(suites))
    return outcome


def _order_of(suites: Sequence[SuiteHandle]) -> Callable[[FinishedRun], tuple[int, int, int]]:
    """Return what orders runs as their suites do; runs without a place are in the order in which they started."""
    suite_of = {run_id: place for place, suite in enumerate(suites) for run_id in suite.run_ids}
    suite_of |= {suite.saved.id: place for place, suite in enumerate(suites) if suite.saved}
    known = [run_id for suite in suites for run_id in suite.run_ids]

    def order(finished: FinishedRun) -> tuple[int, int, int]:
        run, origin = finished.run, finished.run.options.origin
        suite = suite_of.get(run.id, suite_of.get(origin.suite, len(suites)))
        return suite, origin.place, known.index(run.id) if run.id in known else len(known)

    return order


async def _resume(
    suites: Sequence[SuiteHandle],
    target: Target | None,
    resumption: Resumption,
    observer: Observer,
    outcome: RunsOutcome,
) -> None:
    """Carry out what suites lack, and add it to the outcome."""
    runs, due = [run for suite in suites for run in suite.runs], [test for suite in suites for test in suite.due]
    how = {"ignore_changes": resumption.ignore_changes, "mixed": resumption.mixed}
    seen: list[Run] = []
    pending: list[RunHandle] = []
    async with _org_of(suites[0], target, observer, checking=resumption.checking) as org:
        for run in runs:
            started = org.find(run)
            now = await org.fetch(started)
            seen.append(now.run)
            can_continue = org.connection.is_ours and has_stopped(now.run)
            if now.run.status.is_over and not can_continue:
                outcome.finished.append(now)
                continue
            try:
                _check_limit(now.run, resumption.max_cost)
                if can_continue:
                    options = now.run.options
                    await org.extend(started, iterations=options.iterations, max_cost=resumption.max_cost, **how)
                else:
                    if resumption.max_cost is not None:
                        await org.limit(started, max_cost=resumption.max_cost)
                    await org.check_resumable(now.run, **how)
            except EvalmetaError as error:
                if len(runs) == 1 and not due:
                    raise
                outcome.errors.append(error)
                continue
            iterations = now.run.options.common_iterations
            pending.append(replace(started, definition=now.run.definition, iterations=iterations))
        if resumption.max_cost is not None:
            due = [replace(test, options=replace(test.options, max_cost=resumption.max_cost)) for test in due]
        ready, errors = await startable(org, due, seen, **how) if due else ([], [])
        outcome.errors.extend(errors)
        if ready:
            observer.note(f"{count(len(ready), 'test')} never started, and {_start(ready)} now: {names(ready)}.")
        await Starter(org, observer, outcome).run(ready, resumption.wait, pending)
    for finished in outcome.finished:
        _note_missing_results(suites[0].project, finished.run, observer)
    await detach_runs(suites[0].project, target, outcome.errors, observer)


def _check_limit(run: Run, max_cost: float | None) -> None:
    """Refuse to continue a run that was cut by its cost limit without a higher one."""
    limit = run.options.max_cost
    if run.is_cut and limit is not None and (max_cost is None or max_cost <= limit):
        higher = Suggestion("Give a higher limit", "test", "resume", "--job-id", run.id, *higher_limit([run]))
        raise UsageError(f"run {run.id} stopped: {run.error}", actions=[higher])


def _start(tests: Sequence[SuiteTest]) -> str:
    return "starts" if len(tests) == 1 else "start"


def cancel_suites(suites: Sequence[SuiteHandle], observer: Observer) -> RunsOutcome:
    """Cancel the runs of suites and their tests that never started; what prevents one does not stop the others."""
    outcome = RunsOutcome([], [], [])
    for suite in suites:
        for run in suite.runs:
            try:
                outcome.finished.append(_cancel_run(run, observer))
            except EvalmetaError as error:
                # The other runs of its suite may be over.
                if len(suite.runs) == 1 and not suite.due:
                    outcome.errors.append(error)
        if suite.due:
            with open_database(suite.project.store) as database:
                Suites(database).settle(suite.due, "canceled")
            observer.note(f"{count(len(suite.due), 'test')} will not start: {names(suite.due)}.")
    return outcome


def _cancel_run(run: RunHandle, observer: Observer) -> FinishedRun:
    """Cancel a run, and return the results that it has."""

    async def cancel(target: Target | None) -> FinishedRun:
        async with _org_of(alone(run), target, observer) as org:
            return await org.cancel(org.find(run))

    return observer.run(cancel(_target_of(alone(run), observer)))


def extend_run(
    run: RunHandle, observer: Observer, *, iterations: int, wait: float | None, ignore_changes: bool, mixed: bool
) -> RunsOutcome:
    """Add iterations to a run that is over, and wait for it; without `wait`, only start it."""

    async def extend(target: Target | None) -> RunsOutcome:
        async with _org_of(alone(run), target, observer, detached=wait is None) as org:
            started = await org.extend(run, iterations=iterations, ignore_changes=ignore_changes, mixed=mixed)
            if wait is None:
                observer.show_started(f"Extended run {started.id}.", started)
                return RunsOutcome([], [], [started])
            outcome = await finish_runs(org, [started], observer, wait=wait)
        await detach_runs(run.project, target, outcome.errors, observer)
        return outcome

    return observer.run(extend(_target_of(alone(run), observer)))


def rescore_run(
    run: RunHandle, scoring: Scoring, policy: Mapping[str, object], observer: Observer, *, as_deployed: bool
) -> RunsOutcome:
    """Score the answers of a run again as a new run, and wait for it; `policy` replaces options of the first run."""

    def change(options: RunOptions) -> RunOptions:
        return replace(options, scoring=scoring, **policy)  # type: ignore[arg-type] # click has checked the values

    async def rescore(rescored: RunHandle, target: Target | None) -> RunsOutcome:
        async with _org_of(alone(rescored), target, observer) as org:
            if not org.is_salesforce:
                started = await org.rescore(rescored, change, as_deployed=as_deployed)
                return await finish_runs(org, [started], observer, wait=math.inf)
            remote = await org.keep_answers(rescored)
        return await rescore(replace(run, remote=remote), None)

    is_kept = run.remote is not None and run.remote.content is not None
    return observer.run(rescore(run, None if is_kept else _target_of(alone(run), observer)))


@asynccontextmanager
async def _org_of(
    suite: SuiteHandle,
    target: Target | None,
    observer: Observer,
    *,
    detached: bool = False,
    checking: Checking | None = None,
) -> AsyncIterator[RunOrg]:
    """Connect to a suite's org; errors say that another org may have it, or what changed in its definition."""
    try:
        async with connect(suite.project, target, detached=detached, remark=observer.warn) as connection:
            org = RunOrg.of(connection, suite.project, target, checking)
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
    if (missing := run.total - len(run.cases)) <= 0 or not run.status.is_over:
        return
    what = "has stopped again" if has_stopped(run) else "is over and cannot be resumed"
    observer.note(f"Run {run.id} {what}; {missing:,} of its {run.total:,} case results are missing.")
    if run.is_cut:
        higher = ("test", "resume", "--job-id", run.id, *higher_limit([run]))
        observer.note(Suggestion("Ask the missing ones with a higher limit", *higher))
        return
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


def file_words(project: Project, run: Run, *, names_agent: bool = False) -> tuple[str, ...]:
    """Return the file of a run, and its agent if the project does not bind it; nothing for deployed definitions.

    The columns that the call named follow.
    `names_agent` also names an agent that the project binds, which may not be that of the file.
    """
    place = place_of_run(project, run.id)
    if place is None:
        return ()
    agent = _subject_words(project, run) if names_agent or ":" in run.subject_name else ()
    columns = (("--columns", f"{key}={title}") for key, title in columns_of_run(project, run.id))
    return (shown(place[0]), *agent, *chain.from_iterable(columns))


def _subject_words(project: Project, run: Run) -> Iterator[str]:
    settings = subject_of_run(project, run.id)
    # In a matrix, the model of a URL is part of the name.
    name = run.subject_name.removesuffix(f"@{settings.get('model')}")
    yield from ("--agent", name)
    for key in ("model", "api_key_env"):
        # A value that the URL alone leads to need not be repeated.
        if (value := settings.get(key)) and value != endpoint_settings(name).get(key):
            yield from (f"--{key.replace('_', '-')}", f"{value}")
