"""The run worker: execute runs that were created, one worker at a time for each.

`python -m evalmeta.org.run_worker PROJECT RUN_ID...` executes the runs; their cases are asked in that order. With
`--shared` first, all such processes of an org share the concurrency of each agent.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import defaultdict
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

from evalmeta import limits
from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.redaction import with_redaction
from evalmeta.engine.scheduler import Places, Scheduler
from evalmeta.engine.subjects.objects import bound_for
from evalmeta.errors import EXIT_ORG, EXIT_PASSED, EvalmetaError, StoreError, StoreLocked, SubjectError
from evalmeta.model.redaction import error_text, tokens_hidden
from evalmeta.model.run import Run, RunStatus
from evalmeta.model.tally import Tally
from evalmeta.org.custom_scorers import scorers_of_run
from evalmeta.org.lease import is_free, keep_lease, new_worker
from evalmeta.org.organization import Organization
from evalmeta.org.run_files import run_file_of, subjects_of_run
from evalmeta.org.runs import answers_of_run, evaluation_of_run, quarantines_of_run, tags_of_run
from evalmeta.org.subjects import agent_of, agent_settings, bind_subject, rater_settings_of
from evalmeta.package.project import find_project
from evalmeta.store.agent_limits import Pace, RunPlaces, RunSpending
from evalmeta.store.database import open_database
from evalmeta.store.judgements import NewRatings, Ratings
from evalmeta.store.kept_numbers import KeptTally
from evalmeta.store.runs import RunJournal
from evalmeta.store.spooling import SpooledJournal

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence
    from types import TracebackType

    from evalmeta.engine.interfaces import Rater, Session, Subject
    from evalmeta.engine.remote.crew import Crew
    from evalmeta.engine.spending import Spending
    from evalmeta.model.evaluation import Case, Evaluation
    from evalmeta.model.run_options import RunOptions


SHARED: Final = "--shared"
_PAUSE_SECONDS: Final = 0.05
_AGENT: Final = ("agent", "agent_version")
_T = TypeVar("_T")


class RunResources:
    """The pools and raters of the runs of one process; `close`, or an `async with` statement, closes the raters.

    With `shares_places`, other processes share the concurrency of each agent. `on` is the cluster that asks the cases;
    empty for this process. `spent` has what the runs of each command with a cost limit have spent.
    """

    def __init__(self, *, shares_places: bool = False, on: str = "") -> None:
        self.scheduler = Scheduler()
        self.shares_places = shares_places
        self.on = on
        self.spent: defaultdict[str, dict[Hashable, int]] = defaultdict(dict)
        self._crew: Crew | None = None
        self._opening = asyncio.Lock()
        self._raters: dict[str, Rater] = {}
        self._stack = AsyncExitStack()

    def rater(self, org: Organization, options: RunOptions) -> Rater:
        """Return the rater of a run, or raise SettingsError; runs with the same settings share its requests' pace.

        Suspect cases that are asked again are judged anew: a stored rating would only repeat what made them suspect.
        """
        # An import error must end the run.
        from evalmeta.engine.case_run import close
        from evalmeta.engine.raters import bind_rater

        settings = rater_settings_of(org, options)
        is_new = bool(options.confirms)
        key = f"{type(settings).__name__} {is_new} {settings.model_dump_json()}"
        if key not in self._raters:
            stored = Ratings(org.database)
            cache = NewRatings(stored) if is_new else stored
            rater = bind_rater(settings, root=org.root, cache=cache, pace_of=partial(Pace, org.database))
            self._raters[key] = rater
            self._stack.push_async_callback(close, rater)
        return self._raters[key]

    async def crew(self, root: Path, concurrency: int) -> Crew:
        """Return the workers in the cluster, which all runs share; raise ClusterError if it cannot be used."""
        from evalmeta.engine.remote.ray_cluster import ray_crew

        async with self._opening:
            if self._crew is None:
                opened = ray_crew(self.on, root, concurrency=concurrency)
                self._crew = await self._stack.enter_async_context(opened)
        return self._crew

    async def close(self) -> None:
        """Close the raters and the workers in a cluster; their errors never change a result."""
        self._raters.clear()
        await self._stack.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def work(org: Organization, run_id: str, resources: RunResources | None = None) -> None:
    """Execute the missing cases of a run, which may first wait for others; do nothing if another worker has it.

    When it is cancelled, or the database cannot be used (StoreError), the worker keeps the finished results and
    releases the run. Any other exception ends the run as ERROR. A run that was canceled, or that another worker has
    claimed, is left as it is. `resources` are what it shares with other runs of the process.
    """
    if resources is None:
        async with RunResources() as own:
            await work(org, run_id, own)
        return
    run = org.runs.get(run_id)
    if run is None:
        return
    # A run that scores recorded answers calls no agent.
    agent = run.subject_name if run.answers_of is None else ""
    pace, is_shared = Pace(org.database, agent), _shares_agents(org, resources)
    pool = resources.scheduler.pool(agent, run.options, shared=pace, watches=is_shared)
    async with pool.open_run() as places:
        await _work_in(places, org, run, resources)


def _shares_agents(org: Organization, resources: RunResources) -> bool:
    """Return whether other processes, perhaps of other machines, ask the agents too."""
    return resources.shares_places or org.database.store.url is not None


async def _work_in(places: Places, org: Organization, run: Run, resources: RunResources) -> None:
    run_id, worker = run.id, new_worker()
    lease, until = org.runs.lease(run_id), org.database.now() + limits.RUN_LEASE_SECONDS
    if not is_free(lease, now=org.database.now()) or not await _write(
        org, lambda: org.runs.claim(run_id, worker, taken_from=lease, until=until)
    ):
        return
    # Before the claim, it may have ended and been extended.
    run = await _with_agent(org, org.runs.get(run_id) or run)
    if _shares_agents(org, resources) and run.answers_of is None:
        clock = org.database.now
        places.shared = RunPlaces(org.database, run, worker, is_free=lambda lease: is_free(lease, now=clock()))
    tally, status, why = Tally(run.options), RunStatus.COMPLETED, None
    journal = SpooledJournal(RunJournal(org.database, run_id, worker, tally), org.database, run)
    try:
        with keep_lease(org.database.store, run_id, worker), closing(journal):
            await _write(org, journal.send_earlier)
            for case in org.runs.stream(run_id):
                tally.add(case)
            await _execute(org, run, journal, places, resources)
            await journal.delivered()
    except (asyncio.CancelledError, StoreError) as stop:
        if await _release(org, run_id, worker) or isinstance(stop, asyncio.CancelledError):
            raise
        return
    except Exception as error:  # noqa: BLE001 - a run that fails would fail in the next worker too
        status, why = RunStatus.ERROR, error_text(error)
    # Other workers may have answered cases meanwhile; the first list that shows the run counts its results then.
    kept = (None, None) if journal.has_waited else KeptTally.of(tally.summary(), status, total=run.total).columns()
    await _write(org, lambda: org.runs.finish(run_id, worker, status, error=why, now=org.database.now(), kept=kept))


async def _with_agent(org: Organization, run: Run) -> Run:
    """Return a run that records its agent of now too, if it is another one than when it started."""
    before = run.options.setup
    if run.answers_of is not None or not before.agent:
        return run
    try:
        subjects = subjects_of_run(org.settings().subjects, run.subject_name, org.runs.content(run.id))
    except EvalmetaError:
        # Without settings no agent can be asked, and every case says so.
        return run
    now = before._replace(**dict(zip(_AGENT, agent_of(subjects, run.subject_name, root=org.root), strict=True)))
    if not before.other_agent(now):
        return run
    setup = before.joined(now) if org.runs.count(run.id) else now
    changed = replace(run, options=replace(run.options, setup=setup))
    await _write(org, lambda: org.runs.record(run.id, changed.options))
    return changed


async def _write(org: Organization, write: Callable[[], _T]) -> _T:
    """Return `write()`, repeated while another program has locked the database; other runs go on meanwhile."""
    until = time.monotonic() + limits.STORE_BUSY_SECONDS
    while True:
        try:
            with org.database.waiting(0):
                return write()
        except StoreLocked:
            if time.monotonic() > until:
                raise
        await asyncio.sleep(_PAUSE_SECONDS)


def main(root: str, *run_ids: str, shares_places: bool = False) -> int:
    """Execute runs of the project in `root` and return the exit code; skip a run that another worker has."""
    project = find_project(Path(root))
    with tokens_hidden(), open_database(project.store) as database:
        org = Organization(database, project.root, lambda: project.settings, lambda _: None)
        succeeded = run_to_end(_work_all(org, run_ids, RunResources(shares_places=shares_places, on=project.on)))
    return EXIT_PASSED if all(succeeded) else EXIT_ORG


async def _work_all(org: Organization, run_ids: Sequence[str], resources: RunResources) -> list[bool]:
    async with resources:
        return await asyncio.gather(*(_work_or_report(org, run_id, resources) for run_id in run_ids))


async def _work_or_report(org: Organization, run_id: str, resources: RunResources) -> bool:
    try:
        await work(org, run_id, resources)
    except StoreError as error:
        sys.stderr.write(f"run {run_id}: {error}\n")
        return False
    return True


async def _execute(
    org: Organization, run: Run, journal: SpooledJournal, places: Places, resources: RunResources
) -> None:
    # Only a worker needs the engine, and an import error must end the run.
    from evalmeta.engine.project_code import functions_of
    from evalmeta.engine.raters import load_rater
    from evalmeta.engine.runner import execute, execute_elsewhere, rescore
    from evalmeta.engine.scorers import make_scorers

    options, spending = run.options, _spending_of(org, run, resources)
    quarantines, listed_tags = quarantines_of_run(org, run), tags_of_run(org, run)
    evaluation = replace(evaluation_of_run(org, run), quarantines=quarantines, listed_tags=listed_tags)
    rater = resources.rater(org, options)
    load_rater(rater, evaluation)
    scorers = make_scorers(options.scoring, rater, find_custom=scorers_of_run(org, org.runs.content(run.id)))
    with functions_of(org.root):
        if run.answers_of is None and resources.on:
            crew = await resources.crew(org.root, options.concurrency)
            async with crew.run(_recipe_of(org, run, evaluation), options, places.pacer) as there:
                await execute_elsewhere(
                    evaluation, there.ask, journal, options=options, places=places, spending=spending
                )
        elif run.answers_of is None:
            subject = _subject_of(org, run)
            await execute(
                *(evaluation, subject, journal), options=options, scorers=scorers, places=places, spending=spending
            )
        else:
            answers = answers_of_run(org, run.answers_of)
            await rescore(
                *(evaluation, answers, journal), options=options, scorers=scorers, places=places, spending=spending
            )


def _spending_of(org: Organization, run: Run, resources: RunResources) -> Spending:
    """Return the prices of a run's replies, its agent's model and its limit; without settings, nothing can be asked."""
    from evalmeta.engine.prices import Prices
    from evalmeta.engine.spending import CostLimit, Spending
    from evalmeta.model.spending import picodollars

    try:
        settings = org.settings()
        subjects = subjects_of_run(settings.subjects, run.subject_name, org.runs.content(run.id))
    except EvalmetaError:
        return Spending()
    subject, limit = agent_settings(subjects, run.subject_name, root=org.root), None
    if run.options.max_cost is not None:
        earlier = sum(row.amount for case in org.runs.stream(run.id) for row in case.spent)
        here = resources.spent[run.options.origin.suite or run.id]
        exchange = RunSpending(org.database, run, here).exchange
        limit = CostLimit(picodollars(run.options.max_cost), run=run.id, here=here, spent=earlier, exchange=exchange)
    return Spending(Prices(settings.prices), subject.language_model if subject else "", limit)


def _recipe_of(org: Organization, run: Run, evaluation: Evaluation) -> bytes:
    """Return what makes the agent and the scorers of a run in another process."""
    import pickle

    from evalmeta.org.recipes import ProjectRecipe

    settings, content = org.settings(), org.runs.content(run.id)
    subjects = subjects_of_run(settings.subjects, run.subject_name, content)
    subject = agent_settings(subjects, run.subject_name, root=org.root)
    own = {} if subject is None else {run.subject_name: subject}
    custom = None
    if run_file_of(content) is None:
        # Only this machine has the database with the deployed ones.
        expectations = (one for case in evaluation.cases for turn in case.turns for one in turn.expectations)
        names = {expectation.name for expectation in expectations if expectation.is_custom}
        custom = {name: scorers_of_run(org, content)(name) for name in names}
    scoring, rater = run.options.scoring, rater_settings_of(org, run.options)
    return pickle.dumps(ProjectRecipe(own, run.subject_name, settings.redact.patterns, scoring, rater, custom))


def _subject_of(org: Organization, run: Run) -> Subject:
    try:
        settings = org.settings()
        subjects = subjects_of_run(settings.subjects, run.subject_name, org.runs.content(run.id))
        # The check before the run knows the inputs.
        with bound_for(()):
            return with_redaction(bind_subject(subjects, run.subject_name, root=org.root), settings.redact.patterns)
    except EvalmetaError as error:
        return _UnusableSubject(org.without_paths(str(error)))


class _UnusableSubject:
    """A subject that cannot be used any more: every case becomes ERROR."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    async def open(self, case: Case) -> Session:
        raise SubjectError(f"case {case.number} cannot be run: {self._reason}")

    async def close(self) -> None:
        pass


async def _release(org: Organization, run_id: str, worker: str) -> bool:
    """Release a run and return whether it was the worker's."""
    try:
        return await _write(org, lambda: org.runs.release(run_id, worker))
    except StoreError:
        # The lease is free anyway as soon as its worker has ended.
        return True


if __name__ == "__main__":
    is_shared = sys.argv[1:2] == [SHARED]
    sys.exit(main(*sys.argv[2 if is_shared else 1 :], shares_places=is_shared))
