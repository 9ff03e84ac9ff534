"""Merging the runs of shards into one run of each test, in one suite of the project's store."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from hashlib import sha256
from heapq import merge
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.api.org_targets import EMBEDDED_URL
from evalmeta.api.runs.finding import RunHandle, SuiteHandle
from evalmeta.api.runs.shard_sources import find_shards
from evalmeta.api.runs.shards import FoundShards, Shard, numbers_with_cases
from evalmeta.errors import Suggestion, UsageError
from evalmeta.model.run import CaseResult, Run, RunStatus
from evalmeta.report.text import and_more, count, one_line
from evalmeta.store.components import Receipts
from evalmeta.store.database import Database, open_database
from evalmeta.store.kept_numbers import tallies_of
from evalmeta.store.run_lists import runs_of_suite
from evalmeta.store.runs import Runs
from evalmeta.store.stored_cases import decode_case
from evalmeta.store.suites import Suite, Suites, SuiteTest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.run_options import Origin, RunOptions
    from evalmeta.package.project import Project
    from evalmeta.store.sql import Row

_SHOWN: Final = 20
_SHOWN_DIFFERENCES: Final = 5
_VALUE_CHARS: Final = 80
_SUITE_CHARS: Final = 12
_COLUMNS: Final = ("run_id", "iteration", "number", "verdict", "body")


class Merged(NamedTuple):
    """The suite of the merged runs.

    Attributes:
        shards: the number of merged runs of shards.
        is_new: whether it was written now; False if the same shards were merged before.
        missing: what is not in it, in sentences, if that was allowed.
    """

    suite: SuiteHandle
    shards: int
    is_new: bool
    missing: tuple[str, ...]


class _Test(NamedTuple):
    """The shards of a test, in order of their numbers; those with one number ran the same cases."""

    shards: tuple[Shard, ...]
    place: int
    is_partial: bool

    @property
    def first(self) -> Shard:
        return self.shards[0]

    def run(self, suite_id: str, project: str) -> Run:
        """Return the run that the shards become, without results; `project` is as in its origin."""
        runs, options = [shard.run for shard in self.shards], self.first.run.options
        origin = options.origin._replace(suite=suite_id, place=self.place, project=project)
        totals = {shard.number: shard.run.total for shard in self.shards}
        return replace(
            self.first.run,
            status=RunStatus.COMPLETED,
            started=min(run.started for run in runs),
            ended=max(run.ended or run.started for run in runs),
            total=sum(totals.values()),
            error=None,
            options=replace(options, shard=None, origin=origin, most_iterations=_most_iterations(runs)),
        )


def _most_iterations(runs: Iterable[Run]) -> int:
    """Return the most iterations of one case of several runs if some cases run more often than others; else 0."""
    options = [run.options for run in runs]
    if not any(own.most_iterations for own in options):
        return 0
    return max(own.most_iterations or own.iterations for own in options)


def merge_shards(project: Project, words: Sequence[str], *, allow_missing: bool = False) -> Merged:
    """Merge the runs of shards into one run of each test, and save them as a suite in the project's store.

    `words` are as for `find_shards`. Everything is saved in one transaction. If the same runs were merged before, that
    suite is returned. Raise UsageError that names all shards which are missing, not finished, or not of the same run of
    the same test, and nothing is written then; with `allow_missing`, the first two are left out.
    """
    found = find_shards(project, words)
    by_test: dict[tuple[str, str], list[Shard]] = {}
    for shard in sorted(found.runs, key=lambda shard: (shard.run.options.origin.place, shard.number)):
        by_test.setdefault(shard.key, []).append(shard)
    gaps = {key: [*_gaps(project, found, shards)] for key, shards in by_test.items()}
    never = [why for (key, _), why in found.unstarted.items() if key not in by_test]
    missing = [*never, *(gap for of_test in gaps.values() for gap in of_test)]
    foreign = [fault for shards in by_test.values() for fault in _foreign(shards)]
    if not by_test or foreign or (missing and not allow_missing):
        raise _refused([*foreign, *missing], found.runs, may_allow=bool(by_test) and not foreign)
    tests = [
        _Test(tuple(sorted(shards, key=lambda shard: shard.number)), place, bool(gaps[key]))
        for place, (key, shards) in enumerate(by_test.items(), 1)
    ]
    suite_id, is_new, run_ids = _save(project, tests, found)
    handles = tuple(RunHandle(project, run_id, definition=name) for run_id, name in run_ids)
    with open_database(project.store) as database:
        saved = Suites(database).get(suite_id)
    return Merged(SuiteHandle(project, handles, saved), len(found.runs), is_new, tuple(missing))


def _gaps(project: Project, found: FoundShards, shards: Sequence[Shard]) -> Iterator[str]:
    """Yield which shards of a test are not there, or do not have all their results."""
    for shard in shards:
        if shard.run.status is not RunStatus.COMPLETED or shard.results < shard.run.total:
            state = f"{shard.run.status} with {shard.results:,} of {count(shard.run.total, 'result')}"
            why = f": {one_line(shard.run.error)}" if shard.run.error else ""
            yield f"{shard} is not finished: run {shard.run.id} is {state}{why}"
    first, numbers = shards[0], {shard.number for shard in shards}
    absent = [number for number in range(1, first.shards + 1) if number not in numbers]
    absent = [number for number in absent if (first.key, number) not in found.skipped]
    with_cases = numbers_with_cases(project, first) if absent else ()
    for number in absent:
        if number in with_cases:
            missing = f"shard {number}/{first.shards} of test {first.run.definition} is missing"
            yield found.unstarted.get((first.key, number), missing)


def _foreign(shards: Sequence[Shard]) -> Iterator[str]:
    """Yield which shards of a test differ from most of them, and in what."""
    facts = [tuple(shard.facts().items()) for shard in shards]
    [(common, _)] = Counter(facts).most_common(1)
    model = shards[facts.index(common)]
    for shard, own in zip(shards, facts, strict=True):
        if own != common:
            yield f"{shard} does not belong to {model}: {and_more(_differences(common, own), _SHOWN_DIFFERENCES)}"


def _differences(common: Iterable[tuple[str, str]], own: Iterable[tuple[str, str]]) -> list[str]:
    expected, values = dict(common), dict(own)
    names = [name for name in (values | expected) if values.get(name) != expected.get(name)]
    return [
        f"{name} is {one_line(values.get(name, 'none'), chars=_VALUE_CHARS)},"
        f" not {one_line(expected.get(name, 'none'), chars=_VALUE_CHARS)}"
        for name in names
    ]


def _refused(faults: Sequence[str], shards: Sequence[Shard], *, may_allow: bool) -> UsageError:
    lines = list(dict.fromkeys(faults))
    shown = lines[:_SHOWN] + ([f"and {len(lines) - _SHOWN:,} more"] if len(lines) > _SHOWN else [])
    stopped = next((shard for shard in shards if shard.run.status is not RunStatus.COMPLETED), None)
    actions = ["Name the store of every shard of one commit, run with the same options."]
    if stopped:
        where = f"Finish the run where {stopped.source} is"
        actions.insert(0, Suggestion(where, "test", "resume", "--job-id", stopped.run.id))
    if may_allow:
        actions.append("Or merge only what is there: add --allow-missing.")
    message = "\n  ".join(["the shards cannot be merged, and nothing was written:", *shown])
    return UsageError(message, actions=actions)


def _save(project: Project, tests: Sequence[_Test], found: FoundShards) -> tuple[str, bool, list[tuple[str, str]]]:
    """Save all runs and their suite in one transaction; return its id, whether it is new, and its runs."""
    with open_database(project.store) as database:
        with database.transaction():
            suite_id, is_new = _suite_of(database, _suite_id(found))
            if is_new:
                _write(
                    database, tests, found, suite_id, project.store.project(project.root) if project.store.url else ""
                )
        runs = [(run.id, run.definition) for run in runs_of_suite(database, suite_id)]
        if is_new:
            tallies_of(database, {run_id: run.options for run_id, _ in runs if (run := Runs(database).get(run_id))})
            receipts = Receipts(database, project=project.store.project(project.root), org_url=EMBEDDED_URL)
            for run_id, _ in runs:
                receipts.keep("test", run_id, now=database.now())
    return suite_id, is_new, runs


def _suite_of(database: Database, suite_id: str) -> tuple[str, bool]:
    """Return the id of the suite and whether it must be written; another id if runs of the first were deleted."""
    while known := Suites(database).get(suite_id):
        if len(runs_of_suite(database, suite_id)) == len(known.tests):
            return suite_id, False
        suite_id = sha256(suite_id.encode()).hexdigest()[:_SUITE_CHARS]
    return suite_id, True


def _suite_id(found: FoundShards) -> str:
    """Return an id that is the same whenever the same results are merged."""
    shards = [*found.runs, *(shard for _, shard in found.again)]
    parts = sorted({(*shard.identity, str(shard.results)) for shard in shards})
    return sha256(repr(parts).encode()).hexdigest()[:_SUITE_CHARS]


def _write(database: Database, tests: Sequence[_Test], found: FoundShards, suite_id: str, project: str) -> None:
    planned = [(test, test.run(suite_id, project)) for test in tests]
    Suites(database).add(
        Suite(suite_id, "", "", database.now(), tuple(_suite_test(test, run.options) for test, run in planned))
    )
    for test, run in planned:
        run_id = Runs(database).keep_ended(test.first.kind, run, test.first.content)
        numbers = _copy(database, run_id, run, test.shards, is_partial=test.is_partial)
        if test.is_partial:
            options = replace(run.options, cases=tuple(sorted(set(numbers))))
            Runs(database).record(run_id, options, total=len(numbers))
        identities = {shard.identity for shard in test.shards}
        again = {shard.identity: shard for confirmed, shard in found.again if confirmed in identities}
        for shard in again.values():
            _keep_again(database, shard, run_id, run.options.origin)


def _suite_test(test: _Test, options: RunOptions) -> SuiteTest:
    shard = test.first
    version, file = (shard.test.version, shard.test.file) if shard.test else ("", None)
    return SuiteTest(shard.kind, shard.run.definition, options, version, file, "started")


def _keep_again(database: Database, shard: Shard, run_id: str, origin: Origin) -> None:
    """Save a run that asked suspect cases of a shard again, as one that asked those of the merged run."""
    again = replace(shard.run.options, confirms=run_id, origin=origin._replace(place=0))
    run = replace(shard.run, options=again)
    if run.status is RunStatus.COMPLETED:
        _copy(database, Runs(database).keep_ended(shard.kind, run, shard.content), run, [shard], is_partial=True)


def _copy(database: Database, run_id: str, run: Run, shards: Sequence[Shard], *, is_partial: bool) -> list[int]:
    """Copy the results of shards to a run, and return their numbers if the run has only some of the cases."""
    numbers: list[int] = []
    counted = 0

    def rows() -> Iterator[Row]:
        nonlocal counted
        for row in _joined(run.definition, shards):
            counted += 1
            if is_partial:
                numbers.append(row[1])
            yield (run_id, *row)

    database.load("case_result", _COLUMNS, rows())
    if not is_partial and counted != run.total:
        raise UsageError(
            f"the shards of test {run.definition} have {counted:,} of {run.total:,} results, and nothing was written",
            actions=["Check their stores: evalmeta store check FOLDER"],
        )
    return numbers


def _joined(name: str, shards: Sequence[Shard]) -> Iterator[Row]:
    """Yield the results of shards in order, each once; only some results of each are in memory."""
    cases, size = (max(1, most // len(shards)) for most in (limits.MERGED_CASES, limits.MERGED_BYTES))
    last: tuple[Row, Shard] | None = None
    for row, shard in merge(*(_pages(shard, cases, size) for shard in shards), key=_key):
        if last is not None and _key(last) == _key((row, shard)):
            _refuse_other(name, *last, row, shard)
            continue
        last = row, shard
        yield row


def _pages(shard: Shard, cases: int, size: int) -> Iterator[tuple[Row, Shard]]:
    return ((row, shard) for row in shard.pages(cases=cases, size=size))


def _key(result: tuple[Row, Shard]) -> tuple[int, int]:
    (iteration, number, *_), _ = result
    return iteration, number


def _refuse_other(name: str, row: Row, shard: Shard, other_row: Row, other: Shard) -> None:
    """Raise UsageError if two results of a case differ in more than times, ids of sessions, and traces."""
    iteration, number, verdict, body = row
    *_, other_verdict, other_body = other_row
    if body == other_body or _essence(decode_case(body)) == _essence(decode_case(other_body)):
        return
    when = f" in iteration {iteration}" if shard.run.options.is_repeated else ""
    raise UsageError(
        f"case {number} of test {name} has two different results{when}, and nothing was written: {verdict} in"
        f" {shard.source} (run {shard.run.id}), and {other_verdict} in {other.source} (run {other.run.id})",
        actions=["Leave out the source with the results that shall not count."],
    )


def _essence(case: CaseResult) -> CaseResult:
    earlier = tuple(turn._replace(generated=_timeless(turn.generated)) for turn in case.earlier)
    generated, unanswered = (known and _timeless(known) for known in (case.generated, case.unanswered))
    return case._replace(started=0.0, ended=0.0, generated=generated, earlier=earlier, unanswered=unanswered)


def _timeless(generated: GeneratedData) -> GeneratedData:
    actions = generated.actions and tuple(replace(action, latency_ms=None) for action in generated.actions)
    return replace(
        generated, latency_ms=None, first_token_ms=None, session_id=None, actions=actions, trace=None, traceparent=None
    )
