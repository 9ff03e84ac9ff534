"""How the `test` commands start runs, wait for them, and print what they would ask (`--dry-run`)."""

from __future__ import annotations

import time
from asyncio import CancelledError
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import click

from evalmeta import api
from evalmeta.cli.agent_output import agent_output
from evalmeta.cli.jobs import wait_seconds
from evalmeta.cli.orgs import connected
from evalmeta.cli.output import console, note, print_json, warn
from evalmeta.cli.suggestions import completed
from evalmeta.errors import EvalmetaError, OrgFault, Suggestion, UsageError, WaitRanOut
from evalmeta.report.progress import Progress
from evalmeta.report.text import count, one_line, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.api.agent_tests import AgentTest, FileTest
    from evalmeta.api.finished_runs import FinishedRun
    from evalmeta.api.org_targets import Target
    from evalmeta.api.run_selection import CaseChoice, PlannedRun
    from evalmeta.api.runs import RunOrg, StartedRun
    from evalmeta.client.connection import Connection
    from evalmeta.client.runs import Progress as RunProgress
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import RunOptions
    from evalmeta.package.project import Project


class RunRequest(NamedTuple):
    """What to run: tests in files, or in the org if there are none.

    `will_confirm` says that suspect cases will be chosen and asked again.

    `wait` is seconds; None starts runs without waiting for them. `is_quiet` reserves stdout for the report.
    """

    choice: CaseChoice
    options: RunOptions
    wait: float | None
    is_quiet: bool = False
    files: tuple[FileTest, ...] = ()
    will_confirm: bool = False


class RunsOutcome(NamedTuple):
    """The runs of several tests that finished or were only started, and why others could not be started."""

    finished: list[FinishedRun]
    errors: list[EvalmetaError]
    started: list[StartedRun]


async def finish_run(
    org: RunOrg, started: StartedRun, progress: Progress, *, wait: float, options: RunOptions | None = None
) -> FinishedRun:
    """Wait for a run, for `wait` seconds or without limit, and show its progress.

    `options` decide what passes, instead of the run's own. The actions of a `WaitRanOut` say how to resume the run.
    """
    run_id, is_shown, limit = started.id, False, wait_seconds(wait, default=None)

    def show(now: RunProgress) -> None:
        nonlocal is_shown
        if not is_shown:
            progress.start(run_id, now.total, started.definition, iterations=started.iterations)
            is_shown = True
        progress.update(run_id, now.done, now.not_passed, total=now.total)

    try:
        with agent_output():
            finished = await org.finish(started, options=options, wait=limit, on_progress=show)
    except CancelledError:
        note(Suggestion("\nFinished results are kept. Resume it", "test", "resume", "--job-id", run_id))
        raise
    except WaitRanOut as timed_out:
        resume = Suggestion("Resume it", "test", "resume", "--job-id", run_id)
        cancel = Suggestion("Cancel it", "test", "cancel", "--job-id", run_id)
        raise WaitRanOut(str(timed_out), job_id=run_id, actions=[resume, cancel]) from None
    summary = finished.summary
    progress.finish(run_id, failed=summary.failed + summary.errors, undecided=summary.undecided)
    return finished


async def run_tests(project: Project, target: Target | None, request: RunRequest) -> RunsOutcome:
    """Run tests one after the other, or start them if the request has no wait.

    If something that a test needs is missing, no test is run. If waiting times out, the run continues and the
    remaining tests are not started. A test that cannot be started does not stop the others. A test without chosen
    cases is skipped.
    """
    outcome = RunsOutcome([], [], [])
    async with connected(project, target, detached=request.wait is None) as connection:
        org = api.runs.RunOrg.of(connection, project, target)
        tests = await _choose_tests(connection, request)
        _check_choice(connection, request)
        for name in () if request.files else await api.changes.find_undeployed(connection, project, tests):
            note(Suggestion(f"Warning: {name} differs from the org's; deploy to test your changes", "deploy"))
        if ignored := org.ignored_options(request.options):
            *others, last = (name.replace("_", "-") for name in ignored)
            warn(f"this org ignores {', '.join(others)} and {last}" if others else f"this org ignores {last}")
        await org.check([(test, _options_of(test, request)) for test in tests])
        if request.wait is None:
            await _start_all(org, tests, request, outcome)
        else:
            await _run_all(org, tests, request, outcome, wait=request.wait)
    await detach_runs(project, target, outcome.errors)
    return outcome


async def _choose_tests(connection: Connection, request: RunRequest) -> list[AgentTest]:
    """Return the tests to run: those in files, or those in the org as `select_tests` does."""
    if request.files:
        return [api.agent_tests.AgentTest(each.type, each.name, each) for each in request.files]
    return await api.runs.select_tests(connection, request.choice.names)


def _check_choice(connection: Connection, request: RunRequest) -> None:
    """Refuse a choice of cases or an order if the org can only run whole definitions."""
    options = request.options
    chooses = request.choice.lists or options.shard or request.will_confirm
    if (chooses or options.seed is not None) and not connection.is_ours:
        way_out = "Leave out --case, --tag, --failed-from, --shard, --seed and --confirm."
        raise UsageError("a Salesforce org runs whole definitions in its own order", actions=[way_out])


async def _start_all(org: RunOrg, tests: Sequence[AgentTest], request: RunRequest, outcome: RunsOutcome) -> None:
    for test in tests:
        if started := await _start(org, test, request, outcome):
            outcome.started.append(started)
            print_started(f"Started {test.full_name} (run {started.id}).", started, is_quiet=request.is_quiet)
            if request.options.iterations > 1 and not org.connection.is_ours:
                note(f"This is the first of {request.options.iterations} iterations; resume it to run the others.")


async def _run_all(
    org: RunOrg, tests: Sequence[AgentTest], request: RunRequest, outcome: RunsOutcome, *, wait: float
) -> None:
    deadline = time.monotonic() + wait
    with run_progress() as progress:
        for place, test in enumerate(tests):
            started = await _start(org, test, request, outcome)
            if not started:
                continue
            left = max(0.0, deadline - time.monotonic())
            options = _with_file_options(request.options, test)
            try:
                with _name_unstarted(tests[place + 1 :]):
                    outcome.finished.append(await finish_run(org, started, progress, options=options, wait=left))
            except WaitRanOut as timed_out:
                outcome.errors.append(with_total_wait(timed_out, wait))
                return


async def _start(org: RunOrg, test: AgentTest, request: RunRequest, outcome: RunsOutcome) -> StartedRun | None:
    try:
        return await org.start(test, _options_of(test, request))
    except EvalmetaError as error:
        if isinstance(error, OrgFault) and error.code == "NOTHING_TO_RUN":
            note(f"Skipped {test.full_name}: none of its cases are selected.")
        else:
            outcome.errors.append(error)
        return None


def _options_of(test: AgentTest, request: RunRequest) -> RunOptions:
    return _with_file_options(replace(request.options, cases=request.choice.numbers(test)), test)


def _with_file_options(options: RunOptions, test: AgentTest) -> RunOptions:
    return api.agent_tests.with_document(options, test.file.document) if test.file else options


@contextmanager
def _name_unstarted(tests: Sequence[AgentTest]) -> Iterator[None]:
    """Print the tests that were not started because of an interruption or a time-out."""
    try:
        yield
    except (CancelledError, WaitRanOut):
        if tests:
            note(f"Not started: {', '.join(each.full_name for each in tests)}.")
        raise


def print_started(what: str, started: StartedRun, *, is_quiet: bool) -> None:
    """Print that a run was started, and how to wait for it."""
    click.echo(completed(Suggestion(f"{what} Wait for it", "test", "resume", "--job-id", started.id)), err=is_quiet)


async def detach_runs(project: Project, target: Target | None, errors: Sequence[EvalmetaError]) -> None:
    """Let runs of the embedded org continue after a time-out; those of other orgs do so anyway."""
    run_ids = [error.job_id for error in errors if isinstance(error, WaitRanOut)]
    if target is not None or not run_ids:
        return
    async with connected(project, None, detached=True) as connection:
        for run_id in run_ids:
            await api.runs.detach_run(connection, run_id)


def with_total_wait(timed_out: WaitRanOut, wait: float) -> WaitRanOut:
    """Return the error with the whole wait, which several runs or iterations share."""
    message = f"run {timed_out.job_id} is not done after {seconds(wait)}; it continues in the org"
    return WaitRanOut(message, job_id=timed_out.job_id, actions=timed_out.actions)


def run_progress() -> Progress:
    """Return what shows the progress of runs on stderr."""
    return Progress(console(err=True), enabled=True)


async def make_plan(project: Project, target: Target | None, request: RunRequest) -> list[PlannedRun]:
    """Return what the runs would ask; raise the same errors as starting them."""
    if target is None:
        api.run_selection.check_rater(project, request.options)
    async with connected(project, target) as connection:
        _check_choice(connection, request)
        tests = await _choose_tests(connection, request)
        return await api.run_selection.plan_runs(connection, tests, request.choice, request.options)


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
    if target is not None or any(each.name == planned.definition and each.subject for each in request.files):
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
        yield f"  {case.number:>4} {label}{one_line(' / '.join(turn.utterance for turn in case.turns))}"
    if planned.expectations:
        names = (f"{name} ({times:,})" if times > 1 else name for name, times in planned.expectations.items())
        yield f"  judged: {', '.join(names)}"
    yield ""


def _total(planned: Sequence[PlannedRun], options: RunOptions) -> str:
    cases = sum(len(each.cases) for each in planned)
    questions = sum(each.utterances for each in planned)
    iterations = f" in {options.iterations:,} iterations" if options.iterations > 1 else ""
    scoring = f"scoring {options.scoring.profile}, rater {options.scoring.rater}"
    return (
        f"Would ask {count(cases, 'case')}{iterations}: {count(questions, 'question')}, {scoring}. Nothing was asked."
    )


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
