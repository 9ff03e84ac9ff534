"""Evaluating an agent with definitions or cases, without an org; results are kept in memory or in a journal."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, nullcontext
from dataclasses import replace
from functools import cache, partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict, TypeVar, Unpack, overload

from evalmeta.api.evaluating.inputs import Bindings, check_keywords, is_list, load_evaluations
from evalmeta.api.runs.finished import FinishedRun, FinishedRuns
from evalmeta.engine.event_loop import run_to_end
from evalmeta.engine.project_code import functions_of
from evalmeta.engine.raters import load_rater
from evalmeta.engine.runner import execute
from evalmeta.engine.scheduler import Places, Scheduler
from evalmeta.engine.scorers import make_scorers
from evalmeta.engine.scorers.functions import check_signature, named_functions
from evalmeta.engine.spending import CostLimit
from evalmeta.engine.subjects.objects import bound_for
from evalmeta.errors import CostLimitReached, CostUnknown, EvalmetaError, TooManyErrors, UsageError
from evalmeta.model.evaluation import input_kinds
from evalmeta.model.run import CaseResult, Run, RunStatus, Summary
from evalmeta.model.run_options import RunOptions, invalid_option
from evalmeta.model.spending import picodollars
from evalmeta.model.tally import Tally
from evalmeta.protocol.runs import RunFault, joined_error

if TYPE_CHECKING:
    from evalmeta.api.evaluating.elsewhere import Elsewhere
    from evalmeta.api.evaluating.journal import FolderJournal, StoredRecord
    from evalmeta.api.evaluating.loaded import LoadedEvaluation
    from evalmeta.engine.interfaces import Journal, Scorer, SharedPace, Subject
    from evalmeta.engine.spending import Spending
    from evalmeta.model.agent_scorer import FindScorer, PromptScorer
    from evalmeta.model.definition import Definition
    from evalmeta.model.evaluation import Case, Evaluation

    OnResults = Callable[[Sequence[CaseResult]], None]
    One = Definition | Evaluation | Path | str | Iterable[Case | Mapping[str, object]]
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
    mixed: bool
    keep_results: bool
    root: Path | None
    on: str | None
    checks: Iterable[object]
    max_cost: float | None
    columns: Mapping[str, str] | None
    traces: bool


@overload
def evaluate(what: One, subject: object = None, **settings: Unpack[EvaluateSettings]) -> FinishedRun: ...
@overload
def evaluate(  # type: ignore[overload-overlap] # a list of paths is not a list of cases
    what: Many, subject: object = None, **settings: Unpack[EvaluateSettings]
) -> FinishedRuns: ...
@overload
# Type checkers infer list[object] for a list of mappings with values of several types.
def evaluate(what: Iterable[object], subject: object = None, **settings: Unpack[EvaluateSettings]) -> FinishedRun: ...
def evaluate(
    what: One | Many | Iterable[object], subject: object = None, **settings: Unpack[EvaluateSettings]
) -> FinishedRun | FinishedRuns:
    """Send a definition's utterances to an agent, score its answers, and return the finished run.

    Failing cases are not an error: see `succeeded` and `report()` of the returned run. If an event loop is running,
    as in notebooks, it waits, and the agent is asked in another thread; `evaluate_async` asks it in the running loop.

    Args:
        what: A definition, the path of a definition or of a test in another format, an `Evaluation`, or
            cases, which may come from an iterator of any length. A case is a mapping with the keys of test
            specs, such as `{"input": "When are you open?", "contains": "Monday"}`, or a `Case`.
            A list of definitions, evaluations and paths shares the concurrency and the rate of each agent; a
            folder stands for all tests in it. It returns `FinishedRuns`, a tuple in the order of the list.
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
        mixed: Whether the run in the journal may have answers of several agents, or of versions of one agent.
        keep_results: Whether the returned run has its cases; False returns only their counts.
        root: The project's folder. None uses the project around the file, or else around the current folder.
        checks: Functions that judge every answer, too, or texts such as "checks:is_polite". A function receives the
            parameters that it declares (`answer`, `expected`, `case`, `actions`, `trace`, `utterance`, `history`,
            `context`, `topic`, `generated`), and returns a bool, a number, a `Check` or a list of them.
        max_cost: The US dollars that the call may cost, agent and rater together, before no more cases are started;
            the run has then not passed. None uses that of the options.
        columns: The columns of a table, or keys of JSON Lines, by the keys of test cases: {"input": "Question"}. They
            replace those of the project's [columns].
        traces: Whether spans that the agent records with OpenTelemetry in this process say what its answers leave out:
            topic, actions, tokens and steps. It must be a Python object; for settings, `traces = true` does it.
        on: "ray" or "ray://HOST:PORT" lets a cluster of Ray ask and judge the cases; None does it here.

    Raises:
        ClusterError: The cluster cannot be used.
        InvalidMetadata: Definitions have errors, listed in `problems`; the agent was not called.
        SubjectNotBound: There is no subject argument, and the project does not bind the agent.
        SettingsError: The project's settings, subjects, raters or scoring functions cannot be used; the message
            lists all of them. No agent was called.
        NotFound: A path does not exist or has no definitions.
        UsageError: The arguments cannot be combined, or the journal has a run of other cases or of another agent.
        StoreError: The journal cannot be used, or another process works on the run.
        KeyboardInterrupt: Ctrl-C was pressed; the journal has all results so far.
    """
    check_keywords(settings, EvaluateSettings.__annotations__, of="evaluate")
    work: Coroutine[None, None, FinishedRun | FinishedRuns] = evaluate_async(what, subject, **settings)
    return run_to_end(work)


@overload
async def evaluate_async(what: One, subject: object = None, **settings: Unpack[EvaluateSettings]) -> FinishedRun: ...
@overload
async def evaluate_async(  # type: ignore[overload-overlap] # as in `evaluate`
    what: Many, subject: object = None, **settings: Unpack[EvaluateSettings]
) -> FinishedRuns: ...
@overload
async def evaluate_async(
    what: Iterable[object], subject: object = None, **settings: Unpack[EvaluateSettings]
) -> FinishedRun: ...
async def evaluate_async(  # noqa: PLR0913 - as documented
    what: One | Many | Iterable[object],
    subject: object = None,
    *,
    name: str | None = None,
    options: RunOptions | None = None,
    on_results: OnResults | None = None,
    rater: object = None,
    journal: Path | None = None,
    resume: bool = True,
    mixed: bool = False,
    keep_results: bool = True,
    root: Path | None = None,
    on: str | None = None,
    checks: Iterable[object] = (),
    max_cost: float | None = None,
    columns: Mapping[str, str] | None = None,
    traces: bool = False,
) -> FinishedRun | FinishedRuns:
    """Evaluate in the running event loop; arguments, result and errors are those of `evaluate`.

    Raises:
        CancelledError: The task was cancelled; the journal has all results so far.
    """
    subject_name = None if subject is None else str(getattr(subject, "__name__", None) or type(subject).__name__)
    loaded = load_evaluations(what, name=name, root=root, subject_name=subject_name, checks=checks, columns=columns)
    async with AsyncExitStack() as stack:
        kept = None
        if journal is not None:
            from evalmeta.api.evaluating.journal import open_journal

            kept = stack.enter_context(open_journal(Path(journal), loaded, mixed=mixed))
        bindings = Bindings(stack, subject, rater, kept.ratings if kept else None, traces=traces)
        tasks = _bind_all(loaded, options, bindings, max_cost=max_cost)
        _check_iterators(tasks, has_journal=kept is not None)
        if on:
            tasks = await _sent(tasks, on, stack, subject=subject, rater=rater, traces=traces)
        scheduler = Scheduler()
        finished = FinishedRuns(
            await _all(
                _run(task, kept, on_results, scheduler, resume=resume, keep_results=keep_results) for task in tasks
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
    tasks = [asyncio.ensure_future(run) for run in runs]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise


class _Task(NamedTuple):
    """An evaluation with all that is needed to run it; `spent` has what each run of the call has spent."""

    loaded: LoadedEvaluation
    options: RunOptions
    agent: Hashable
    subject: Subject
    scorers: Mapping[str, Scorer]
    spending: Spending
    spent: dict[Hashable, int]
    elsewhere: Elsewhere | None = None

    def limited(self, *, spent: int) -> Spending:
        """Return the prices with the cost limit of the call, of which its earlier results have spent a part."""
        if self.options.max_cost is None:
            return self.spending
        limit = CostLimit(picodollars(self.options.max_cost), run=object(), here=self.spent, spent=spent)
        return replace(self.spending, limit=limit)


async def _sent(
    tasks: Sequence[_Task], on: str, stack: AsyncExitStack, *, subject: object, rater: object, traces: bool
) -> list[_Task]:
    """Return tasks whose cases workers in a cluster ask, which `stack` ends."""
    from evalmeta.api.evaluating.elsewhere import Elsewhere, open_crew, recipe_of

    if given := next((name for task in tasks for name in task.loaded.functions), None):
        raise UsageError(
            f"the check {given!r} is a Python object, which the workers of a cluster cannot call",
            actions=["Name it as module:function, so that they can import it."],
        )
    concurrency = sum(task.options.concurrency for task in tasks)
    opened = open_crew(on, [task.loaded for task in tasks], concurrency=concurrency)
    crew = await stack.enter_async_context(opened)
    recipes = [recipe_of(task.loaded, task.options, subject=subject, rater=rater, traces=traces) for task in tasks]
    return [task._replace(elsewhere=Elsewhere(crew, recipe)) for task, recipe in zip(tasks, recipes, strict=True)]


def _bind_all(
    loaded: Sequence[LoadedEvaluation], options: RunOptions | None, bindings: Bindings, *, max_cost: float | None = None
) -> list[_Task]:
    """Return all that is needed to run the evaluations; raise one error for everything that cannot be used."""
    tasks, faults = [], []
    # The cases of an iterator are available only once.
    cases = [one.evaluation.cases for one in loaded if not isinstance(one.evaluation.cases, Iterator)]
    kinds = input_kinds(chain.from_iterable(cases)) if len(cases) == len(loaded) else ()
    for place, loaded_evaluation in enumerate(loaded):
        own = options or loaded_evaluation.options
        own = own if max_cost is None else replace(own, max_cost=max_cost)
        with bound_for(kinds):
            task = _bound(loaded_evaluation, own, bindings)
        if isinstance(task, _Task):
            tasks.append(task)
        else:
            faults += [RunFault(error, (place,)) for error in task]
    if faults:
        raise joined_error(faults, [one.evaluation.name for one in loaded])
    return tasks


def _bound(loaded: LoadedEvaluation, options: RunOptions, bindings: Bindings) -> _Task | list[EvalmetaError]:
    if fault := invalid_option(options):
        raise UsageError(f"options: {fault}")
    subject, rater = _tried(lambda: bindings.subject(loaded)), _tried(lambda: bindings.rater(loaded, options))
    # The cases of an iterator are available only once.
    evaluation, errors = loaded.evaluation, list[EvalmetaError]()
    if not isinstance(evaluation.cases, Iterator):
        if functions := named_functions(evaluation, options):
            errors = _faults(functions, loaded)
        if not isinstance(rater, EvalmetaError):
            load_rater(rater, evaluation)
        options = replace(options, most_iterations=loaded.workload(options).most_iterations)
    if errors or isinstance(subject, EvalmetaError) or isinstance(rater, EvalmetaError):
        return [*(bound for bound in (subject, rater) if isinstance(bound, EvalmetaError)), *errors]
    if options.max_cost is not None and (lack := _tried(partial(bindings.check_price, loaded, options))):
        return [lack]
    options = replace(options, setup=bindings.setup(loaded, options))
    scorers = make_scorers(options.scoring, rater, find_custom=_custom_scorers(loaded.root))
    return _Task(loaded, options, bindings.agent(loaded), subject, scorers, bindings.spending(loaded), bindings.spent)


def _custom_scorers(root: Path) -> FindScorer:
    @cache
    def in_project() -> FindScorer:
        from evalmeta.org.custom_scorers import scorers_of_project

        return scorers_of_project(root)

    def find(name: str) -> PromptScorer | str:
        return in_project()(name)

    return find


def _faults(functions: Iterable[str], loaded: LoadedEvaluation) -> list[EvalmetaError]:
    from evalmeta.org.readiness import Need, fault_of

    def fault(name: str) -> EvalmetaError | None:
        if given := loaded.functions.get(name):
            checked = _tried(lambda: check_signature(given, called=f"the check {name!r}", root=loaded.root))
            return checked if isinstance(checked, EvalmetaError) else None
        return fault_of(Need("function", name), loaded.settings, root=loaded.root)

    return [error for error in map(fault, functions) if error]


def _tried(bind: Callable[[], _Bound]) -> _Bound | EvalmetaError:
    try:
        return bind()
    except EvalmetaError as error:
        return error


async def _run(
    task: _Task,
    journal: FolderJournal | None,
    on_results: OnResults | None,
    scheduler: Scheduler,
    *,
    resume: bool,
    keep_results: bool,
    shared: SharedPace | None = None,
) -> FinishedRun:
    pool = scheduler.pool(task.agent, task.options, shared=shared)
    async with pool.open_run() as places:
        return await _run_in(places, task, journal, on_results, resume=resume, keep_results=keep_results)


async def _run_in(
    places: Places,
    task: _Task,
    journal: FolderJournal | None,
    on_results: OnResults | None,
    *,
    resume: bool,
    keep_results: bool,
) -> FinishedRun:
    evaluation, tally, error = task.loaded.evaluation, Tally(task.options), None
    kept: list[CaseResult] = []
    earlier = 0

    def count(results: Sequence[CaseResult]) -> None:
        for result in results:
            tally.add(result)
        if keep_results:
            kept.extend(results)

    def count_new(results: Sequence[CaseResult]) -> None:
        count(results)
        if on_results:
            on_results(results)

    opened: AbstractContextManager[_MemoryRecord | StoredRecord] = (
        journal.open_record(task.loaded, task.options, resume=resume) if journal else nullcontext(_MemoryRecord(task))
    )
    with opened as record, functions_of(task.loaded.root, task.loaded.functions):
        for earlier_result in record.earlier_results():
            count((earlier_result,))
            earlier += sum(row.amount for row in earlier_result.spent)
        if not record.is_over:
            try:
                await _execute(
                    task,
                    task.loaded.with_listed(started=record.run(total=0).started),
                    record.journal,
                    count_new,
                    places,
                    task.limited(spent=earlier),
                )
                record.complete(tally.summary())
            except (TooManyErrors, CostLimitReached, CostUnknown) as stopped:
                error = str(stopped)
        summary = tally.summary()
        if not (summary.total or error):
            raise task.loaded.nothing_to_run()
        # The cases of an iterator cannot be counted again.
        is_counted = error is None or isinstance(evaluation.cases, Iterator)
        total = summary.total if is_counted else task.loaded.workload(task.options).results
        run = _with_iterations(replace(record.run(total=total), cases=tuple(sorted(kept, key=_PLACE))), evaluation)
    return FinishedRun(replace(run, status=RunStatus.ERROR, error=error) if error else run, summary, task.loaded.file)


def _with_iterations(run: Run, evaluation: Evaluation) -> Run:
    """Return a run that knows the most iterations of the cases of an iterator, which nobody can count before."""
    most = run.cases[-1].iteration if run.cases and isinstance(evaluation.cases, Iterator) else 1
    return replace(run, options=replace(run.options, most_iterations=most)) if most > 1 else run


async def _execute(
    task: _Task, evaluation: Evaluation, journal: Journal, on_results: OnResults, places: Places, spending: Spending
) -> None:
    options = task.options
    if task.elsewhere:
        await task.elsewhere.execute(
            *(evaluation, journal), options=options, on_results=on_results, places=places, spending=spending
        )
        return
    await execute(
        *(evaluation, task.subject, journal),
        options=options,
        on_results=on_results,
        scorers=task.scorers,
        places=places,
        spending=spending,
    )


def _check_iterators(tasks: Sequence[_Task], *, has_journal: bool) -> None:
    for task in tasks:
        if isinstance(task.loaded.evaluation.cases, Iterator) and (has_journal or task.options.iterations > 1):
            what = "a journal needs" if has_journal else "several iterations need"
            raise UsageError(f"{what} the cases more than once: pass a list instead of an iterator")


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

    def complete(self, _: Summary) -> None:
        """Mark the run as completed."""
        self._run = replace(self._run, status=RunStatus.COMPLETED)

    def run(self, *, total: int) -> Run:
        """Return the run without its cases; `total` is the number of results that it should have."""
        return replace(self._run, ended=time.time(), total=total)


class _NoJournal:
    keeps_nothing = True

    def finished(self) -> frozenset[tuple[int, int]]:
        return frozenset()

    def append(self, results: Sequence[CaseResult]) -> None:
        """Do nothing: the caller counts the results and keeps them."""
