"""Where an evaluation's results are kept: in memory, or in a folder's database, where an interrupted run goes on."""

from __future__ import annotations

import time
import uuid
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Protocol

import orjson

from evalmeta import limits
from evalmeta.engine.journal import MemoryJournal
from evalmeta.engine.plan import choose
from evalmeta.errors import StoreError, StoreLocked, UsageError
from evalmeta.model.run import Run, RunStatus
from evalmeta.org.leases import is_free, keep_lease, new_worker
from evalmeta.store.runs import RunJournal, Runs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.api.assignments import Assignment
    from evalmeta.engine.journal import Journal
    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.run import CaseResult, RunOptions
    from evalmeta.store.database import Database

__all__ = ["Record", "in_memory", "nothing_to_ask", "planned", "stored"]


class Record(Protocol):
    """A run on its way."""

    @property
    def journal(self) -> Journal:
        """Gives the journal to run with."""
        ...

    @property
    def is_over(self) -> bool:
        """Tells whether nothing is left to do."""
        ...

    def earlier(self) -> Iterator[CaseResult]:
        """Gives the results that an earlier call has kept."""
        ...

    def complete(self) -> None:
        """Ends the run: every case was asked."""
        ...

    def run(self, *, total: int, with_cases: bool) -> Run:
        """Gives the run as it is; `total` is the number of its results, where nothing else tells it."""
        ...


@contextmanager
def in_memory(assignment: Assignment, options: RunOptions, *, keep: bool) -> Iterator[Record]:
    """Gives a run that lives as long as the object does; without `keep` its results are forgotten at once."""
    yield _MemoryRecord(assignment, options, keep=keep)


@contextmanager
def stored(database: Database, assignment: Assignment, options: RunOptions, *, resume: bool) -> Iterator[Record]:
    """Gives the run in a database that an assignment stands for, begun now or earlier, and holds it meanwhile.

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
        """Keeps nothing: what is to be told of results was told."""


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
    """Counts the results that a run comes to; the cases are gone through once more for it."""
    return sum(1 for _ in choose(evaluation, options)) * options.iterations


def nothing_to_ask(evaluation: Evaluation) -> UsageError:
    """Gives the error that says that there are no cases, which must not pass for a success."""
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
    """Gives what tells the assignment's cases from others: the definition, or a hash of cases that have none."""
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
    from evalmeta.report.differences import difference_lines  # noqa: PLC0415 - likewise

    difference = compare_contents(("in the journal", before), ("now", after))
    if difference is None or difference.is_form_only:
        return []
    return [line.text for line in difference_lines(difference)]


def _other_options(before: RunOptions, after: RunOptions) -> list[str]:
    """Lists options by which results would be others; how fast they come does not matter."""
    names = ("iterations", "cases", "shard", "scoring")
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in names]
    return [f"  {name} was {old}, and is {new}" for name, old, new in pairs if old != new]
