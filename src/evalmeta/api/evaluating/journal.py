"""The journal of `evaluate`: a folder whose database keeps the results of runs."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cache
from hashlib import sha256
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.api.runs.origins import new_origin
from evalmeta.errors import StoreError, StoreLocked, UsageError
from evalmeta.model.python_objects import function_fingerprint
from evalmeta.model.run import CaseResult, ContentKind, Run, RunContent, RunStatus, Summary
from evalmeta.model.run_options import Origin, RunOptions, Setup
from evalmeta.org.lease import is_free, keep_lease, new_worker
from evalmeta.store.database import Database, open_database
from evalmeta.store.judgements import Ratings
from evalmeta.store.kept_numbers import KeptTally
from evalmeta.store.runs import RunJournal, Runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from _typeshed import DataclassInstance

    from evalmeta.api.evaluating.loaded import LoadedEvaluation
    from evalmeta.engine.interfaces import Journal
    from evalmeta.engine.project_code import Function
    from evalmeta.model.evaluation import Case


@contextmanager
def open_journal(folder: Path, loaded: Sequence[LoadedEvaluation], *, mixed: bool) -> Iterator[FolderJournal]:
    """Open a journal for evaluations, whose runs may have answers of several agents if they are `mixed`."""
    _check_journal(folder, loaded)
    with open_database(folder) as database:
        origin, functions = (new_origin(loaded[0].root), loaded[0].functions) if loaded else (Origin(), {})
        fingerprints = Fingerprints(functions)
        try:
            yield FolderJournal(database, origin, fingerprints, mixed=mixed)
        finally:
            fingerprints.keep()


# What runs of this process have brought checks to, and how these were before: they are still the same checks.
_CHANGED_BY_RUNS: Final[dict[tuple[int, str], str]] = {}


class Fingerprints:
    """The fingerprints of the checks that one call was given as objects, as they were before its first run.

    Runs may change what is bound to a check, such as a list that it fills.
    """

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self._functions = functions
        self._known: dict[str, str] = {}

    def read(self) -> None:
        """Read the checks that are not known yet."""
        for name, function in self._functions.items():
            if name not in self._known:
                now = function_fingerprint(function)
                self._known[name] = _CHANGED_BY_RUNS.get((id(function), now), now)

    def keep(self) -> None:
        """Keep what the runs of the call have changed, so that the next call knows the checks."""
        for name, before in self._known.items():
            function = self._functions[name]
            if (now := function_fingerprint(function)) != before:
                _CHANGED_BY_RUNS[id(function), now] = before

    def of(self, names: Iterable[str]) -> list[str]:
        """Return the fingerprints of those of these functions that are objects."""
        self.read()
        return [self._known[name] for name in names if name in self._known]


class FolderJournal:
    """A folder that keeps the results of runs, and the ratings of language models; `origin` is that of new runs."""

    def __init__(self, database: Database, origin: Origin, fingerprints: Fingerprints, *, mixed: bool = False) -> None:
        self._database = database
        self._fingerprints = fingerprints
        self._origin = origin
        self._mixed = mixed
        self.ratings = Ratings(database)

    @contextmanager
    def open_record(self, loaded: LoadedEvaluation, options: RunOptions, *, resume: bool) -> Iterator[StoredRecord]:
        """Open the record of a run, which is locked until it is closed."""
        database = self._database
        runs = Runs(database)
        self._fingerprints.read()
        content = _content(loaded, self._fingerprints)
        run = _earlier_run(runs, loaded, content, options) if resume else None
        run = run or _new_run(runs, loaded, content, replace(options, origin=self._origin))
        options = replace(options, setup=_setup_of(runs, run, options.setup, mixed=self._mixed))
        if run.status.is_over:
            yield StoredRecord(database, run, options)
            return
        worker, lease = new_worker(), runs.lease(run.id)
        until = database.now() + limits.RUN_LEASE_SECONDS
        if not (is_free(lease, now=database.now()) and runs.claim(run.id, worker, taken_from=lease, until=until)):
            raise StoreLocked(
                f"another process works on run {run.id} in {database.name}: wait for it, or choose another folder"
            )
        with keep_lease(database.store, run.id, worker):
            if options.setup != run.options.setup:
                runs.record(run.id, replace(run.options, setup=options.setup))
            try:
                yield StoredRecord(database, run, options, worker=worker)
            finally:
                runs.release(run.id, worker)


class StoredRecord:
    """A run in a database; a worker owns it unless it is over."""

    def __init__(self, database: Database, run: Run, options: RunOptions, *, worker: str = "") -> None:
        self._runs = Runs(database)
        self._id, self._total = run.id, run.total
        self._options = options
        self._worker = worker
        self.is_over = run.status.is_over
        self.journal: Journal = RunJournal(database, run.id, worker)

    def earlier_results(self) -> Iterator[CaseResult]:
        """Return the results of earlier calls."""
        return self._runs.stream(self._id)

    def complete(self, summary: Summary) -> None:
        """Mark the run as completed, and keep the counts of its results."""
        kept = KeptTally.of(summary, RunStatus.COMPLETED, total=self._total).columns()
        self._runs.finish(self._id, self._worker, RunStatus.COMPLETED, error=None, now=time.time(), kept=kept)

    def run(self, *, total: int) -> Run:
        """Return the run without its cases; `total` is the number of results that it should have."""
        run = _found(self._runs, self._id)
        return replace(run, total=max(run.total, total), options=self._options)


def _check_journal(folder: Path, loaded: Sequence[LoadedEvaluation]) -> None:
    names = [(loaded_evaluation.kind, loaded_evaluation.evaluation.name) for loaded_evaluation in loaded]
    if len(set(names)) < len(names):
        raise UsageError("a journal identifies runs by their names, and two evaluations have the same name")
    if any(
        loaded_evaluation.store and loaded_evaluation.store.folder.resolve() == folder.resolve()
        for loaded_evaluation in loaded
    ):
        raise UsageError(f"{folder} is the project's own state folder: choose another folder for the journal")


def _new_run(runs: Runs, loaded: LoadedEvaluation, content: RunContent, options: RunOptions) -> Run:
    evaluation = loaded.evaluation
    total = loaded.workload(options).results
    if not total:
        raise loaded.nothing_to_run()
    now = runs.next_timestamp(time.time())
    run_id = runs.start(loaded.kind, evaluation, content, options, total=total, now=now)
    return _found(runs, run_id)


def _found(runs: Runs, run_id: str) -> Run:
    run = runs.get(run_id)
    if run is None:
        raise StoreError(f"another program has deleted run {run_id} from the journal")
    return run


def _earlier_run(runs: Runs, loaded: LoadedEvaluation, content: RunContent, options: RunOptions) -> Run | None:
    run = runs.latest(loaded.kind, loaded.evaluation.name)
    if run is None:
        return None
    difference = [*_changes(runs.content(run.id), content), *_changed_options(run.options, options)]
    if difference:
        what = "\n".join([f"the journal has run {run.id} of another {run.definition}:", *difference])
        raise UsageError(f"{what}\nChoose another folder, or add a new run to this one with resume=False.")
    return run


def _setup_of(runs: Runs, run: Run, now: Setup, *, mixed: bool) -> Setup:
    """Return what answers in a run that has answers, or else in the new one; refuse another agent unless `mixed`."""
    before = run.options.setup
    why = before.other_agent(now)
    if not why or not runs.count(run.id):
        return before if run.status.is_over else now
    if not mixed:
        what = f"run {run.id} in the journal would have answers of two agents: {why}"
        raise UsageError(f"{what}\nChoose another folder, start a new run with resume=False, or pass mixed=True.")
    return before if run.status.is_over else before.joined(now)


def _content(loaded: LoadedEvaluation, fingerprints: Fingerprints) -> RunContent:
    """Return what identifies the cases: the definition, or hashes of cases that have none and of their checks."""
    if loaded.content is not None:
        return RunContent(loaded.content)
    digest, named = sha256(), dict[str, None]()
    for case in loaded.evaluation.cases:
        # Without the names of fields, which take longer to write than their values.
        digest.update(orjson.dumps(case, _values, orjson.OPT_PASSTHROUGH_DATACLASS))
        if loaded.functions:
            named.update(dict.fromkeys(_functions_of(case)))
    content = {"cases": digest.hexdigest()}
    if given := fingerprints.of(named):
        content["checks"] = sha256(" ".join(given).encode()).hexdigest()
    return RunContent(orjson.dumps(content), ContentKind.CASES)


def _functions_of(case: Case) -> Iterator[str]:
    for turn in case.turns:
        for expectation in turn.expectations:
            if expectation.terms and "function" in expectation.terms:
                yield str(expectation.terms["function"])


def _values(model: DataclassInstance | tuple[object, ...]) -> object:
    return tuple(model) if isinstance(model, tuple) else _reader_of(type(model))(model)


@cache
def _reader_of(kind: type[DataclassInstance]) -> attrgetter[object]:
    """Return what reads the fields that identify a case, but not whether it is run and whether its result counts."""
    return attrgetter(*(field.name for field in fields(kind) if field.name not in {"not_run", "quarantine"}))


def _changes(before: RunContent, after: RunContent) -> list[str]:
    if before == after:
        return []
    if {before.kind, after.kind} == {ContentKind.CASES}:
        old, new = orjson.loads(before.data), orjson.loads(after.data)
        why = ": a check given as a function has changed, or a value that it uses" * (
            old.get("cases") == new.get("cases")
        )
        return [f"  the cases are different{why}"]
    if ContentKind.CASES in {before.kind, after.kind}:
        return ["  the cases are different"]
    from evalmeta.api.changes import compare_contents
    from evalmeta.report.comparison import difference_lines

    difference = compare_contents(("in the journal", before.data), ("now", after.data))
    if difference is None or difference.is_form_only:
        return []
    return [line.text for line in difference_lines(difference)]


def _changed_options(before: RunOptions, after: RunOptions) -> list[str]:
    """Describe the changed options that lead to other results; those about speed do not."""
    names = ("iterations", "iterations_by", "cases", "shard", "scoring")
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in names]
    return [f"  {name} was {old}, and is {new}" for name, old, new in pairs if old != new]
