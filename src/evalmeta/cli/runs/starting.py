"""How the `test` commands start runs, wait for them, and print what they would ask (`--dry-run`)."""

from __future__ import annotations

import asyncio
import time
from asyncio import CancelledError
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from evalmeta import api
from evalmeta.cli.jobs import wait_seconds
from evalmeta.cli.orgs import connected
from evalmeta.cli.output import agent_output, console, note, print_json, warn
from evalmeta.cli.suggestions import completed
from evalmeta.errors import EvalmetaError, OrgFault, Suggestion, UsageError, WaitRanOut
from evalmeta.report.progress import Progress
from evalmeta.report.text import count, one_line, seconds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from evalmeta.api.agent_tests import AgentTest, FileTest
    from evalmeta.api.org_targets import Target
    from evalmeta.api.runs.finished import FinishedRun
    from evalmeta.api.runs.org import RunOrg, StartedRun
    from evalmeta.api.runs.selection import CaseChoice, PlannedRun
    from evalmeta.api.runs.verification import Checking
    from evalmeta.client.connection import Connection
    from evalmeta.client.runs import Progress as RunProgress
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import Run
    from evalmeta.model.run_options import RunOptions
    from evalmeta.package.project import Project


# Runs whose progress is requested at the same time; the org executes runs in the order in which they started.
_FOLLOWED: Final = 10
# Runs that a suggested command names; more are all that are unfinished.
_NAMED: Final = 3


class RunRequest(NamedTuple):
    """What to run: tests in files, or in the org if there are none.

    `will_confirm` says that suspect cases must be asked again; `confirms` are the runs whose suspect cases this request
    asks again, by `Type:Name` of their tests; `checking`, how the verdicts of a Salesforce org are checked.

    `wait` is seconds; None starts runs without waiting for them. `is_quiet` reserves stdout for the report.
    """

    choice: CaseChoice
    options: RunOptions
    wait: float | None
    is_quiet: bool = False
    files: tuple[FileTest, ...] = ()
    will_confirm: bool = False
    checking: Checking | None = None
    confirms: Mapping[str, Run] = MappingProxyType({})


class RunsOutcome(NamedTuple):
    """The runs of several tests that finished or were only started, and why others could not be started."""

    finished: list[FinishedRun]
    errors: list[EvalmetaError]
    started: list[StartedRun]


async def finish_runs(
    org: RunOrg, runs: Sequence[tuple[StartedRun, RunOptions | None]], *, wait: float, begun: float | None = None
) -> RunsOutcome:
    """Wait for runs together, until `wait` seconds after `begun` or without limit, and show their progress.

    The options of a run decide what passes, instead of its own. Runs that are not done in time, and all other errors,
    are errors of the outcome.
    """
    deadline = (time.monotonic() if begun is None else begun) + wait
    unfinished = {started.id: None for started, _ in runs}
    following = asyncio.Semaphore(_FOLLOWED)

    async def follow(started: StartedRun, options: RunOptions | None) -> FinishedRun:
        async with following:
            left = max(0.0, deadline - time.monotonic())
            finished = await _finish_run(org, started, progress, wait=left, options=options)
        del unfinished[started.id]
        return finished

    progress = run_progress(len(runs))
    try:
        # What an agent prints must not mix with a report.
        with progress, agent_output():
            ends = await asyncio.gather(*(follow(*run) for run in runs), return_exceptions=True)
    except CancelledError:
        # The end of the progress clears the lines that it used.
        _note_interruption(_job_ids(unfinished), f": {progress.counts}")
        raise
    outcome = RunsOutcome([each for each in ends if isinstance(each, api.runs.finished.FinishedRun)], [], [])
    late = [wait_ran_out.job_id for wait_ran_out in ends if isinstance(wait_ran_out, WaitRanOut)]
    if late:
        outcome.errors.append(_late_runs(late, wait))
    for end in ends:
        if isinstance(end, BaseException) and not isinstance(end, EvalmetaError):
            raise end
        if isinstance(end, EvalmetaError) and not isinstance(end, WaitRanOut):
            outcome.errors.append(end)
    return outcome


async def _finish_run(
    org: RunOrg, started: StartedRun, progress: Progress, *, wait: float, options: RunOptions | None
) -> FinishedRun:
    run_id, is_shown = started.id, False

    def show(now: RunProgress) -> None:
        nonlocal is_shown
        if not is_shown:
            progress.start(run_id, now.total, started.definition, iterations=started.iterations)
            is_shown = True
        progress.update(run_id, now.done, now.not_passed, errors=now.errors, undecided=now.undecided, total=now.total)

    limit = wait_seconds(wait, default=None)
    finished = await org.finish(started, options=options, wait=limit, on_progress=show)
    summary = finished.summary
    is_over = finished.run.status.is_over
    progress.finish(run_id, failed=summary.failed + summary.errors, undecided=summary.undecided, is_over=is_over)
    return finished


def _late_runs(run_ids: Sequence[str], wait: float) -> WaitRanOut:
    them = "it" if len(run_ids) == 1 else "them"
    what = f"run {run_ids[0]} is" if len(run_ids) == 1 else f"{len(run_ids):,} runs are"
    message = f"{what} not done after {seconds(wait)}; {'it continues' if them == 'it' else 'they continue'} in the org"
    if len(run_ids) > 1:
        message += f": {', '.join(run_ids)}"
    resume = Suggestion(f"Resume {them}", "test", "resume", *_job_ids(run_ids))
    cancel = Suggestion(f"Cancel {them}", "test", "cancel", *_job_ids(run_ids))
    return WaitRanOut(message, job_id=run_ids[0], job_ids=run_ids, actions=[resume, cancel])


def _note_interruption(runs: Sequence[str], counts: str = "") -> None:
    note(f"\nFinished results are kept{counts}.")
    note(Suggestion("Resume", "test", "resume", *runs))


def _job_ids(run_ids: Collection[str]) -> list[str]:
    if len(run_ids) > _NAMED:
        return ["--unfinished"]
    return [word for run_id in run_ids for word in ("--job-id", run_id)]


async def run_tests(project: Project, target: Target | None, request: RunRequest) -> RunsOutcome:
    """Run tests, or start them if the request has no wait.

    In orgs of evalmeta they run together; a Salesforce org gets one after the other. If something that a test needs is
    missing, no test is run. If waiting times out, the runs continue. A test that cannot be started does not stop the
    others. A test without chosen cases is skipped.
    """
    outcome = RunsOutcome([], [], [])
    async with connected(project, target, detached=request.wait is None) as connection:
        org = api.runs.org.RunOrg.of(connection, project, target, request.checking)
        org = org._replace(origin=org.origin._replace(tags=request.choice.tags))
        tests = await _choose_tests(connection, request)
        _check_choice(connection, request)
        tests, request = await _narrow(connection, project, target, tests, request)
        if not tests:
            return outcome
        for name in () if request.files else await api.changes.find_undeployed(connection, project, tests):
            note(Suggestion(f"Warning: {name} differs from the org's; deploy to test your changes", "deploy"))
        warn_of_verdict(org)
        if ignored := org.ignored_options(request.options):
            *others, last = (name.replace("_", "-") for name in ignored)
            warn(f"this org ignores {', '.join(others)} and {last}" if others else f"this org ignores {last}")
        await org.check([(test, _options_of(test, request)) for test in tests])
        if request.wait is None:
            await _start_all(org, tests, request, outcome)
        elif connection.is_ours:
            await _run_together(org, tests, request, outcome, wait=request.wait)
        else:
            await _run_in_order(org, tests, request, outcome, wait=request.wait)
    await detach_runs(project, target, outcome.errors)
    return outcome


def warn_of_verdict(org: RunOrg) -> None:
    """Warn that --verdict chooses nothing where only evalmeta judges."""
    if org.checking.decides is not None and not org.is_salesforce:
        warn("this org is evalmeta's, so its verdicts are evalmeta's own: --verdict has no effect")


async def _choose_tests(connection: Connection, request: RunRequest) -> list[AgentTest]:
    """Return the tests to run: those in files, or those in the org as `select_tests` does."""
    if request.files:
        return [api.agent_tests.AgentTest(file.type, file.name, file) for file in request.files]
    return await api.agent_tests.select_tests(connection, request.choice.names)


async def _narrow(
    connection: Connection, project: Project, target: Target | None, tests: list[AgentTest], request: RunRequest
) -> tuple[list[AgentTest], RunRequest]:
    """Return the tests and cases that remain with --last-failed, and print what is left out."""
    if not request.choice.last_failed:
        return tests, request
    found = await api.runs.selection.last_failed(connection, project, tests, target=target)
    for text in found.notes:
        note(text)
    return [*found.tests], request._replace(choice=request.choice.narrowed(found.lists))


def _check_choice(connection: Connection, request: RunRequest) -> None:
    """Refuse a choice of cases or an order if the org can only run whole definitions."""
    options = request.options
    chooses = request.choice.lists or request.choice.last_failed or options.shard or request.will_confirm
    if (chooses or options.seed is not None) and not connection.is_ours:
        way_out = "Leave out --case, --tag, --failed-from, --last-failed, --shard, --seed and --confirm."
        raise UsageError("a Salesforce org runs whole definitions in its own order", actions=[way_out])


async def _start_all(org: RunOrg, tests: Sequence[AgentTest], request: RunRequest, outcome: RunsOutcome) -> None:
    for test in tests:
        if started := await _start(org, test, request, outcome):
            outcome.started.append(started)
            print_started(f"Started {test.full_name} (run {started.id}).", started, is_quiet=request.is_quiet)
            if request.options.iterations > 1 and not org.connection.is_ours:
                note(f"This is the first of {request.options.iterations} iterations; resume it to run the others.")


async def _run_together(
    org: RunOrg, tests: Sequence[AgentTest], request: RunRequest, outcome: RunsOutcome, *, wait: float
) -> None:
    begun, runs = time.monotonic(), []
    for place, test in enumerate(tests):
        try:
            started = await _start(org, test, request, outcome)
        except CancelledError:
            _note_interruption(["--unfinished"])
            _name_unstarted(tests[place:])
            raise
        if started:
            runs.append((started, _with_file_options(request.options, test)))
    ended = await finish_runs(org, runs, wait=wait, begun=begun)
    outcome.finished.extend(ended.finished)
    outcome.errors.extend(ended.errors)


async def _run_in_order(
    org: RunOrg, tests: Sequence[AgentTest], request: RunRequest, outcome: RunsOutcome, *, wait: float
) -> None:
    begun = time.monotonic()
    for place, test in enumerate(tests):
        started = await _start(org, test, request, outcome)
        if not started:
            continue
        runs = [(started, _with_file_options(request.options, test))]
        try:
            ended = await finish_runs(org, runs, wait=wait, begun=begun)
        except CancelledError:
            _name_unstarted(tests[place + 1 :])
            raise
        outcome.finished.extend(ended.finished)
        outcome.errors.extend(ended.errors)
        if any(isinstance(error, WaitRanOut) for error in ended.errors):
            _name_unstarted(tests[place + 1 :])
            return


async def _start(org: RunOrg, test: AgentTest, request: RunRequest, outcome: RunsOutcome) -> StartedRun | None:
    try:
        return await org.start(test, _options_of(test, request))
    except EvalmetaError as error:
        if isinstance(error, OrgFault) and error.code == "NOTHING_TO_RUN":
            note(f"Skipped: {str(error).removeprefix(f'{error.code}: ')}.")
        else:
            outcome.errors.append(error)
        return None


def _options_of(test: AgentTest, request: RunRequest) -> RunOptions:
    options = replace(request.options, cases=request.choice.numbers(test))
    if run := request.confirms.get(test.key):
        options = replace(options, confirms=run.id, origin=run.options.origin)
    return _with_file_options(options, test)


def _with_file_options(options: RunOptions, test: AgentTest) -> RunOptions:
    return test.file.document.applied_to(options) if test.file else options


def _name_unstarted(tests: Sequence[AgentTest]) -> None:
    if tests:
        note(f"Not started: {', '.join(test.full_name for test in tests)}.")


def print_started(what: str, started: StartedRun, *, is_quiet: bool) -> None:
    """Print that a run was started, and how to wait for it."""
    click.echo(completed(Suggestion(f"{what} Wait for it", "test", "resume", "--job-id", started.id)), err=is_quiet)


async def detach_runs(project: Project, target: Target | None, errors: Sequence[EvalmetaError]) -> None:
    """Let runs of the embedded org continue after a time-out; those of other orgs do so anyway."""
    run_ids = [run_id for error in errors if isinstance(error, WaitRanOut) for run_id in error.job_ids]
    if target is not None or not run_ids:
        return
    async with connected(project, None, detached=True) as connection:
        for run_id in run_ids:
            await api.runs.org.detach_run(connection, run_id)


def run_progress(runs: int = 1) -> Progress:
    """Return what shows the progress of runs on stderr, unless the command is called with --quiet."""
    context = click.get_current_context(silent=True)
    is_quiet = context is not None and bool(context.params.get("quiet"))
    return Progress(console(err=True), enabled=not is_quiet, runs=runs)


async def make_plan(project: Project, target: Target | None, request: RunRequest) -> list[PlannedRun]:
    """Return what the runs would ask; raise the same errors as starting them."""
    if target is None:
        api.runs.selection.check_rater(project, request.options)
    async with connected(project, target) as connection:
        _check_choice(connection, request)
        tests = await _choose_tests(connection, request)
        tests, request = await _narrow(connection, project, target, tests, request)
        return await api.runs.selection.plan_runs(connection, tests, request.choice, request.options)


def print_plan(
    project: Project, target: Target | None, planned: Sequence[PlannedRun], request: RunRequest, *, as_json: bool
) -> None:
    """Print what the runs would ask."""
    if as_json:
        print_json([_plan_json(each) for each in planned])
        return
    for each in planned:
        click.echo("\n".join(_lines(each, _adapter(project, target, each, request))))
    click.echo(_total(planned, request.options))


def _adapter(project: Project, target: Target | None, planned: PlannedRun, request: RunRequest) -> str:
    """Return the agent's adapter in parentheses; empty for agents in other orgs."""
    if target is not None or any(file.name == planned.definition and file.subject for file in request.files):
        return ""
    settings = project.settings.subjects.get(planned.subject_name)
    return f" (adapter {settings.adapter})" if settings else " (no adapter is bound to it)"


def _lines(planned: PlannedRun, adapter: str) -> Iterator[str]:
    if not planned.cases:
        yield one_line(f"{planned.definition}: none of its {count(planned.left_out, 'case')}\n", chars=200)
        return
    left_out = f", {planned.left_out:,} left out" if planned.left_out else ""
    subject = f"subject {planned.subject_name}{adapter}" if planned.subject_name else "no subject is named"
    yield one_line(f"{planned.definition}: {subject}", chars=200)
    yield f"  {count(len(planned.cases), 'case')}{left_out}"
    for case in planned.cases:
        label = f"{one_line(case.label)}: " if case.label else ""
        asked = f"not run: {case.not_run}" if case.not_run else " / ".join(turn.utterance for turn in case.turns)
        yield f"  {case.number:>4} {label}{one_line(asked)}"
    if planned.expectations:
        names = (f"{name} ({times:,})" if times > 1 else name for name, times in planned.expectations.items())
        yield f"  judged: {', '.join(names)}"
    yield ""


def _total(planned: Sequence[PlannedRun], options: RunOptions) -> str:
    cases = sum(len(each.cases) for each in planned)
    questions = sum(each.utterances for each in planned)
    iterations = f" in {options.iterations:,} iterations" if options.iterations > 1 else ""
    scoring = f"scoring {options.scoring.profile}, rater {options.scoring.rater}"
    return f"Would run {count(cases, 'case')}{iterations}: {count(questions, 'question')}, {scoring}. No case was run."


def _plan_json(planned: PlannedRun) -> JsonObject:
    return {
        "definition": planned.definition,
        "type": planned.type,
        "subjectName": planned.subject_name,
        "iterations": planned.iterations,
        "questions": planned.utterances,
        "cases": [
            {"number": case.number, "name": case.label, "utterances": [turn.utterance for turn in case.turns]}
            for case in planned.cases
        ],
        "leftOut": planned.left_out,
        "expectations": planned.expectations,
    }
