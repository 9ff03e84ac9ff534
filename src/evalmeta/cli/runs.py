"""Starting runs and waiting for them, as the `test` commands share it.

`evalmeta test run --dry-run`: what would be asked, for people and as JSON.

Tests in files, as `evalmeta test run PATH` takes them.
"""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import click

from evalmeta.cli.jobs import seconds_of
from evalmeta.cli.options import connected
from evalmeta.cli.output import console, note, print_json
from evalmeta.cli.suggestions import repeated
from evalmeta.errors import EvalmetaError, OrgFault, UsageError, WaitRanOut

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.api.agent_tests import FileTest
    from evalmeta.api.org_targets import Target
    from evalmeta.api.run_selection import Choice, PlannedRun
    from evalmeta.api.runs import AgentTest, FinishedRun
    from evalmeta.client.connection import Connection
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import RunOptions
    from evalmeta.package.project import Project
    from evalmeta.report.progress import Progress
    from evalmeta.store.history import RemoteRun


class Org(NamedTuple):
    """Where tests run; `elsewhere` is None for the project's own org, embedded or served."""

    connection: Connection
    project: Project
    elsewhere: Target | None


class StartedRun(NamedTuple):
    """A run that was started, and what is kept of it when it is in another org."""

    id: str
    definition: str
    remote: RemoteRun | None = None


class Order(NamedTuple):
    """What is to be run.

    Attributes:
        choice: which tests, and which of their cases.
        files: tests in files, instead of those in the org.
        wait: seconds; None starts runs and leaves them.
        is_quiet: stdout is for the report alone.
    """

    choice: Choice
    options: RunOptions
    wait: float | None
    is_quiet: bool = False
    files: tuple[FileTest, ...] = ()


class RunsOutcome(NamedTuple):
    """What came of several tests: the runs that finished, that were left, and why others could not be started."""

    finished: list[FinishedRun]
    errors: list[EvalmetaError]
    left: list[StartedRun]


async def run_tests(project: Project, target: Target | None, order: Order) -> RunsOutcome:
    """Runs tests one after the other; without a wait they are started and go on by themselves.

    Where the wait, in seconds, runs out, the run goes on too, and the tests after it are not
    started. A test that cannot be started does not keep the others from running; one of which
    no case is chosen is skipped.
    """
    from evalmeta.api import changes  # noqa: PLC0415 - not needed for --help

    outcome, wait = RunsOutcome([], [], []), order.wait
    async with connected(project, target, detached=wait is None) as connection:
        org = org_at(connection, project, target)
        chosen = await chosen_tests(connection, order)
        check_selection(connection, order)
        for name in () if order.files else await changes.find_undeployed(connection, project, chosen):
            note(f"Warning: {name} differs from the org's; deploy to test your changes: evalmeta deploy")
        _tell_options(connection, order.options)
        if wait is None:
            await _start_all(org, chosen, order, outcome)
        else:
            await _run_all(org, chosen, order, outcome, wait=wait)
    await leave_runs(project, target, outcome.errors)
    return outcome


async def chosen_tests(connection: Connection, order: Order) -> list[AgentTest]:
    """Gives the tests that are to be run: those in files, or those in the org as `select_tests` does."""
    from evalmeta.api import runs  # noqa: PLC0415 - not needed for --help
    from evalmeta.model.registry import EVALUATION_DEFINITION  # noqa: PLC0415 - likewise

    if order.files:
        return [runs.AgentTest(EVALUATION_DEFINITION, each.name, each) for each in order.files]
    return await runs.select_tests(connection, order.choice.names)


def check_selection(connection: Connection, order: Order) -> None:
    """Makes sure that an org can run no more than was chosen.

    Raises:
        UsageError: it cannot.
    """
    chosen = order.choice.lists or order.options.shard or order.options.seed is not None
    if chosen and not connection.is_ours:
        way_out = "Leave out --case, --tag, --failed-from, --shard and --seed."
        raise UsageError("an org of Salesforce's runs whole definitions in its own order", actions=[way_out])


def org_at(connection: Connection, project: Project, target: Target | None) -> Org:
    """Gives the org that a connection leads to."""
    from evalmeta.api.run_location import is_elsewhere  # noqa: PLC0415 - not needed for --help

    return Org(connection, project, target if is_elsewhere(project, target) else None)


def _tell_options(connection: Connection, options: RunOptions) -> None:
    from evalmeta.api import runs  # noqa: PLC0415 - not needed for --help

    if not connection.is_ours and (names := runs.left_out(options)):
        *others, last = (name.replace("_", "-") for name in names)
        shown = f"{', '.join(others)} and {last}" if others else last
        note(f"Warning: {shown} cannot be chosen in this org, which decides by itself; it runs without")


async def _start_all(org: Org, chosen: Sequence[AgentTest], order: Order, outcome: RunsOutcome) -> None:
    options = order.options
    for test in chosen:
        started = await _start(org, test, order, outcome)
        if started:
            outcome.left.append(started)
            way_on = f"Wait for it: evalmeta test resume --job-id {started.id}"
            click.echo(repeated(f"Started {test.full_name} (run {started.id}). {way_on}"), err=order.is_quiet)
            if options.iterations > 1 and not org.connection.is_ours:
                note(f"It is the first of {options.iterations} iterations; waiting for it starts the others in turn.")


async def _run_all(org: Org, chosen: Sequence[AgentTest], order: Order, outcome: RunsOutcome, *, wait: float) -> None:
    options = order.options
    deadline = time.monotonic() + wait
    with shown_progress() as progress:
        for place, test in enumerate(chosen):
            started = await _start(org, test, order, outcome)
            if not started:
                continue
            left = max(0.0, deadline - time.monotonic())
            try:
                with _left_over([each.full_name for each in chosen[place + 1 :]]):
                    done = await finish_run(org, started, progress, options=_policy(options, test), wait=left)
            except WaitRanOut as over:
                outcome.errors.append(waited_for(over, wait))
                return
            outcome.finished.append(done)


def _policy(options: RunOptions, test: AgentTest) -> RunOptions:
    from evalmeta.api.agent_tests import with_document  # noqa: PLC0415 - not needed for --help

    return with_document(options, test.file.document) if test.file else options


async def _start(org: Org, test: AgentTest, order: Order, outcome: RunsOutcome) -> StartedRun | None:
    from evalmeta.api import runs  # noqa: PLC0415 - not needed for --help

    options = replace(order.options, cases=order.choice.numbers(test))
    try:
        if test.file:
            options = _policy(options, test)
            run_id = await runs.start_run(org.connection, test.full_name, options=options, file=test.file.order)
            started = StartedRun(run_id, test.full_name)
        elif org.elsewhere is None:
            run_id = await runs.start_run(org.connection, test.full_name, kind=test.type, options=options)
            started = StartedRun(run_id, test.full_name)
        else:
            remote = await runs.begin(org.connection, org.project, org.elsewhere, test, options)
            started = StartedRun(remote.run.id, test.full_name, remote)
    except EvalmetaError as error:
        if isinstance(error, OrgFault) and error.code == "NOTHING_TO_RUN":
            note(f"Skipped {test.full_name}: none of its cases is chosen.")
        else:
            outcome.errors.append(error)
        return None
    runs.remember_run(org.connection, org.project, started.id)
    return started


async def leave_runs(project: Project, target: Target | None, errors: Sequence[EvalmetaError]) -> None:
    """Lets runs of the embedded org go on that were waited for too long; others do so by themselves."""
    from evalmeta.api import runs  # noqa: PLC0415 - not needed for --help

    left = [error.job_id for error in errors if isinstance(error, WaitRanOut)]
    if target is not None or not left:
        return
    async with connected(project, None, detached=True) as connection:
        for run_id in left:
            await runs.leave_run(connection, run_id)


def waited_for(over: WaitRanOut, wait: float) -> WaitRanOut:
    """Gives the error with the wait that was asked for: several runs, or iterations, share one."""
    from evalmeta.report.text import seconds  # noqa: PLC0415 - not needed for --help

    message = f"run {over.job_id} is not done after {seconds(wait)}; it goes on in the org"
    return WaitRanOut(message, job_id=over.job_id, actions=over.actions)


@contextmanager
def _left_over(names: Sequence[str]) -> Iterator[None]:
    """Names the tests that an interruption, or too short a wait, kept from being started."""
    from asyncio import CancelledError  # noqa: PLC0415 - not needed for --help

    try:
        yield
    except (CancelledError, WaitRanOut):
        if names:
            note(f"Not started: {', '.join(names)}.")
        raise


async def finish_run(
    org: Org, started: StartedRun, progress: Progress, *, wait: float, options: RunOptions | None = None
) -> FinishedRun:
    """Waits so many seconds for a run and shows how far it is; `options` decide what passes, the run's own when None.

    Raises:
        WaitRanOut: the run goes on; says how to go on with it.
        OrgError: the org cannot be reached.
    """
    from asyncio import CancelledError  # noqa: PLC0415 - not needed for --help

    from evalmeta.api import runs  # noqa: PLC0415 - likewise

    run_id, name, shown, left = started.id, started.definition, False, seconds_of(wait, otherwise=None)

    def show(now: runs.Progress) -> None:
        nonlocal shown
        if not shown:
            progress.start(run_id, now.total, f"{name} (run {run_id})")
            shown = True
        progress.update(run_id, now.done, now.not_passed, total=now.total)

    try:
        # What an agent prints must not mix with a report.
        with redirect_stdout(sys.stderr):
            if started.remote is None:
                finished = await runs.finish_run(
                    org.connection, run_id, definition=name, options=options, wait=left, on_progress=show
                )
            else:
                finished = await runs.finish(org.connection, org.project, started.remote, wait=left, on_progress=show)
    except CancelledError:
        note(f"\nFinished results are kept. Go on with: evalmeta test resume --job-id {run_id}")
        raise
    except WaitRanOut as over:
        ways = (f"{verb} it: evalmeta test {verb.lower()} --job-id {run_id}" for verb in ("Resume", "Cancel"))
        raise WaitRanOut(str(over), job_id=run_id, actions=tuple(ways)) from None
    progress.finish(run_id)
    return finished


def shown_progress() -> Progress:
    """Gives what shows on stderr how far runs are."""
    from evalmeta.report.progress import Progress  # noqa: PLC0415 - not needed for --help

    return Progress(console(err=True), enabled=True)


def print_plan(
    project: Project, target: Target | None, planned: Sequence[PlannedRun], order: Order, *, as_json: bool
) -> None:
    """Prints what a run would ask."""
    if as_json:
        print_json([_json(each) for each in planned])
        return
    for each in planned:
        click.echo("\n".join(_lines(each, _bound(project, target, each, order))))
    click.echo(_total(planned, order.options))


async def make_plan(project: Project, target: Target | None, order: Order) -> list[PlannedRun]:
    """Gives what a run would ask; raises what a run that is started would."""
    from evalmeta.api import run_selection  # noqa: PLC0415 - not needed for --help
    from evalmeta.org.subjects import rater_settings  # noqa: PLC0415 - likewise

    if target is None:
        rater_settings(project.settings.raters, order.options.scoring.rater)
    async with connected(project, target) as connection:
        check_selection(connection, order)
        chosen = await chosen_tests(connection, order)
        return await run_selection.plan_runs(connection, chosen, order.choice, order.options)


def _bound(project: Project, target: Target | None, planned: PlannedRun, order: Order) -> str:
    """Says by what an agent would be asked; of agents in other orgs nothing is known."""
    if target is not None or any(each.name == planned.definition and each.subject for each in order.files):
        return ""
    settings = project.settings.subjects.get(planned.subject_name)
    return f" (adapter {settings.adapter})" if settings else " (no adapter is bound to it)"


def _lines(planned: PlannedRun, bound: str) -> Iterator[str]:
    from evalmeta.report.text import count, one_line  # noqa: PLC0415 - not needed for --help

    if not planned.cases:
        yield one_line(f"{planned.definition}: none of its {count(planned.left_out, 'case')}\n", chars=200)
        return
    left_out = f", {planned.left_out:,} left out" if planned.left_out else ""
    asked = f"subject {planned.subject_name}{bound}" if planned.subject_name else "no agent is named"
    yield one_line(f"{planned.definition}: {asked}", chars=200)
    yield f"  {count(len(planned.cases), 'case')}{left_out}"
    for case in planned.cases:
        label = f"{one_line(case.label)}: " if case.label else ""
        yield f"  {case.number:>4} {label}{one_line(' / '.join(turn.utterance for turn in case.turns))}"
    if planned.expectations:
        names = (f"{name} ({times:,})" if times > 1 else name for name, times in planned.expectations.items())
        yield f"  judged: {', '.join(names)}"
    yield ""


def _total(planned: Sequence[PlannedRun], options: RunOptions) -> str:
    from evalmeta.report.text import count  # noqa: PLC0415 - not needed for --help

    questions = sum(each.questions for each in planned)
    cases = sum(len(each.cases) for each in planned)
    rounds = f" in {options.iterations:,} iterations" if options.iterations > 1 else ""
    how = f"scoring {options.scoring.profile}, rater {options.scoring.rater}"
    return f"Would ask {count(cases, 'case')}{rounds}: {count(questions, 'question')}, {how}. Nothing was asked."


def _json(planned: PlannedRun) -> JsonObject:
    return {
        "definition": planned.definition,
        "type": planned.type,
        "subjectName": planned.subject_name,
        "iterations": planned.iterations,
        "questions": planned.questions,
        "cases": [
            {"number": case.number, "name": case.label, "utterances": [turn.utterance for turn in case.turns]}
            for case in planned.cases
        ],
        "leftOut": planned.left_out,
        "expectations": planned.expectations,
    }


subject_option = click.option(
    "--subject",
    metavar="NAME_OR_MODULE:NAME",
    help="Whom files ask: an agent of evalmeta.toml, or a Python function.  [default: whom the file names]",
)


def read_files(
    project: Project, paths: Sequence[Path], *, subject: str | None, said: Mapping[str, object], is_asked: bool
) -> tuple[FileTest, ...]:
    """Reads the tests in files and folders, and shows what is to be known of them.

    What was `said` of iterations and of the pass rate counts for more than what files say.
    Raises like `find_tests` and `read_test`; nothing was run then.
    """
    if not paths:
        return ()
    from evalmeta.api.agent_tests import find_tests, read_test  # noqa: PLC0415 - not needed for --help

    tests = [read_test(project, path, subject=subject, is_asked=is_asked) for path in find_tests(paths)]
    for each in tests:
        for problem in each.document.notes:
            note(f"{problem}\n  → {problem.hint}" if problem.hint else str(problem))
    return tuple(_by_what_was_said(each, said) for each in tests)


def _by_what_was_said(test: FileTest, said: Mapping[str, object]) -> FileTest:
    document = test.document
    if said.get("iterations") is not None:
        document = replace(document, iterations=None)
    if said.get("min_pass_rate") is not None:
        document = replace(document, min_pass_rate=None)
    return replace(test, document=document)
