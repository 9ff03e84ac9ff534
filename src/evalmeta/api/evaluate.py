"""Evaluating an agent with definitions or cases, without an org; results are kept in memory or in a journal."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from hashlib import sha256
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict, TypeVar, overload

import orjson

from evalmeta import limits
from evalmeta.api.evaluate_inputs import Bindings, is_list, load_evaluations
from evalmeta.api.finished_runs import FinishedRun, FinishedRuns
from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.plan import select_cases
from evalmeta.engine.runner import execute
from evalmeta.engine.scheduler import Scheduler
from evalmeta.engine.scorers.functions import functions_of
from evalmeta.engine.scorers.registry import make_scorers
from evalmeta.engine.statistics import SummaryCounter
from evalmeta.errors import EvalmetaError, StoreError, StoreLocked, TooManyErrors, UsageError
from evalmeta.model.run import Run, RunOptions, RunStatus
from evalmeta.org.lease import is_free, keep_lease, new_worker
from evalmeta.org.needs import function_needs
from evalmeta.org.readiness import fault_of
from evalmeta.org.runs import invalid_option
from evalmeta.protocol.run_faults import RunFault, joined_error
from evalmeta.store.database import open_database
from evalmeta.store.judge_cache import Ratings
from evalmeta.store.runs import RunJournal, Runs

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
    from typing import Unpack

    from evalmeta.api.loaded_evaluations import LoadedEvaluation
    from evalmeta.engine.interfaces import Journal, Scorer, SharedPace, Subject
    from evalmeta.engine.scheduler import Places
    from evalmeta.model.definition import Definition
    from evalmeta.model.evaluation import Case, Evaluation
    from evalmeta.model.run import CaseResult
    from evalmeta.store.database import Database

    OnResults = Callable[[Sequence[CaseResult]], None]
    One = Definition | Evaluation | Path | str | Iterable[Case]
    Many = Sequence[Definition | Evaluation | Path]


_Bound = TypeVar("_Bound")
_PLACE: Final = attrgetter("iteration", "number")


class EvaluateSettings(TypedDict, total=False):
    """The keyword arguments of `evaluate`, which documents them."""

    name: str | None
    options: RunOptions | None
    on_results: OnResults | None
    rater: object
    journal: Path | None
    resume: bool
    keep_results: bool
    root: Path | None


@overload
def evaluate(what: One, subject: object = None, **settings: Unpack[EvaluateSettings]) -> FinishedRun: ...
@overload
def evaluate(what: Many, subject: object = None, **settings: Unpack[EvaluateSettings]) -> FinishedRuns: ...
def evaluate(
    what: One | Many, subject: object = None, **settings: Unpack[EvaluateSettings]
) -> FinishedRun | FinishedRuns:
    """Send a definition's utterances to an agent, score its answers, and return the finished run.

    Failing cases are not an error: see `succeeded` and `report()` of the returned run.

    Args:
        what: A definition, the path of a definition or of a test in another format, an `Evaluation`, or
            cases, which may come from an iterator of any length. A list of definitions, evaluations and paths
            shares the concurrency and the rate of each agent; a folder stands for all tests in it. It returns
            `FinishedRuns`, a tuple in the order of the list.
        subject: The agent: a function or an object with `open`, as for the adapter `python`; a table of
            settings such as `{"adapter": "http", "url": ...}`; or an `engine.interfaces.Subject`. None uses the
            agent that the project's `evalmeta.toml` binds to the definition's `subjectName`, or else the
            answers that the file contains.
        name: The name of the evaluation, instead of its own name.
        options: How to run, and what passes. None uses what the file says, and [run] and [score] of the project.
        on_results: Called with each batch of results after it was saved, in the order of finishing.
        rater: What rates answers: a function from a `Rubric` to a `Rating`, or a table of settings. None uses
            the rater that `options.scoring.rater` names.
        journal: A folder for the results. A call with the same journal, name, cases and options runs only the
            cases that are missing there.
        resume: Whether to continue the run in the journal; False starts a new one.
        keep_results: Whether the returned run has its cases; False returns only their counts.
        root: The project's folder. None uses the project around the file, or else around the current folder.

    Raises:
        InvalidMetadata: Definitions have errors, listed in `problems`; the agent was not called.
        SubjectNotBound: There is no subject argument, and the project does not bind the agent.
        SettingsError: The project's settings, subjects, raters or scoring functions cannot be used; the message
            lists all of them. No agent was called.
        NotFound: A path does not exist or has no definitions.
        UsageError: The arguments cannot be combined, the journal has a run of other cases, or an event loop is
            running: await `evaluate_async` there.
        StoreError: The journal cannot be used, or another process works on the run.
        KeyboardInterrupt: Ctrl-C was pressed; the journal has all results so far.
    """
    if _has_event_loop():
        raise UsageError("an event loop is running here: use `await evalmeta.evaluate_async(...)` instead of evaluate")
    work: Coroutine[None, None, FinishedRun | FinishedRuns] = evaluate_async(what, subject, **settings)
    return run_to_end(work)


@overload
async def evaluate_async(what: One, subject: object = None, **settings: Unpack[EvaluateSettings]) -> FinishedRun: ...
@overload
async def evaluate_async(what: Many, subject: object = None, **settings: Unpack[EvaluateSettings]) -> FinishedRuns: ...
async def evaluate_async(  # noqa: PLR0913 - as documented
    what: One | Many,
    subject: object = None,
    *,
    name: str | None = None,
    options: RunOptions | None = None,
    on_results: OnResults | None = None,
    rater: object = None,
    journal: Path | None = None,
    resume: bool = True,
    keep_results: bool = True,
    root: Path | None = None,
) -> FinishedRun | FinishedRuns:
    """Evaluate in the running event loop; arguments, result and errors are those of `evaluate`.

    Raises:
        CancelledError: The task was cancelled; the journal has all results so far.
    """
    subject_name = None if subject is None else str(getattr(subject, "__name__", None) or type(subject).__name__)
    loaded = load_evaluations(what, name=name, root=root, subject_name=subject_name)
    async with AsyncExitStack() as stack:
        database = None
        if journal is not None:
            _check_journal(Path(journal), loaded)
            database = stack.enter_context(open_database(Path(journal)))
        bindings = Bindings(stack, subject, rater, Ratings(database) if database else None)
        tasks = _bind_all(loaded, options, bindings)
        _check_iterators(tasks, has_journal=database is not None)
        scheduler = Scheduler()
        finished = FinishedRuns(
            await _all(
                _run(each, database, on_results, scheduler, resume=resume, keep_results=keep_results) for each in tasks
            )
        )
    return finished if is_list(what) else finished[0]


class Evaluator:
    """Runs evaluations that share agents and raters, and the concurrency, rate and back-off of each agent.

    `stack` closes the agents and raters; `subject` is that of `evaluate`.
    """

    def __init__(self, stack: AsyncExitStack, subject: object = None) -> None:
        self._bindings = Bindings(stack, subject, None, None)
        self._scheduler = Scheduler()

    async def run(
        self, loaded: LoadedEvaluation, *, options: RunOptions, on_results: OnResults, shared: SharedPace | None = None
    ) -> FinishedRun:
        """Run an evaluation without keeping its results; `shared` is its agent's pace if other processes call it."""
        [task] = _bind_all([loaded], options, self._bindings)
        return await _run(task, None, on_results, self._scheduler, resume=False, keep_results=False, shared=shared)


def check_evaluation(loaded: LoadedEvaluation, subject: object = None, *, options: RunOptions) -> None:
    """Check that everything that an evaluation needs can be used, without calling the agent; raise like `evaluate`."""

    async def check() -> None:
        async with AsyncExitStack() as stack:
            _bind_all([loaded], options, Bindings(stack, subject, None, None))

    run_to_end(check())


async def _all(runs: Iterable[Coroutine[None, None, FinishedRun]]) -> list[FinishedRun]:
    """Run them at the same time; the first exception stops the others, which keep their finished results."""
    tasks = [asyncio.ensure_future(each) for each in runs]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for each in tasks:
            each.cancel()
        await asyncio.wait(tasks)
        raise


class _Task(NamedTuple):
    """An evaluation with all that is needed to run it."""

    loaded: LoadedEvaluation
    options: RunOptions
    agent: Hashable
    subject: Subject
    scorers: Mapping[str, Scorer]


def _bind_all(loaded: Sequence[LoadedEvaluation], options: RunOptions | None, bindings: Bindings) -> list[_Task]:
    """Return all that is needed to run the evaluations; raise one error for everything that cannot be used."""
    tasks, faults = [], []
    for place, each in enumerate(loaded):
        task = _bound(each, options or each.options, bindings)
        if isinstance(task, _Task):
            tasks.append(task)
        else:
            faults += [RunFault(error, (place,)) for error in task]
    if faults:
        raise joined_error(faults, [each.evaluation.name for each in loaded])
    return tasks


def _bound(loaded: LoadedEvaluation, options: RunOptions, bindings: Bindings) -> _Task | list[EvalmetaError]:
    if fault := invalid_option(options):
        raise UsageError(f"options: {fault}")
    subject, rater = _tried(lambda: bindings.subject(loaded)), _tried(lambda: bindings.rater(loaded, options))
    # The cases of an iterator are available only once.
    evaluation, needs = loaded.evaluation, []
    if not isinstance(evaluation.cases, Iterator):
        needs = function_needs(evaluation, options)
    errors = [error for need in needs if (error := fault_of(need, loaded.settings, root=loaded.root))]
    if errors or isinstance(subject, EvalmetaError) or isinstance(rater, EvalmetaError):
        return [*(each for each in (subject, rater) if isinstance(each, EvalmetaError)), *errors]
    return _Task(loaded, options, bindings.agent(loaded), subject, make_scorers(options.scoring, rater))


def _tried(bind: Callable[[], _Bound]) -> _Bound | EvalmetaError:
    try:
        return bind()
    except EvalmetaError as error:
        return error


async def _run(
    task: _Task,
    database: Database | None,
    on_results: OnResults | None,
    scheduler: Scheduler,
    *,
    resume: bool,
    keep_results: bool,
    shared: SharedPace | None = None,
) -> FinishedRun:
    pool = scheduler.pool(task.agent, task.options, shared=shared)
    async with pool.open_run() as places:
        return await _run_in(places, task, database, on_results, resume=resume, keep_results=keep_results)


async def _run_in(
    places: Places,
    task: _Task,
    database: Database | None,
    on_results: OnResults | None,
    *,
    resume: bool,
    keep_results: bool,
) -> FinishedRun:
    evaluation, counter, error = task.loaded.evaluation, SummaryCounter(task.options), None
    kept: list[CaseResult] = []

    def count(results: Sequence[CaseResult]) -> None:
        for each in results:
            counter.add(each)
        if keep_results:
            kept.extend(results)

    def count_new(results: Sequence[CaseResult]) -> None:
        count(results)
        if on_results:
            on_results(results)

    with _open_record(database, task, resume=resume) as record, functions_of(task.loaded.root):
        for each in record.earlier_results():
            count((each,))
        if not record.is_over:
            try:
                await execute(
                    evaluation,
                    task.subject,
                    record.journal,
                    options=task.options,
                    on_results=count_new,
                    scorers=task.scorers,
                    places=places,
                )
                record.complete()
            except TooManyErrors as stopped:
                error = str(stopped)
        summary = counter.summary()
        if not (summary.total or error):
            raise _nothing_to_run(evaluation)
        # The cases of an iterator cannot be counted again.
        is_counted = error is None or isinstance(evaluation.cases, Iterator)
        total = summary.total if is_counted else _planned(evaluation, task.options)
        run = replace(record.run(total=total), cases=tuple(sorted(kept, key=_PLACE)))
    return FinishedRun(replace(run, status=RunStatus.ERROR, error=error) if error else run, summary, task.loaded.file)


def _check_journal(folder: Path, loaded: Sequence[LoadedEvaluation]) -> None:
    names = [(each.kind, each.evaluation.name) for each in loaded]
    if len(set(names)) < len(names):
        raise UsageError("a journal identifies runs by their names, and two evaluations have the same name")
    if any(each.state_dir and each.state_dir.resolve() == folder.resolve() for each in loaded):
        raise UsageError(f"{folder} is the project's own state folder: choose another folder for the journal")


def _check_iterators(tasks: Sequence[_Task], *, has_journal: bool) -> None:
    for each in tasks:
        if isinstance(each.loaded.evaluation.cases, Iterator) and (has_journal or each.options.iterations > 1):
            what = "a journal needs" if has_journal else "several iterations need"
            raise UsageError(f"{what} the cases more than once: pass a list instead of an iterator")


def _has_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def _open_record(database: Database | None, task: _Task, *, resume: bool) -> Iterator[_MemoryRecord | _StoredRecord]:
    """Open the record of a run: in memory, or in a journal's database, where it is locked until it is closed.

    Raises:
        UsageError: the run in the journal had other cases, or options that lead to other results.
        StoreLocked: another process works on the run.
        StoreError: the database cannot be used.
    """
    if database is None:
        yield _MemoryRecord(task)
        return
    runs = Runs(database)
    run = (_earlier_run(runs, task) if resume else None) or _new_run(runs, task)
    if run.status.is_over:
        yield _StoredRecord(database, run, task.options)
        return
    worker, lease = new_worker(), runs.lease(run.id)
    until = time.time() + limits.RUN_LEASE_SECONDS
    if not (is_free(lease) and runs.claim(run.id, worker, taken_from=lease, until=until)):
        raise StoreLocked(
            f"another process works on run {run.id} in {database.path}: wait for it, or choose another folder"
        )
    with keep_lease(database.path.parent, run.id, worker):
        try:
            yield _StoredRecord(database, run, task.options, worker=worker)
        finally:
            runs.release(run.id, worker)


class _MemoryRecord:
    """A run in memory, without a journal."""

    is_over = False

    def __init__(self, task: _Task) -> None:
        evaluation = task.loaded.evaluation
        self.journal: Journal = _NoJournal()
        self._run = Run(
            id=str(uuid.uuid4()),
            definition=evaluation.name,
            subject_name=evaluation.subject_name,
            status=RunStatus.IN_PROGRESS,
            started=time.time(),
            total=0,
            subject_version=evaluation.subject_version,
            options=task.options,
        )

    def earlier_results(self) -> Iterator[CaseResult]:
        """Return the results of earlier calls: none."""
        return iter(())

    def complete(self) -> None:
        """Mark the run as completed."""
        self._run = replace(self._run, status=RunStatus.COMPLETED)

    def run(self, *, total: int) -> Run:
        """Return the run without its cases; `total` is the number of results that it should have."""
        return replace(self._run, ended=time.time(), total=total)


class _NoJournal:
    def finished(self) -> frozenset[tuple[int, int]]:
        return frozenset()

    def append(self, results: Sequence[CaseResult]) -> None:
        """Do nothing: the caller counts the results and keeps them."""


class _StoredRecord:
    """A run in a database; a worker owns it unless it is over."""

    def __init__(self, database: Database, run: Run, options: RunOptions, *, worker: str = "") -> None:
        self._runs = Runs(database)
        self._id = run.id
        self._options = options
        self._worker = worker
        self.is_over = run.status.is_over
        self.journal: Journal = RunJournal(database, run.id, worker)

    def earlier_results(self) -> Iterator[CaseResult]:
        """Return the results of earlier calls."""
        return self._runs.stream(self._id)

    def complete(self) -> None:
        """Mark the run as completed."""
        self._runs.finish(self._id, self._worker, RunStatus.COMPLETED, error=None, now=time.time())

    def run(self, *, total: int) -> Run:
        """Return the run without its cases; `total` is the number of results that it should have."""
        run = _found(self._runs, self._id)
        return replace(run, total=max(run.total, total), options=self._options)


def _planned(evaluation: Evaluation, options: RunOptions) -> int:
    """Count the results of a complete run, which iterates over the cases."""
    return sum(1 for _ in select_cases(evaluation, options)) * options.iterations


def _nothing_to_run(evaluation: Evaluation) -> UsageError:
    # A run without cases must not count as a success.
    return UsageError(f"there is nothing to run: {evaluation.name} has no cases, or the options select none of them")


def _new_run(runs: Runs, task: _Task) -> Run:
    loaded, evaluation = task.loaded, task.loaded.evaluation
    total = _planned(evaluation, task.options)
    if not total:
        raise _nothing_to_run(evaluation)
    run_id = runs.start(loaded.kind, evaluation, _content(loaded), task.options, total=total, now=time.time())
    return _found(runs, run_id)


def _found(runs: Runs, run_id: str) -> Run:
    run = runs.get(run_id)
    if run is None:
        raise StoreError(f"another program has deleted run {run_id} from the journal")
    return run


def _earlier_run(runs: Runs, task: _Task) -> Run | None:
    run = runs.latest(task.loaded.kind, task.loaded.evaluation.name)
    if run is None:
        return None
    difference = [*_changes(runs.content(run.id), task.loaded), *_changed_options(run.options, task.options)]
    if difference:
        what = "\n".join([f"the journal has run {run.id} of another {run.definition}:", *difference])
        raise UsageError(f"{what}\nChoose another folder, or add a new run to this one with resume=False.")
    return run


def _content(loaded: LoadedEvaluation) -> bytes:
    """Return what identifies the cases: the definition, or a hash of cases that have none."""
    if loaded.content is not None:
        return loaded.content
    digest = sha256()
    for case in loaded.evaluation.cases:
        digest.update(orjson.dumps(case))
    return orjson.dumps({"cases": digest.hexdigest()})


def _changes(before: bytes, loaded: LoadedEvaluation) -> list[str]:
    after = _content(loaded)
    if before == after:
        return []
    if loaded.content is None or before.startswith(b"{"):
        return ["  the cases are different"]
    from evalmeta.api.changes import compare_contents  # noqa: PLC0415 - it loads an HTTP client
    from evalmeta.report.comparison import difference_lines  # noqa: PLC0415 - only for a journal with other cases

    difference = compare_contents(("in the journal", before), ("now", after))
    if difference is None or difference.is_form_only:
        return []
    return [line.text for line in difference_lines(difference)]


def _changed_options(before: RunOptions, after: RunOptions) -> list[str]:
    """Describe the changed options that lead to other results; those about speed do not."""
    names = ("iterations", "cases", "shard", "scoring")
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in names]
    return [f"  {name} was {old}, and is {new}" for name, old, new in pairs if old != new]
