"""The runs of shards that other machines left: where they are, and what they must have in common."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.errors import EvalmetaError
from evalmeta.model.evaluation import select_cases, shard_of
from evalmeta.model.registry import EVALUATION_DEFINITION, MetadataType, hash_of, type_of_run
from evalmeta.model.run import ContentKind, Run, RunContent
from evalmeta.model.run_options import RUN_OPTIONS, SCORING_OPTIONS
from evalmeta.org.run_files import read_run_file, run_file_of
from evalmeta.org.runs import read_evaluation
from evalmeta.report.text import one_line
from evalmeta.store.database import Database, open_database
from evalmeta.store.runs import Runs
from evalmeta.store.suites import Suites, SuiteTest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.store import Store
    from evalmeta.package.project import Project
    from evalmeta.store.sql import Row

_DIGEST_CHARS: Final = 12
_VALUE_CHARS: Final = 80
_OF_SETUP: Final = {
    "agent": "the agent",
    "agent_version": "the version of the agent",
    "rater": "the rater",
    "prompt": "the version of its prompts",
    "evalmeta": "the version of evalmeta",
}


@dataclass(frozen=True, slots=True)
class Shard:
    """A run of one shard of a test, or one that asked suspect cases of such a run again.

    Attributes:
        source: where it is, for messages.
        run: the run without its cases.
        content: what a run of the test stores.
        content_facts: what identifies the content, in words.
        results: the number of its results.
        read: returns the iteration, number, verdict and JSON of the next results after an iteration and number, at
            most so many with so many bytes, but at least one.
        test: its test in the suite that the command saved; None if it saved none.
    """

    source: str
    run: Run
    content: RunContent
    content_facts: Mapping[str, object]
    results: int
    read: Callable[[tuple[int, int], int, int], Sequence[Row]]
    test: SuiteTest | None = None

    @property
    def number(self) -> int:
        """Return which shard it is, from 1."""
        return (self.run.options.shard or (1, 1))[0]

    @property
    def shards(self) -> int:
        """Return the number of shards of its test."""
        return (self.run.options.shard or (1, 1))[1]

    @property
    def kind(self) -> MetadataType:
        """Return the type of its test."""
        return type_of_run(self.run.id) or EVALUATION_DEFINITION

    @property
    def key(self) -> tuple[str, str]:
        """Return what identifies its test."""
        return self.kind.name, self.run.definition

    @property
    def identity(self) -> tuple[str, str]:
        """Return what identifies the run: ids of runs are only unique in a store."""
        return self.run.options.origin.suite, self.run.id

    def __str__(self) -> str:
        return f"shard {self.number}/{self.shards} of test {self.run.definition} in {self.source}"

    def facts(self) -> dict[str, str]:
        """Return what all shards of a test must have in common, in words."""
        run, options = self.run, self.run.options
        setup = options.setup._asdict()
        values: dict[str, object] = {"the number of shards": self.shards, **self.content_facts}
        values |= {"the subject": run.subject_name, "the version of the subject": run.subject_version}
        values |= {words: setup[name] for name, words in _OF_SETUP.items()} | {"the commit": options.origin.revision}
        rows = [row for row in RUN_OPTIONS if row.name not in {"shard", "confirms", "most_iterations"}]
        values |= {row.flag: getattr(options, row.name) for row in rows}
        values |= {row.flag: getattr(options.scoring, row.name) for row in SCORING_OPTIONS}
        return {name: "none" if value in {None, ""} else f"{value}" for name, value in values.items()}

    def pages(self, *, cases: int, size: int) -> Iterator[Row]:
        """Yield iteration, number, verdict and JSON of its results in order; only some are in memory."""
        after = (0, 0)
        while page := self.read(after, cases, size):
            yield from page
            after = page[-1][0], page[-1][1]


class FoundShards(NamedTuple):
    """The runs of shards of some sources.

    Attributes:
        runs: the runs.
        again: the runs that asked suspect cases again, by the identity of the run whose cases these are.
        skipped: the tests of which a shard has no case, with its number.
        unstarted: why a test has no run in a shard, in words, by the same.
    """

    runs: tuple[Shard, ...] = ()
    again: tuple[tuple[tuple[str, str], Shard], ...] = ()
    skipped: frozenset[tuple[tuple[str, str], int]] = frozenset()
    unstarted: Mapping[tuple[tuple[str, str], int], str] = MappingProxyType({})

    def joined(self, other: FoundShards) -> FoundShards:
        """Return what both have."""
        return FoundShards(
            self.runs + other.runs,
            self.again + other.again,
            self.skipped | other.skipped,
            {**self.unstarted, **other.unstarted},
        )


def shards_in(store: Store, source: str) -> FoundShards:
    """Return the runs of the newest suite of each shard in a store; `source` is its name in messages."""
    with open_database(store) as database:
        found = FoundShards()
        for suite_id, shard in _newest_suites(database).items():
            found = found.joined(_shards_of_suite(database, store, source, suite_id, shard))
        return found


def _newest_suites(database: Database) -> dict[str, tuple[int, int]]:
    """Return the newest suite of each shard, with the shard.

    All have as many shards as the newest one, and ran on its commit: a store may come from a cache.
    """
    newest: dict[tuple[int, int], str] = {}
    expected: tuple[int, str] | None = None
    for run in Runs(database).newest_asked():
        shard, origin = run.options.shard, run.options.origin
        if shard is not None:
            expected = expected or (shard[1], origin.revision)
            if (shard[1], origin.revision) == expected:
                newest.setdefault(shard, origin.suite)
    return {suite: shard for shard, suite in newest.items()}


def _shards_of_suite(
    database: Database, store: Store, source: str, suite_id: str, shard: tuple[int, int]
) -> FoundShards:
    suite = Suites(database).get(suite_id)
    tests = {test.place: test for test in suite.tests} if suite else {}
    runs: list[Shard] = []
    again: list[tuple[tuple[str, str], Shard]] = []
    for run in Runs(database).of_suite(suite_id):
        if run.answers_of is None:
            found = _shard(database, store, source, run, tests)
            if run.options.confirms:
                again.append(((suite_id, run.options.confirms), found))
            elif run.options.shard == shard:
                runs.append(found)
    skipped = frozenset(((test.kind.name, test.name), shard[0]) for test in tests.values() if test.state == "skipped")
    return FoundShards(tuple(runs), tuple(again), skipped, dict(_unstarted(tests.values(), shard, source)))


def _shard(database: Database, store: Store, source: str, run: Run, tests: dict[int, SuiteTest]) -> Shard:
    runs = Runs(database)
    content, results = runs.content(run.id), runs.count(run.id).total()
    read, test = partial(_read, store, run.id), tests.get(run.options.origin.place)
    return Shard(source, run, content, content_facts(content), results, read, test)


def _read(store: Store, run_id: str, after: tuple[int, int], cases: int, size: int) -> list[Row]:
    # A thousand shards would be too many open files.
    with open_database(store) as database:
        return Runs(database).stored_page(run_id, after=after, cases=cases, size=size)


def _unstarted(
    tests: Collection[SuiteTest], shard: tuple[int, int], source: str
) -> Iterator[tuple[tuple[tuple[str, str], int], str]]:
    for test in tests:
        if test.state in {"due", "canceled"}:
            state = "never started" if test.state == "due" else "was canceled before it started"
            key = (test.kind.name, test.name), shard[0]
            yield key, f"shard {shard[0]}/{shard[1]} of test {test.name} {state} in {source}"


def content_facts(content: RunContent) -> dict[str, object]:
    """Return what a run has stored of its test: a hash of it, and of files who answers and how they are read."""
    if content.kind is not ContentKind.FILE:
        return hash_facts(hash_of(content.data))
    source = orjson.loads(content.data)
    return {
        "the content of the file": str(source["digest"])[:_DIGEST_CHARS],
        "the settings of the agent": one_line(orjson.dumps(source["subject"]).decode(), chars=_VALUE_CHARS),
        "how the file is read": one_line(orjson.dumps(source["reading"]).decode(), chars=_VALUE_CHARS),
    }


def hash_facts(digest: bytes) -> dict[str, object]:
    """Return what identifies the content of a test that is not a file, by its SHA-256."""
    return {"the content of the test": digest.hex()[:_DIGEST_CHARS]}


def numbers_with_cases(project: Project, shard: Shard) -> Collection[int]:
    """Return the numbers of the shards of a test that have cases; all if the test cannot be read here."""
    evaluation = _evaluation_of(project, shard)
    if evaluation is None:
        return range(1, shard.shards + 1)
    cases = select_cases(evaluation, replace(shard.run.options, shard=None))
    return {shard_of(evaluation.name, case.number, shard.shards) for case in cases}


def _evaluation_of(project: Project, shard: Shard) -> Evaluation | None:
    try:
        if shard.content.kind is ContentKind.DEFINITION:
            return read_evaluation(shard.content.data, shard.run.definition)
        recorded = run_file_of(shard.content)
        return None if recorded is None else read_run_file(project.root, recorded, shard.run.definition)
    except EvalmetaError:
        return None
