"""Starting the chosen tests of a call, and waiting for their runs if the call does."""

from __future__ import annotations

import time
from asyncio import CancelledError
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.api.agent_tests import AgentTest, FileTest, select_tests
from evalmeta.api.changes import Undeployed, find_undeployed
from evalmeta.api.org_targets import Target, connect
from evalmeta.api.runs.org import RunOrg
from evalmeta.api.runs.selection import CaseChoice, CaseSelection, PlannedRun, check_rater, last_failed, plan_runs
from evalmeta.api.runs.suites import begin_suite, settle
from evalmeta.api.runs.waiting import (
    RunsOutcome,
    detach_runs,
    finish_runs,
    has_stopped,
    higher_limit,
    note_interruption,
)
from evalmeta.errors import EvalmetaError, OrgFault, StoreError, SubjectNotBound, Suggestion, UsageError, WaitRanOut
from evalmeta.protocol.runs import joined_error
from evalmeta.report.text import count
from evalmeta.store.suites import SuiteTest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from evalmeta.api.runs.comparisons import Comparator
    from evalmeta.api.runs.finding import RunHandle
    from evalmeta.api.runs.observer import Observer
    from evalmeta.api.runs.verification import Checking
    from evalmeta.client.connection import Connection
    from evalmeta.model.run import Run
    from evalmeta.model.run_options import RunOptions
    from evalmeta.package.project import Project


class AgentOptions(NamedTuple):
    """The agent under test of files, and the criteria of ADK's eval sets.

    Attributes:
        subject: a name that the project binds, `module:name` of a Python object, or a URL; None for the file's agent.
        model: the model to ask, if the subject is a URL.
        api_key_env: the environment variable with the endpoint's key, if the subject is a URL.
        config: the file with the criteria; None for the project's.
        columns: keys of test cases, each with its column of tables and JSON Lines.
        matrix: the agents or models to run all tests with, such as `subject=a,b`.
    """

    subject: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    config: Path | None = None
    columns: Mapping[str, str] = MappingProxyType({})
    matrix: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCall:
    """A call that runs tests: those in files, or in the org if there are none.

    Attributes:
        target: the org with the tests; None for the embedded one, which also runs files.
        wait: seconds; None starts runs without waiting for them.
        paths: files and folders; empty to run the tests in the org.
        names: the tests in the org; empty for all.
        bound: whether tests whose agent is not bound are left out.
        given: the options that replace what files say.
        is_plan: whether the call only says what it would ask, or what that would cost if it `estimates`.
        checking: how the verdicts of a Salesforce org are checked.
        comparator: the baseline to compare with.
        files: the tests that were read from `paths`.
        choice: the cases that `selection` chose.
        confirms: the runs whose suspect cases this call asks again, by `Type:Name` of their tests.
    """

    project: Project
    target: Target | None = None
    options: RunOptions
    wait: float | None = None
    paths: tuple[Path, ...] = ()
    names: tuple[str, ...] = ()
    agent: AgentOptions = field(default_factory=AgentOptions)
    selection: CaseSelection = field(default_factory=CaseSelection)
    bound: bool = False
    given: Mapping[str, object] = field(default_factory=dict)
    is_plan: bool = False
    estimates: bool = False
    checking: Checking | None = None
    comparator: Comparator | None = None
    files: tuple[FileTest, ...] = ()
    choice: CaseChoice = field(default_factory=CaseChoice)
    confirms: Mapping[str, Run] = field(default_factory=dict)


async def make_plan(call: RunCall, observer: Observer) -> list[PlannedRun]:
    """Return what the runs would ask, without checking that agents and raters can be used."""
    if call.target is None:
        check_rater(call.project, call.options)
    async with connect(call.project, call.target, remark=observer.warn) as connection:
        _check_choice(connection, call)
        tests, choice = await _narrow(connection, call, await _choose_tests(connection, call), observer)
        if call.bound and tests:
            org = RunOrg.of(connection, call.project, call.target, call.checking)
            tests = await _bound_tests(org, tests, replace(call, choice=choice), observer)
        return await plan_runs(connection, tests, choice, call.options)


async def run_tests(call: RunCall, observer: Observer) -> RunsOutcome:
    """Run tests, or start them if the call has no wait.

    In orgs of evalmeta they run together; a Salesforce org gets one after the other. If something that a test needs is
    missing, no test is run. All are saved as a suite before the first of them starts. If waiting times out, the runs
    continue. A test that cannot be started does not stop the others. A test without chosen cases is skipped.
    """
    project, target = call.project, call.target
    outcome = RunsOutcome([], [], [])
    async with connect(project, target, detached=call.wait is None, remark=observer.warn) as connection:
        org = RunOrg.of(connection, project, target, call.checking)
        org = org._replace(origin=org.origin._replace(tags=call.choice.tags))
        tests = await _choose_tests(connection, call)
        _check_choice(connection, call)
        tests, choice = await _narrow(connection, call, tests, observer)
        call = replace(call, choice=choice)
        if not tests:
            return outcome
        if call.bound:
            tests = await _bound_tests(org, tests, call, observer)
        if not call.files:
            _warn_of_undeployed(await find_undeployed(connection, project, tests), observer)
        org.warn_of_verdict(observer)
        if org.is_salesforce and "max_cost" in call.given:
            raise UsageError("a Salesforce org does not say what its answers cost: leave out --max-cost")
        if ignored := org.ignored_options(call.options):
            *others, last = (name.replace("_", "-") for name in ignored)
            observer.warn(f"this org ignores {', '.join(others)} and {last}" if others else f"this org ignores {last}")
        planned = [_planned(test, call) for test in tests]
        await org.check(planned, _unbound_files(tests))
        # Suspect cases that are asked again belong to the suite that is there.
        await Starter(org, observer, outcome).run(planned if call.confirms else begin_suite(org, planned), call.wait)
        stopped = [finished.run for finished in outcome.finished if has_stopped(finished.run)]
        if stopped and connection.is_ours:
            what = f"{count(len(stopped), 'run')} stopped before all cases were asked. Ask the missing ones"
            observer.note(Suggestion(what, "test", "resume", "--job-id", stopped[0].id, *higher_limit(stopped)))
    await detach_runs(project, target, outcome.errors, observer)
    return outcome


async def _choose_tests(connection: Connection, call: RunCall) -> list[AgentTest]:
    """Return the tests to run: those in files, or those in the org as `select_tests` does."""
    if call.files:
        return [AgentTest(file.type, file.name, file) for file in call.files]
    return await select_tests(connection, call.choice.names)


async def _narrow(
    connection: Connection, call: RunCall, tests: list[AgentTest], observer: Observer
) -> tuple[list[AgentTest], CaseChoice]:
    """Return the tests and cases that remain with --last-failed, and say what is left out."""
    if not call.choice.last_failed:
        return tests, call.choice
    failed = await last_failed(connection, call.project, tests, target=call.target)
    for text in failed.notes:
        observer.note(text)
    return [*failed.tests], call.choice.narrowed(failed.lists)


def _unbound_files(tests: Sequence[AgentTest]) -> dict[str, SubjectNotBound]:
    return {test.key: test.file.unbound for test in tests if test.file and test.file.unbound}


async def _bound_tests(org: RunOrg, tests: Sequence[AgentTest], call: RunCall, observer: Observer) -> list[AgentTest]:
    """Return the tests whose agent is bound, and warn of the others; raise SubjectNotBound if no agent is bound."""
    if org.is_salesforce:
        raise UsageError("a Salesforce org has its agents itself: leave out --bound")
    planned = [_planned(test, call) for test in tests]
    faults = await org.find_faults(planned, _unbound_files(tests))
    faults = [fault for fault in faults if isinstance(fault.error, SubjectNotBound)]
    left_out = {number for fault in faults for number in fault.runs}
    if len(left_out) == len(tests):
        raise joined_error(faults, [test.full_name for test in tests])
    for fault in faults:
        names = ", ".join(tests[number].full_name for number in fault.runs)
        observer.warn(f"{names} {'is' if len(fault.runs) == 1 else 'are'} left out: {fault.error}")
    return [test for number, test in enumerate(tests) if number not in left_out]


def _warn_of_undeployed(undeployed: Undeployed, observer: Observer) -> None:
    for name in undeployed.names:
        observer.note(Suggestion(f"Warning: {name} differs from the org's; deploy to test your changes", "deploy"))
    for problem in undeployed.problems:
        observer.warn(f"{problem.location}: cannot be compared with the org's: {problem.message}")


def _check_choice(connection: Connection, call: RunCall) -> None:
    """Refuse a choice of cases or an order if the org can only run whole definitions."""
    options, must_confirm = call.options, call.comparator is not None and call.comparator.must_confirm
    chooses = call.choice.lists or call.choice.last_failed or options.shard or must_confirm
    if (chooses or options.seed is not None) and not connection.is_ours:
        way_out = "Leave out --case, --tag, --failed-from, --last-failed, --shard, --seed and --confirm."
        raise UsageError("a Salesforce org runs whole definitions in its own order", actions=[way_out])


class Starter(NamedTuple):
    """Starts tests of a suite in an org; what finished, and errors, are added to the outcome."""

    org: RunOrg
    observer: Observer
    outcome: RunsOutcome

    async def run(self, tests: Sequence[SuiteTest], wait: float | None, resumed: Sequence[RunHandle] = ()) -> None:
        """Start tests and wait for their runs, and for those that are `resumed`; without `wait`, only start them."""
        begun = time.monotonic()
        if wait is None:
            await self._start_all(tests)
        elif self.org.connection.is_ours:
            await self._finish([*resumed, *await self._start_together(tests)], wait, begun)
        else:
            ended = await self._finish(resumed, wait, begun)
            if _has_timed_out(ended):
                self._name_unstarted(tests)
            else:
                await self._run_in_order(tests, wait, begun)

    async def _start_all(self, tests: Sequence[SuiteTest]) -> None:
        for place, test in enumerate(tests):
            if run := await self._start(test):
                self.outcome.started.append(run)
                self.observer.show_started(f"Started {test.name} (run {run.id}).", run)
                if run.iterations > 1 and not self.org.connection.is_ours:
                    self.observer.note(
                        f"This is the first of {run.iterations} iterations; resume it to run the others."
                    )
            elif self._is_store_broken(tests[place:]):
                return

    async def _start_together(self, tests: Sequence[SuiteTest]) -> list[RunHandle]:
        runs = []
        for place, test in enumerate(tests):
            try:
                run = await self._start(test)
            except CancelledError:
                note_interruption(self.observer, ["--unfinished"])
                self._name_unstarted(tests[place:])
                raise
            if run:
                runs.append(run)
            elif self._is_store_broken(tests[place:]):
                break
        return runs

    async def _run_in_order(self, tests: Sequence[SuiteTest], wait: float, begun: float) -> None:
        for place, test in enumerate(tests):
            run = await self._start(test)
            try:
                ended = await self._finish([run] if run else [], wait, begun)
            except CancelledError:
                self._name_unstarted(tests[place + 1 :])
                raise
            if _has_timed_out(ended):
                self._name_unstarted(tests[place + 1 :])
                return

    async def _start(self, test: SuiteTest) -> RunHandle | None:
        try:
            return await self.org.start(test)
        except EvalmetaError as error:
            if isinstance(error, OrgFault) and error.code == "NOTHING_TO_RUN":
                settle(self.org, [test], "skipped")
                self.observer.note(f"Skipped: {str(error).removeprefix(f'{error.code}: ')}.")
            else:
                self.outcome.errors.append(error)
            return None

    def _is_store_broken(self, tests: Sequence[SuiteTest]) -> bool:
        """Return whether the next of these tests cannot start either, such as on a full disk, and say what is left."""
        if not (self.outcome.errors and isinstance(self.outcome.errors[-1], StoreError)):
            return False
        self._name_unstarted(tests)
        self.observer.note(Suggestion("When the database can be used, start them", "test", "resume", "--unfinished"))
        return True

    async def _finish(self, runs: Sequence[RunHandle], wait: float, begun: float) -> RunsOutcome:
        ended = (
            await finish_runs(self.org, runs, self.observer, wait=wait, begun=begun)
            if runs
            else RunsOutcome([], [], [])
        )
        self.outcome.finished.extend(ended.finished)
        self.outcome.errors.extend(ended.errors)
        return ended

    def _name_unstarted(self, tests: Sequence[SuiteTest]) -> None:
        if tests:
            self.observer.note(f"Not started: {', '.join(test.name for test in tests)}.")


def _has_timed_out(ended: RunsOutcome) -> bool:
    return any(isinstance(error, WaitRanOut) for error in ended.errors)


def _planned(test: AgentTest, call: RunCall) -> SuiteTest:
    options = replace(call.options, cases=call.choice.numbers(test))
    if run := call.confirms.get(test.key):
        options = replace(options, confirms=run.id, origin=run.options.origin._replace(place=0))
    return SuiteTest(
        test.type, test.full_name, test.options(options), test.modified, test.file.request if test.file else None
    )
