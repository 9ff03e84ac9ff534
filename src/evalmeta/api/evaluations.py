"""Evaluations: an agent is asked what definitions or cases say, and its answers are judged, without any org."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict, overload

from evalmeta.api.assignments import assignments_of, is_list
from evalmeta.api.bindings import Bindings
from evalmeta.api.documents import with_document
from evalmeta.api.journals import in_memory, nothing_to_ask, planned, stored
from evalmeta.api.results import FinishedRun, FinishedRuns
from evalmeta.engine.loop import run_to_end
from evalmeta.engine.policy import Tally
from evalmeta.engine.runner import execute
from evalmeta.engine.scorer import make_scorers
from evalmeta.errors import TooManyErrors, UsageError
from evalmeta.model.run import RunOptions, RunStatus
from evalmeta.org.evaluations import fault_of
from evalmeta.store.database import open_database
from evalmeta.store.ratings import Ratings

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Unpack

    from evalmeta.api.assignments import Assignment
    from evalmeta.api.journals import Record
    from evalmeta.engine.scorer import Scorer
    from evalmeta.engine.subject import Subject
    from evalmeta.model.definition import Definition
    from evalmeta.model.evaluation import Case, Evaluation
    from evalmeta.model.run import CaseResult, Summary
    from evalmeta.model.settings import Settings
    from evalmeta.store.database import Database

    OnResults = Callable[[Sequence[CaseResult]], None]
    One = Definition | Evaluation | Path | str | Iterable[Case]
    Many = Sequence[Definition | Evaluation | Path]

__all__ = ["declared_options", "evaluate", "evaluate_async"]


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
    """Asks an agent what a definition says, judges its answers, and gives the finished run.

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
    """Does what `evaluate` does, in the event loop that is running; takes, gives and raises the same.

    Raises:
        CancelledError: it was cancelled; the journal has what was finished.
    """
    subject_name = None if subject is None else _name_of(subject)
    assignments = assignments_of(what, name=name, root=root, subject_name=subject_name)
    async with AsyncExitStack() as stack:
        database = None
        if journal is not None:
            _check_journal(Path(journal), assignments)
            database = stack.enter_context(closing(open_database(Path(journal))))
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
    if fault := fault_of(options):
        raise UsageError(f"options: {fault}")
    subject = bindings.subject(assignment)
    return _Task(assignment, options, subject, make_scorers(options.scoring, bindings.rater(assignment, options)))


def _declared(assignment: Assignment) -> RunOptions:
    options = declared_options(assignment.settings)
    return options if assignment.document is None else with_document(options, assignment.document)


async def _carry_out(task: _Task, terms: _Terms) -> FinishedRun:
    evaluation, tally = task.assignment.evaluation, Tally(task.options)
    with _record(task, terms) as record:
        for each in record.earlier():
            tally.add(each)
        error = None if record.is_over else await _ask(task, record, tally, terms.on_results)
        summary = tally.summary()
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


async def _ask(task: _Task, record: Record, tally: Tally, on_results: OnResults | None) -> str | None:
    """Asks what is missing; says why, when the run stopped because of too many errors."""

    def tell(results: Sequence[CaseResult]) -> None:
        for each in results:
            tally.add(each)
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
    """Gives the options that [run] and [score] of a project's settings ask for."""
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
