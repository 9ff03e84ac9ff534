"""Runs of agent tests in orgs: start, follow, resume, extend, rescore and cancel them.

An org of evalmeta follows the options of a run. A Salesforce org has no options: there, each
iteration is a run of its own whose results are joined, and what passes is decided here. Such
runs are saved next to those of the project's own org.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.api.org_targets import EMBEDDED_URL, Target
from evalmeta.api.runs.changes import check_unchanged, refuse_changes, refuse_other_agent
from evalmeta.api.runs.finding import RunHandle, is_elsewhere
from evalmeta.api.runs.finished import FinishedRun
from evalmeta.api.runs.origins import new_origin
from evalmeta.api.runs.saved import decided
from evalmeta.api.runs.verification import Checking, check_rater, check_run, with_definition, with_subject
from evalmeta.api.sync import receipts_of
from evalmeta.client import runs as client
from evalmeta.errors import EvalmetaError, NotFound, SubjectNotBound, Suggestion, UsageError, WaitRanOut
from evalmeta.model.registry import EVALUATION_DEFINITION, MetadataType, type_of_run
from evalmeta.model.run import Run, RunStatus, join
from evalmeta.model.run_options import RUN_OPTIONS, Origin, RunOptions, Setup
from evalmeta.org.organization import PathFilter
from evalmeta.org.subjects import rater_of, rater_settings
from evalmeta.package.folders import list_files
from evalmeta.protocol.runs import RunFault, joined_error
from evalmeta.store.database import open_database
from evalmeta.store.kept_numbers import whole_summary
from evalmeta.store.remote_runs import RemoteRun, open_remote_runs
from evalmeta.store.stored_cases import open_cases
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from evalmeta.api.runs.observer import Observer
    from evalmeta.client.connection import Connection
    from evalmeta.client.runs import Progress
    from evalmeta.model.json_value import JsonObject
    from evalmeta.package.project import Project
    from evalmeta.store.suites import SuiteTest


_NONE_UNBOUND: Final[Mapping[str, SubjectNotBound]] = {}
_ONLY_OURS: Final = tuple(option.name for option in RUN_OPTIONS if option.needs_ours)


async def finish_run(
    connection: Connection,
    run_id: str,
    *,
    definition: str = "",
    options: RunOptions | None = None,
    wait: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> FinishedRun:
    """Wait for a run and return its results.

    Args:
        connection: the org.
        run_id: the run.
        definition: the name of its definition, which Salesforce orgs do not report.
        options: what decides which results pass; the run's own options if None. A run in a Salesforce org
            has the default options.
        wait: the time limit in seconds; None waits without a limit.
        on_progress: receives the progress of the run.

    Raises:
        NotFound: the run is not in the org.
        WaitRanOut: the run is still in progress after `wait` seconds.
        OrgError: the org cannot be reached.
    """
    run = await client.wait_for_run(connection, run_id, definition=definition, wait=wait, on_progress=on_progress)
    return FinishedRun.of(run, options)


def _name_leftovers(faults: Sequence[RunFault], tests: Sequence[SuiteTest], project: Project) -> list[RunFault]:
    """Return faults that say of tests with an unbound agent that only the org still has them."""
    if not any(isinstance(fault.error, SubjectNotBound) for fault in faults):
        return list(faults)
    with suppress(EvalmetaError):
        local = {f"{file.type.name}:{file.full_name}" for file in list_files(project)}
        return [_with_leftovers(fault, [tests[number] for number in fault.runs], local) for fault in faults]
    return list(faults)


def _with_leftovers(fault: RunFault, tests: Sequence[SuiteTest], local: Collection[str]) -> RunFault:
    gone = [test for test in tests if test.file is None and test.key not in local]
    if not isinstance(fault.error, SubjectNotBound) or not gone:
        return fault
    names = [word for test in gone for word in ("--metadata", test.key)]
    only = f"only the org has {', '.join(test.name for test in gone)}, the project has no file of it"
    delete = ("manifest", "generate", "--type", "post", *names)
    actions = [
        Suggestion("To delete it from the org, write destructive changes and deploy them", *delete),
        Suggestion("To get its file back", "retrieve", *names),
    ]
    return fault._replace(error=SubjectNotBound(f"{fault.error}; {only}", actions=[*actions, *fault.error.actions]))


class RunOrg(NamedTuple):
    """Where tests run; `other` is the org's target if it is not the project's own org, embedded or served.

    `origin` is that of the runs that the current command starts; each test of a suite has its own.
    `checking` is how the verdicts of a Salesforce org are checked.
    """

    connection: Connection
    project: Project
    other: Target | None
    origin: Origin
    checking: Checking = Checking()

    @classmethod
    def of(
        cls, connection: Connection, project: Project, target: Target | None, checking: Checking | None = None
    ) -> RunOrg:
        """Return the org that a connection leads to."""
        other = target if is_elsewhere(project, target) else None
        return cls(connection, project, other, new_origin(project.root), checking or Checking())

    @property
    def is_salesforce(self) -> bool:
        """Whether the org is one of Salesforce's, which knows no options and scores in its own way."""
        return not self.connection.is_ours

    def ignored_options(self, options: RunOptions) -> list[str]:
        """Return the names of the options that were set and that the org cannot follow."""
        default = RunOptions()
        names = _ONLY_OURS if self.checking.verifies else (*_ONLY_OURS, "scoring")
        return [
            name for name in names if not self.connection.is_ours and getattr(options, name) != getattr(default, name)
        ]

    def warn_of_verdict(self, observer: Observer) -> None:
        """Warn that --verdict chooses nothing where only evalmeta judges."""
        if self.checking.decides is not None and not self.is_salesforce:
            observer.warn("this org is evalmeta's, so its verdicts are evalmeta's own: --verdict has no effect")

    async def check(self, tests: Sequence[SuiteTest], unbound: Mapping[str, SubjectNotBound] = _NONE_UNBOUND) -> None:
        """Check that everything that runs of tests need can be used, before the first of them is started.

        Nothing is started, and no agent is called. A Salesforce org has its agents itself. `unbound` has the errors of
        files whose agent is not known, by the keys of the tests.
        """
        if self.is_salesforce and self.checking.verifies and tests:
            await check_rater(self.project, tests[0].options)
        if faults := await self.find_faults(tests, unbound):
            raise joined_error(faults, [test.name for test in tests])

    async def find_faults(self, tests: Sequence[SuiteTest], unbound: Mapping[str, SubjectNotBound]) -> list[RunFault]:
        """Return what prevents runs of tests, with the places of the tests; the arguments are those of `check`."""
        requests = [_check_request(test, is_bound=test.key not in unbound) for test in tests]
        faults = [RunFault(unbound[test.key], (n,)) for n, test in enumerate(tests) if test.key in unbound]
        return _name_leftovers([*faults, *await client.check_runs(self.connection, requests)], tests, self.project)

    async def start(self, test: SuiteTest) -> RunHandle:
        """Start a run of a test, or the first of its iterations, and remember it as the most recent run.

        A run that only asks suspect cases again is not remembered. In an org of evalmeta, a test of a suite that has
        a run already gets no second one.
        """
        options = self._checked(test.options, test.kind)
        run_id = await client.start_run(self.connection, test.name, kind=test.kind, options=options, file=test.file)
        remote = None
        if self.other is not None and test.file is None:
            run = Run(run_id, test.name, "", RunStatus.NEW, time.time(), 0, options=options)
            remote = self._save(RemoteRun(self.other.login.url, self.other.login.name, run, (run_id,)))
        if not options.confirms:
            self._remember(run_id)
        url = self.connection.url
        return RunHandle(self.project, run_id, url, self.other, remote, test.name, options.common_iterations)

    def find(self, run: RunHandle) -> RunHandle:
        """Return a run that was started before with what is saved of it, or what can be known without a request."""
        if self.other is None:
            return replace(run, remote=None, definition="")
        remote = run.remote
        if remote is None:
            options = self._checked(RunOptions(), type_of_run(run.id))
            new = Run(run.id, "", "", RunStatus.NEW, time.time(), 0, options=options)
            remote = RemoteRun(self.other.login.url, self.other.login.name, new, (run.id,))
        return replace(run, remote=remote, definition=remote.run.definition)

    async def fetch(self, started: RunHandle) -> FinishedRun:
        """Return a run with its results so far, without waiting."""
        if started.remote is None:
            return await self._own_run(started.id)
        return await self._finished(await self._seen(started.remote))

    async def is_stopped(self, run: Run) -> bool:
        """Return whether a run of the project's own org has begun, is not over, and no process works on it."""
        if self.other is not None or run.status is not RunStatus.IN_PROGRESS:
            return False
        return (await client.fetch_definition(self.connection, run.id)).is_abandoned

    async def finish(
        self, started: RunHandle, *, wait: float | None = None, on_progress: Callable[[Progress], None] = lambda _: None
    ) -> FinishedRun:
        """Wait for a run, start its missing iterations, and save what the org returns.

        `wait` is the time limit in seconds for all iterations; None waits without a limit. `on_progress` receives the
        progress of all iterations together.
        """
        connection, remote, name = self.connection, started.remote, started.definition
        if remote is None:
            await client.poll_run(connection, started.id, wait=wait, on_progress=on_progress)
            return await self._own_run(started.id, name)
        deadline = None if wait is None else time.monotonic() + wait
        # Orgs of evalmeta repeat the cases in one run of their own.
        iterations = 1 if connection.is_ours else remote.run.options.iterations
        parts: list[Run] = []
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            show, job_id = _shifted(on_progress, parts, iterations), remote.jobs[len(parts)]
            name = remote.run.definition
            part = await client.wait_for_run(
                connection,
                job_id,
                definition=name,
                wait=left,
                case_timeout=remote.run.options.case_timeout,
                on_progress=show,
            )
            parts.append(part)
            remote = self._with(remote, parts)
            if remote.run.status.is_over or not part.status.is_over:
                return await self._finished(remote)
            remote = self._save(remote)
            if len(parts) == len(remote.jobs):
                job_id = await client.start_run(connection, name, kind=client.kind_of_run(remote.run.id))
                remote = self._save(replace(remote, jobs=(*remote.jobs, job_id)))

    async def check_resumable(self, run: Run, *, ignore_changes: bool = False, mixed: bool = False) -> None:
        """Check that a run can be resumed: its test and its agent are as before, and all that it needs can be used."""
        if self.connection.is_ours and not ignore_changes:
            await check_unchanged(self.connection, run)
        if not mixed and self.connection.url == EMBEDDED_URL:
            found = await client.fetch_definition(self.connection, run.id)
            if found.is_abandoned:
                refuse_other_agent(self.project, run, found.original)
        # A served org continues its runs by itself.
        if self.connection.url == EMBEDDED_URL and (
            faults := await client.check_runs(self.connection, [{"runId": run.id}])
        ):
            raise joined_error(faults, [run.definition])

    async def cancel(self, started: RunHandle) -> FinishedRun:
        """Cancel a run, start no more iterations, and return the results that it has."""
        remote = started.remote
        if remote is None:
            await client.cancel_run(self.connection, started.id)
            return await self.fetch(started)
        seen = (await self._seen(remote)).run
        if seen.status.is_over:
            raise EvalmetaError(f"run {seen.id} has already finished: its status is {seen.status}")
        last = await client.fetch_run(self.connection, remote.jobs[-1])
        # Between two iterations, the org has nothing to cancel.
        if not last.status.is_over:
            await client.cancel_run(self.connection, remote.jobs[-1])
        fewer = replace(remote.run.options, iterations=len(remote.jobs))
        return await self.fetch(replace(started, remote=replace(remote, run=replace(remote.run, options=fewer))))

    async def extend(
        self,
        first: RunHandle,
        *,
        iterations: int,
        ignore_changes: bool,
        mixed: bool = False,
        max_cost: float | None = None,
    ) -> RunHandle:
        """Extend a run that is over to `iterations` in all; only the new ones are run, up to a new cost limit."""
        self._refuse_salesforce()
        if not (ignore_changes and mixed):
            found = await client.fetch_definition(self.connection, first.id)
            if not ignore_changes:
                refuse_changes(first.id, found)
            if not mixed and self.other is None:
                refuse_other_agent(self.project, (await self._own_run(first.id)).run, found.original)
        await client.extend_run(self.connection, first.id, iterations=iterations, max_cost=max_cost)
        return await self._restarted(first)

    async def limit(self, started: RunHandle, *, max_cost: float) -> None:
        """Give a run that is not over another cost limit."""
        self._refuse_salesforce()
        await client.extend_run(self.connection, started.id, iterations=0, max_cost=max_cost)

    async def rescore(
        self, first: RunHandle, change: Callable[[RunOptions], RunOptions], *, as_deployed: bool
    ) -> RunHandle:
        """Start a run that scores the answers of a run that is over again.

        `first` is the first run; in the embedded org also a saved run of a Salesforce org, with its definition.
        `change` returns the new run's options from those of the first run. `as_deployed` uses the expectations that
        are deployed now.
        """
        remote = first.remote if self.connection.url == EMBEDDED_URL else None
        scored = remote.run if remote else await client.fetch_header(self.connection, first.id)
        options = replace(change(scored.options), origin=self.origin)
        org_url = remote.org_url if remote else ""
        run_id = await client.rescore_run(self.connection, scored.id, options, as_deployed=as_deployed, org_url=org_url)
        return await self._restarted(replace(first, id=run_id, remote=None))

    async def keep_answers(self, first: RunHandle) -> RemoteRun:
        """Save a run of a Salesforce org with its answers and its definition, and return it."""
        remote = first.remote or self.find(first).remote
        if remote is None:
            raise NotFound(f"run {first.id} cannot be found")
        if not remote.run.status.is_over:
            remote = await self._seen(remote)
        return self._save(await with_definition(self.connection, remote))

    async def _restarted(self, first: RunHandle) -> RunHandle:
        """Remember a run that has new work as the most recent one, and save its current state."""
        self._remember(first.id)
        started = self.find(first)
        seen = (await self.fetch(started)).run
        remote = replace(started.remote, run=seen) if started.remote else None
        return replace(started, remote=remote, definition=seen.definition, iterations=seen.options.common_iterations)

    async def _finished(self, remote: RemoteRun) -> FinishedRun:
        """Check the verdicts of a Salesforce org, save the run, and return it."""
        if not self.connection.is_ours and self.checking.verifies:
            remote = await check_run(self.connection, self.project, remote)
        elif not self.connection.is_ours:
            remote = await with_subject(self.connection, remote)
        run = decided(remote.run, self.checking)
        if not self.connection.is_ours:
            run = replace(run, options=replace(run.options, setup=self._setup(run, remote.org_url)))
        return FinishedRun.of(self._save(replace(remote, run=run)).run)

    def _setup(self, run: Run, org_url: str) -> Setup:
        """Return what answered in a run of a Salesforce org, and whose verdicts count."""
        rater, prompt = "the org", ""
        if self.checking.verifies and run.options.decides != "org":
            name = run.options.scoring.rater
            own, prompt = rater_of(rater_settings(self.project.settings.raters, name), root=self.project.root)
            rater = own if run.options.decides == "local" else f"{rater} and {own}"
        return Setup(f"{run.subject_name} in {org_url}", run.subject_version or "", rater, prompt, __version__)

    async def _seen(self, remote: RemoteRun) -> RemoteRun:
        """Return a run of another org with the results that it has now."""
        return self._with(remote, [await client.fetch_run(self.connection, job_id) for job_id in remote.jobs])

    async def _own_run(self, run_id: str, definition: str = "") -> FinishedRun:
        """Return a run of the project's own org, whose results are in the project's database.

        Those of a large run are not read to count them if its counts were kept.
        """
        run = await client.fetch_header(self.connection, run_id, definition=definition)
        paths = PathFilter(self.project.root, self.project.state_dir)
        with open_database(self.project.store) as database:
            run = replace(run, cases=open_cases(database, run.id, change=paths.case))
            summary = None if isinstance(run.cases, tuple) else whole_summary(database, run.id, run.options)
        if run.status.is_over and summary and summary.total == len(run.cases):
            return FinishedRun(run, summary)
        return FinishedRun.of(run)

    def _checked(self, options: RunOptions, kind: MetadataType | None) -> RunOptions:
        """Return the options of a run of a type, for a Salesforce org with the rules that check it."""
        return self.checking.options(options, kind) if self.is_salesforce else options

    def _refuse_salesforce(self) -> None:
        if not self.connection.is_ours:
            way_out = Suggestion("Start a run with iterations", "test", "run", "--iterations", "N")
            raise UsageError("a Salesforce org cannot extend runs", actions=[way_out])

    def _remember(self, run_id: str) -> None:
        with receipts_of(self.project, self.connection) as receipts:
            receipts.keep("test", run_id, now=time.time())

    def _save(self, remote: RemoteRun) -> RemoteRun:
        with open_remote_runs(self.project.store) as runs:
            runs.keep(remote)
        return remote

    def _with(self, remote: RemoteRun, parts: list[Run]) -> RemoteRun:
        """Return a run with the results of its iterations, which an org of evalmeta joins itself."""
        if not self.connection.is_ours:
            return replace(remote, run=self._quarantined(join(parts, remote.run), remote.run))
        return replace(remote, run=self._quarantined(parts[0], remote.run))

    def _quarantined(self, run: Run, saved: Run) -> Run:
        """Return a run whose case results have the quarantines that the project lists; saved ones keep theirs."""
        kind = type_of_run(run.id) or EVALUATION_DEFINITION
        listed = self.project.settings.quarantines_of(run.definition, kind.name, started=run.started)
        known = {(case.iteration, case.number): case.quarantine for case in saved.cases}
        if not listed.listed and not any(known.values()):
            return run
        found = [
            known.get(
                (case.iteration, case.number), listed.find(case.quarantine, case.number, case.label, case.utterance)
            )
            for case in run.cases
        ]
        marked = (case._replace(quarantine=quarantine) for case, quarantine in zip(run.cases, found, strict=True))
        return replace(run, cases=tuple(marked))


async def detach_run(connection: Connection, run_id: str) -> None:
    """Let a run continue after this process ends; the connection must be detached."""
    # A status request gives a run that has lost its worker a new one.
    with suppress(WaitRanOut):
        await client.poll_run(connection, run_id, wait=0)


def _check_request(test: SuiteTest, *, is_bound: bool) -> JsonObject:
    # Everything but an unknown agent is still checked.
    file = test.file if is_bound or test.file is None else {**test.file, "subject": {"adapter": "recorded"}}
    return {"type": test.kind.name, **client.run_request(test.name, kind=test.kind, options=test.options, file=file)}


def _shifted(on_progress: Callable[[Progress], None], parts: list[Run], iterations: int) -> Callable[[Progress], None]:
    """Return what reports the progress of one iteration as that of all; `parts` are the finished ones."""
    before = [FinishedRun.of(part).summary for part in parts]
    done, failed = sum(summary.total for summary in before), sum(summary.failed for summary in before)
    errors, undecided = sum(summary.errors for summary in before), sum(summary.undecided for summary in before)

    def show(now: Progress) -> None:
        on_progress(
            replace(
                now,
                done=done + now.done,
                not_passed=failed + errors + now.not_passed,
                total=now.total * iterations,
                errors=errors + now.errors,
                undecided=undecided + now.undecided,
            )
        )

    return show
