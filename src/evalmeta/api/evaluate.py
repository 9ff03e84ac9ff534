"""Evaluations: an agent is asked what definitions or cases say, and its answers are judged, without any org.

Where an evaluation's results are kept: in memory, or in a folder's database, where an interrupted run goes on.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypedDict, overload

import orjson

from evalmeta import limits
from evalmeta.api.agent_tests import with_document
from evalmeta.api.evaluate_inputs import Bindings, assignments_of, is_list
from evalmeta.api.finished_runs import FinishedRun, FinishedRuns
from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.interfaces import MemoryJournal
from evalmeta.engine.plan import select_cases
from evalmeta.engine.runner import execute
from evalmeta.engine.scorers.registry import make_scorers
from evalmeta.engine.statistics import SummaryCounter
from evalmeta.errors import StoreError, StoreLocked, TooManyErrors, UsageError
from evalmeta.model.run import Run, RunOptions, RunStatus
from evalmeta.org.lease import is_free, keep_lease, new_worker
from evalmeta.org.runs import invalid_option
from evalmeta.store.database import open_database
from evalmeta.store.judge_cache import Ratings
from evalmeta.store.runs import RunJournal, Runs

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Unpack

    from evalmeta.api.evaluate_inputs import Assignment
    from evalmeta.engine.interfaces import Journal, Scorer, Subject
    from evalmeta.model.definition import Definition
    from evalmeta.model.evaluation import Case, Evaluation
    from evalmeta.model.run import CaseResult, Summary
    from evalmeta.model.settings import Settings
    from evalmeta.store.database import Database

    OnResults = Callable[[Sequence[CaseResult]], None]
    One = Definition | Evaluation | Path | str | Iterable[Case]
    Many = Sequence[Definition | Evaluation | Path]


class _How(TypedDict, total=False):
    """The keywords of `evaluate`."""

    name: str | None
    options: RunOptions | None
    on_results: OnResults | None
    rater: object
    journal: Path | None
    resume: bool
    keep_results: bool
    root: Path | None


@overload
def evaluate(what: One, subject: object = None, **how: Unpack[_How]) -> FinishedRun: ...
@overload
def evaluate(what: Many, subject: object = None, **how: Unpack[_How]) -> FinishedRuns: ...
def evaluate(  # noqa: PLR0913 - as documented
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
    """Ask an agent what a definition says, judges its answers, and gives the finished run.

    That cases fail is no error: `succeeded` of what is returned tells, and `report()` why.

    Args:
        what: a definition, the path of one or of a test in any other format, an `Evaluation`, or cases,
            which may come from an iterator of any length; or a list of these but the last, in which
            folders stand for all tests in them. A list gives `FinishedRuns`, a tuple.
        subject: the agent: a function or an object with `open`, as the adapter `python` takes them; a
            table of settings such as `{"adapter": "http", "url": ...}`; or an `engine.subject.Subject`.
            None asks what the project's `evalmeta.toml` binds to the definition's `subjectName`, and takes
            the answers that a file has itself where it binds none.
        name: what to call the evaluation, instead of its own name.
        options: how to run and what passes; None takes what the file says, and [run] and [score] of the project.
        on_results: is told of results after they were kept, some at a time, in the order they were finished.
        rater: rates answers: a function of a `Rubric` that gives a `Rating`, or a table of settings.
            None takes the one that `options.scoring.rater` names.
        journal: a folder of its own for the results. A call with the same journal, name, cases and options
            asks only what is missing there, and nothing once the run is complete.
        resume: False begins a new run in the journal, whatever is there.
        keep_results: False returns a run that has been counted, and has no cases.
        root: the project's folder; the one around the file, or else around the current folder, when None.

    Raises:
        InvalidMetadata: definitions have errors; nothing was asked, and `problems` lists them.
        SubjectNotBound: no subject was given, and the project binds none.
        SettingsError: the subject, the rater or the project's settings cannot be used.
        NotFound: a path is not there, or has no definitions.
        UsageError: nothing can be asked as the call says, the journal has a run of other cases, or an event
            loop is running here: await `evaluate_async` there.
        StoreError: the journal cannot be used, or another process works on the run.
        KeyboardInterrupt: by Ctrl-C; the journal has what was finished.
    """
    if _has_event_loop():
        raise UsageError("an event loop is running here: use `await evalmeta.evaluate_async(...)` instead of evaluate")
    work: Coroutine[None, None, FinishedRun | FinishedRuns] = evaluate_async(
        what,
        subject,
        name=name,
        options=options,
        on_results=on_results,
        rater=rater,
        journal=journal,
        resume=resume,
        keep_results=keep_results,
        root=root,
    )
    return run_to_end(work)


@overload
async def evaluate_async(what: One, subject: object = None, **how: Unpack[_How]) -> FinishedRun: ...
@overload
async def evaluate_async(what: Many, subject: object = None, **how: Unpack[_How]) -> FinishedRuns: ...
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
    """Do what `evaluate` does, in the event loop that is running; takes, gives and raises the same.

    Raises:
        CancelledError: it was cancelled; the journal has what was finished.
    """
    subject_name = None if subject is None else _name_of(subject)
    assignments = assignments_of(what, name=name, root=root, subject_name=subject_name)
    async with AsyncExitStack() as stack:
        database = None
        if journal is not None:
            _check_journal(Path(journal), assignments)
            database = stack.enter_context(open_database(Path(journal)))
        bindings = Bindings(stack, subject, rater, Ratings(database) if database else None)
        tasks = [_task(each, options, bindings) for each in assignments]
        _check_cases(tasks, has_journal=database is not None)
        terms = _Terms(database, on_results, resume, keep_results)
        finished = FinishedRuns([await _carry_out(each, terms) for each in tasks])
    return finished if is_list(what) else finished[0]


class _Task(NamedTuple):
    """An assignment with all that it takes."""

    assignment: Assignment
    options: RunOptions
    subject: Subject
    scorers: Mapping[str, Scorer]


class _Terms(NamedTuple):
    """What the caller wants of every run."""

    database: Database | None
    on_results: OnResults | None
    resume: bool
    keep_results: bool


def _task(assignment: Assignment, options: RunOptions | None, bindings: Bindings) -> _Task:
    options = options or _declared(assignment)
    if fault := invalid_option(options):
        raise UsageError(f"options: {fault}")
    subject = bindings.subject(assignment)
    return _Task(assignment, options, subject, make_scorers(options.scoring, bindings.rater(assignment, options)))


def _declared(assignment: Assignment) -> RunOptions:
    options = declared_options(assignment.settings)
    return options if assignment.document is None else with_document(options, assignment.document)


async def _carry_out(task: _Task, terms: _Terms) -> FinishedRun:
    evaluation, counter = task.assignment.evaluation, SummaryCounter(task.options)
    with _record(task, terms) as record:
        for each in record.earlier():
            counter.add(each)
        error = None if record.is_over else await _ask(task, record, counter, terms.on_results)
        summary = counter.summary()
        if not (summary.total or error):
            raise nothing_to_ask(evaluation)
        run = record.run(total=_total(task, summary, error), with_cases=terms.keep_results)
    if error:
        run = replace(run, status=RunStatus.ERROR, error=error)
    return FinishedRun(run, summary, task.assignment.file)


def _record(task: _Task, terms: _Terms) -> AbstractContextManager[Record]:
    if terms.database is None:
        return in_memory(task.assignment, task.options, keep=terms.keep_results)
    return stored(terms.database, task.assignment, task.options, resume=terms.resume)


async def _ask(task: _Task, record: Record, counter: SummaryCounter, on_results: OnResults | None) -> str | None:
    """Ask what is missing; says why, when the run stopped because of too many errors."""

    def tell(results: Sequence[CaseResult]) -> None:
        for each in results:
            counter.add(each)
        if on_results:
            on_results(results)

    try:
        await execute(
            task.assignment.evaluation,
            task.subject,
            record.journal,
            options=task.options,
            on_results=tell,
            scorers=task.scorers,
        )
    except TooManyErrors as stopped:
        return str(stopped)
    record.complete()
    return None


def _total(task: _Task, summary: Summary, error: str | None) -> int:
    evaluation = task.assignment.evaluation
    if error is None or isinstance(evaluation.cases, Iterator):
        return summary.total
    return planned(evaluation, task.options)


def declared_options(settings: Settings) -> RunOptions:
    """Return the options that [run] and [score] of a project's settings ask for."""
    return RunOptions(**settings.run.model_dump(), scoring=settings.score.scoring())


def _check_journal(folder: Path, assignments: Sequence[Assignment]) -> None:
    names = [(each.kind, each.evaluation.name) for each in assignments]
    if len(set(names)) < len(names):
        raise UsageError("a journal tells runs by their names, and two of these have the same")
    if any(each.state_dir and each.state_dir.resolve() == folder.resolve() for each in assignments):
        raise UsageError(f"{folder} is the project's own folder for state: take another one for the journal")


def _check_cases(tasks: Sequence[_Task], *, has_journal: bool) -> None:
    for each in tasks:
        is_passing = isinstance(each.assignment.evaluation.cases, Iterator)
        if is_passing and (has_journal or each.options.iterations > 1):
            need = "a journal goes" if has_journal else "several iterations go"
            raise UsageError(f"{need} through the cases more than once: give a list, or an object that begins anew")


def _name_of(subject: object) -> str:
    return str(getattr(subject, "__name__", None) or type(subject).__name__)


def _has_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Record(Protocol):
    """A run on its way."""

    @property
    def journal(self) -> Journal:
        """Return the journal to run with."""
        ...

    @property
    def is_over(self) -> bool:
        """Return whether nothing is left to do."""
        ...

    def earlier(self) -> Iterator[CaseResult]:
        """Return the results that an earlier call has kept."""
        ...

    def complete(self) -> None:
        """End the run: every case was asked."""
        ...

    def run(self, *, total: int, with_cases: bool) -> Run:
        """Return the run as it is; `total` is the number of its results, where nothing else tells it."""
        ...


@contextmanager
def in_memory(assignment: Assignment, options: RunOptions, *, keep: bool) -> Iterator[Record]:
    """Return a run that lives as long as the object does; without `keep` its results are forgotten at once."""
    yield _MemoryRecord(assignment, options, keep=keep)


@contextmanager
def stored(database: Database, assignment: Assignment, options: RunOptions, *, resume: bool) -> Iterator[Record]:
    """Return the run in a database that an assignment stands for, begun now or earlier, and holds it meanwhile.

    Raises:
        UsageError: the earlier run was of other cases, or with options that give other results.
        StoreLocked: another process works on it.
        StoreError: the database cannot be used.
    """
    runs = Runs(database)
    run = _earlier(runs, assignment, options) if resume else None
    run = run or _begun(runs, assignment, options)
    if run.status.is_over:
        yield _StoredRecord(database, run, options)
        return
    worker, lease = new_worker(), runs.lease(run.id)
    until = time.time() + limits.RUN_LEASE_SECONDS
    if not (is_free(lease) and runs.claim(run.id, worker, taken_from=lease, until=until)):
        raise StoreLocked(f"run {run.id} in {database.path} is being carried out already: wait, or take another folder")
    with keep_lease(database.path.parent, run.id, worker):
        try:
            yield _StoredRecord(database, run, options, worker=worker)
        finally:
            runs.release(run.id, worker)


class _MemoryRecord:
    def __init__(self, assignment: Assignment, options: RunOptions, *, keep: bool) -> None:
        evaluation = assignment.evaluation
        self._journal = MemoryJournal()
        self.journal: Journal = self._journal if keep else _Forgetful()
        self.is_over = False
        self._run = Run(
            id=str(uuid.uuid4()),
            definition=evaluation.name,
            subject_name=evaluation.subject_name,
            status=RunStatus.IN_PROGRESS,
            started=time.time(),
            total=0,
            subject_version=evaluation.subject_version,
            options=options,
        )

    def earlier(self) -> Iterator[CaseResult]:
        return iter(())

    def complete(self) -> None:
        self._run = replace(self._run, status=RunStatus.COMPLETED)

    def run(self, *, total: int, with_cases: bool) -> Run:
        cases = sorted(self._journal.results, key=lambda each: (each.iteration, each.number)) if with_cases else ()
        return replace(self._run, ended=time.time(), total=total, cases=tuple(cases))


class _Forgetful:
    def finished(self) -> frozenset[tuple[int, int]]:
        return frozenset()

    def append(self, results: Sequence[CaseResult]) -> None:
        """Keep nothing: what is to be told of results was told."""


class _StoredRecord:
    """A run in a database; a worker owns it unless it is over."""

    def __init__(self, database: Database, run: Run, options: RunOptions, *, worker: str = "") -> None:
        self._runs = Runs(database)
        self._id = run.id
        self._options = options
        self._worker = worker
        self.is_over = run.status.is_over
        self.journal: Journal = RunJournal(database, run.id, worker)

    def earlier(self) -> Iterator[CaseResult]:
        return self._runs.stream(self._id)

    def complete(self) -> None:
        self._runs.finish(self._id, self._worker, RunStatus.COMPLETED, error=None, now=time.time())

    def run(self, *, total: int, with_cases: bool) -> Run:
        cases = self._runs.cases(self._id) if with_cases else ()
        run = _found(self._runs, self._id)
        return replace(run, total=max(run.total, total), options=self._options, cases=cases)


def planned(evaluation: Evaluation, options: RunOptions) -> int:
    """Count the results that a run comes to; the cases are gone through once more for it."""
    return sum(1 for _ in select_cases(evaluation, options)) * options.iterations


def nothing_to_ask(evaluation: Evaluation) -> UsageError:
    """Return the error that says that there are no cases, which must not pass for a success."""
    return UsageError(f"there is nothing to ask: {evaluation.name} has no cases, or the options choose none of them")


def _begun(runs: Runs, assignment: Assignment, options: RunOptions) -> Run:
    evaluation, content = assignment.evaluation, _content(assignment)
    total = planned(evaluation, options)
    if not total:
        raise nothing_to_ask(evaluation)
    run_id = runs.start(assignment.kind, evaluation, content, options, total=total, now=time.time())
    return _found(runs, run_id)


def _found(runs: Runs, run_id: str) -> Run:
    run = runs.get(run_id)
    if run is None:
        raise StoreError(f"run {run_id} has been taken out of the journal by another program")
    return run


def _earlier(runs: Runs, assignment: Assignment, options: RunOptions) -> Run | None:
    run = runs.latest(assignment.kind, assignment.evaluation.name)
    if run is None:
        return None
    difference = [*_changes(runs.content(run.id), assignment), *_other_options(run.options, options)]
    if difference:
        what = "\n".join([f"the journal has run {run.id} of another {run.definition}:", *difference])
        raise UsageError(f"{what}\nTake another folder, or begin anew beside it with resume=False.")
    return run


def _content(assignment: Assignment) -> bytes:
    """Return what tells the assignment's cases from others: the definition, or a hash of cases that have none."""
    if assignment.content is not None:
        return assignment.content
    digest = sha256()
    for case in assignment.evaluation.cases:
        digest.update(orjson.dumps(case))
    return orjson.dumps({"cases": digest.hexdigest()})


def _changes(before: bytes, assignment: Assignment) -> list[str]:
    after = _content(assignment)
    if before == after:
        return []
    if assignment.content is None or before.startswith(b"{"):
        return ["  the cases are others"]
    from evalmeta.api.changes import compare_contents  # noqa: PLC0415 - only for what has changed
    from evalmeta.report.comparison import difference_lines  # noqa: PLC0415 - likewise

    difference = compare_contents(("in the journal", before), ("now", after))
    if difference is None or difference.is_form_only:
        return []
    return [line.text for line in difference_lines(difference)]


def _other_options(before: RunOptions, after: RunOptions) -> list[str]:
    """List options by which results would be others; how fast they come does not matter."""
    names = ("iterations", "cases", "shard", "scoring")
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in names]
    return [f"  {name} was {old}, and is {new}" for name, old, new in pairs if old != new]
