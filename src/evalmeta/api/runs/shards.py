"""The runs of shards that other machines left: where they are, and what they must have in common."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.api.stores import find_store
from evalmeta.errors import EvalmetaError, NotFound, UsageError
from evalmeta.model.evaluation import select_cases
from evalmeta.model.registry import EVALUATION_DEFINITION, MetadataType, hash_of, type_of_run
from evalmeta.model.run import ContentKind, Run, RunContent
from evalmeta.model.run_options import RUN_OPTIONS, SCORING_OPTIONS
from evalmeta.model.store import Store
from evalmeta.org.run_files import read_run_file, run_file_of
from evalmeta.org.runs import read_evaluation
from evalmeta.package.files import shown
from evalmeta.package.trust import STATE_FOLDER
from evalmeta.report.text import one_line
from evalmeta.store.database import Database, open_database
from evalmeta.store.runs import Runs
from evalmeta.store.suites import Suites, SuiteTest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from evalmeta.model.evaluation import Evaluation
    from evalmeta.package.project import Project
    from evalmeta.store.sql import Row

_FILE: Final = "org.sqlite3"
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
        results: the number of its results.
        test: its test in the suite that the command saved; None if it saved none.
    """

    source: str
    store: Store
    run: Run
    content: RunContent
    results: int
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
        values: dict[str, object] = {"the number of shards": self.shards, **_content_facts(self.content)}
        values |= {"the subject": run.subject_name, "the version of the subject": run.subject_version}
        values |= {words: setup[name] for name, words in _OF_SETUP.items()} | {"the commit": options.origin.revision}
        rows = [row for row in RUN_OPTIONS if row.name not in {"shard", "confirms"}]
        values |= {row.flag: getattr(options, row.name) for row in rows}
        values |= {row.flag: getattr(options.scoring, row.name) for row in SCORING_OPTIONS}
        return {name: "none" if value in {None, ""} else f"{value}" for name, value in values.items()}

    def pages(self, *, cases: int, size: int) -> Iterator[Row]:
        """Yield iteration, number, verdict and JSON of its results in order; the store is only open between pages."""
        after = (0, 0)
        while True:
            with open_database(self.store) as database:
                page = Runs(database).stored_page(self.run.id, after=after, cases=cases, size=size)
            if not page:
                return
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


def find_shards(project: Project, words: Sequence[str]) -> FoundShards:
    """Return the runs of shards in what words name: stores, folders that have some, or stores as `find_store` does.

    Of each store, the newest suite of each shard is taken. Raise NotFound for a word that names none.
    """
    found, seen = FoundShards(), set[Path | str]()
    for word in words:
        before = len(found.runs) + len(found.unstarted)
        known = False
        for label, store in _stores_at(project, word):
            place = store.folder.resolve() if store.url is None else str(store.url)
            known = known or place in seen
            if place not in seen:
                seen.add(place)
                found = found.joined(_shards_in(store, label))
        if not known and len(found.runs) + len(found.unstarted) == before:
            raise NotFound(
                f"{word} has no run with --shard",
                actions=["Name the state folder of each shard, which is .evalmeta or that of EVALMETA_HOME."],
            )
    return found


def _stores_at(project: Project, word: str) -> Iterator[tuple[str, Store]]:
    path = Path(word)
    if path.is_dir():
        yield from ((shown(folder.absolute()), Store(folder.absolute())) for folder in _state_folders(path))
    elif path.exists():
        raise UsageError(
            f"{word} is a file, and shards are merged from stores",
            actions=["Name the state folder in which the shard ran: .evalmeta, or that of EVALMETA_HOME."],
        )
    elif "://" in word or word in {"local", "shared"}:
        yield word, find_store(project, word)
    else:
        raise NotFound(f"{word} cannot be found")


def _state_folders(folder: Path) -> Iterator[Path]:
    """Yield the state folders at or below a folder, in order; raise UsageError if it is too large to be searched."""
    for candidate in (folder, folder / STATE_FOLDER):
        if (candidate / _FILE).is_file():
            yield candidate
            return
    entries = 0
    for path, folders, files in os.walk(folder):
        entries += len(folders) + len(files)
        if entries > limits.MAX_SHARD_ENTRIES:
            raise UsageError(
                f"{folder} has more than {limits.MAX_SHARD_ENTRIES:,} files and folders",
                actions=["Name the folder of each shard."],
            )
        if _FILE in files:
            yield Path(path)
            folders.clear()
        depth = len(Path(path).relative_to(folder).parts)
        wanted = [name for name in folders if name == STATE_FOLDER or not name.startswith(".")]
        folders[:] = sorted(wanted) if depth < limits.MAX_SHARD_DEPTH else []


def _shards_in(store: Store, source: str) -> FoundShards:
    with open_database(store) as database:
        found = FoundShards()
        for suite_id, shard in _newest_suites(database).items():
            found = found.joined(_shards_of_suite(database, store, source, suite_id, shard))
        return found


def _newest_suites(database: Database) -> dict[str, tuple[int, int]]:
    """Return the newest suite of each shard, with the shard; all have as many shards as the newest one."""
    newest: dict[tuple[int, int], str] = {}
    for run in Runs(database).newest_asked():
        shard = run.options.shard
        if shard is not None and shard not in newest and all(shard[1] == known[1] for known in newest):
            newest[shard] = run.options.origin.suite
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
    return Shard(
        source, store, run, runs.content(run.id), runs.count(run.id).total(), tests.get(run.options.origin.place)
    )


def _unstarted(
    tests: Collection[SuiteTest], shard: tuple[int, int], source: str
) -> Iterator[tuple[tuple[tuple[str, str], int], str]]:
    for test in tests:
        if test.state in {"due", "canceled"}:
            state = "never started" if test.state == "due" else "was canceled before it started"
            key = (test.kind.name, test.name), shard[0]
            yield key, f"shard {shard[0]}/{shard[1]} of test {test.name} {state} in {source}"


def _content_facts(content: RunContent) -> dict[str, object]:
    """Return what a run has stored of its test: a hash of it, and of files who answers and how they are read."""
    if content.kind is not ContentKind.FILE:
        return {"the content of the test": hash_of(content.data).hex()[:_DIGEST_CHARS]}
    source = orjson.loads(content.data)
    return {
        "the content of the file": str(source["digest"])[:_DIGEST_CHARS],
        "the settings of the agent": one_line(orjson.dumps(source["subject"]).decode(), chars=_VALUE_CHARS),
        "how the file is read": one_line(orjson.dumps(source["reading"]).decode(), chars=_VALUE_CHARS),
    }


def has_cases(project: Project, shard: Shard, number: int) -> bool:
    """Return whether another shard of a test has cases, also if the test cannot be read here."""
    evaluation = _evaluation_of(project, shard)
    options = replace(shard.run.options, shard=(number, shard.shards))
    return evaluation is None or next(select_cases(evaluation, options), None) is not None


def _evaluation_of(project: Project, shard: Shard) -> Evaluation | None:
    try:
        if shard.content.kind is ContentKind.DEFINITION:
            return read_evaluation(shard.content.data, shard.run.definition)
        recorded = run_file_of(shard.content)
        return None if recorded is None else read_run_file(project.root, recorded, shard.run.definition)
    except EvalmetaError:
        return None
