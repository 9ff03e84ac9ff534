"""Suites: the tests of a command as they were saved before the first of them started, and the runs that they have."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import orjson

from evalmeta.model.registry import EVALUATION_DEFINITION, MetadataType, metadata_type
from evalmeta.protocol.runs import read_options, write_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run_options import RunOptions
    from evalmeta.store.database import Database
    from evalmeta.store.sql import Row

State = Literal["due", "started", "skipped", "canceled"]

_TESTS: Final = "SELECT place, type, name, version, file, options, state FROM suite_test WHERE suite = ? ORDER BY place"


@dataclass(frozen=True, slots=True)
class SuiteTest:
    """A test of a suite, and all that starting a run of it requires.

    Attributes:
        options: the options of its run, whose origin has the suite and the place of the test in it.
        version: a text that changes when the test's content does.
        file: what starting a run of a file requires; None for a deployed definition.
        state: `due` until it has a run; `skipped` if none of its cases is selected, `canceled` if it shall not start.
    """

    kind: MetadataType
    name: str
    options: RunOptions
    version: str = ""
    file: JsonObject | None = None
    state: State = "due"

    @property
    def key(self) -> str:
        """Return `Type:FullName`, which is unique in a suite."""
        return f"{self.kind.name}:{self.name}"

    @property
    def place(self) -> int:
        """Return its place in the suite; the first is 1."""
        return self.options.origin.place


@dataclass(frozen=True, slots=True)
class Suite:
    """The tests of a command, in order.

    Attributes:
        org_url: the address of the org; empty for the project's own.
        org_name: the name of the org when the suite began; empty for the project's own.
        created: seconds since the epoch.
    """

    id: str
    org_url: str
    org_name: str
    created: float
    tests: tuple[SuiteTest, ...]

    def of(self, state: State) -> tuple[SuiteTest, ...]:
        """Return the tests in a state."""
        return tuple(test for test in self.tests if test.state == state)


class Suites:
    """The suites of a project."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, suite: Suite) -> None:
        """Save a new suite with all its tests, or nothing."""
        with self._database.transaction():
            self.add(suite)

    def add(self, suite: Suite) -> None:
        """Save a new suite; call it inside a transaction."""
        common = write_options(suite.tests[0].options)
        rows = [
            (suite.id, test.place, test.kind.name, test.name, test.version, *_contents(test, common), test.state)
            for test in suite.tests
        ]
        head = (suite.id, suite.org_url, suite.org_name, suite.created, orjson.dumps(common))
        self._database.execute("INSERT INTO suite VALUES (?, ?, ?, ?, ?)", head)
        self._database.execute_many("INSERT INTO suite_test VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def get(self, suite_id: str) -> Suite | None:
        """Return a suite; None if it was not saved."""
        sql = "SELECT id, org_url, org_name, created_at, options FROM suite WHERE id = ?"
        for known_id, org_url, org_name, created, options in self._database.query(sql, (suite_id,)):
            common: JsonObject = orjson.loads(options)
            tests = tuple(_test(row, common) for row in self._database.query(_TESTS, (suite_id,)))
            return Suite(known_id, org_url, org_name, created, tests)
        return None

    def settle(self, tests: Sequence[SuiteTest], state: State) -> None:
        """Say why tests have no run. A suite of which every test was skipped is forgotten."""
        suite_ids = {test.options.origin.suite for test in tests}
        with self._database.transaction():
            self._database.execute_many(
                "UPDATE suite_test SET state = ? WHERE suite = ? AND place = ? AND state = 'due'",
                [(state, test.options.origin.suite, test.place) for test in tests],
            )
            self._database.execute_many(
                """
                DELETE FROM suite WHERE id = ?1
                  AND NOT EXISTS (SELECT 1 FROM suite_test WHERE suite = ?1 AND state <> 'skipped')
                """,
                [(suite_id,) for suite_id in suite_ids],
            )

    def unfinished(self) -> list[str]:
        """Return the suites with tests that are due, the oldest first."""
        sql = """
            SELECT id FROM suite WHERE id IN (SELECT suite FROM suite_test WHERE state = 'due') ORDER BY created_at, id
        """
        return [suite_id for (suite_id,) in self._database.query(sql)]

    def latest(self, *, org_url: str | None = None) -> tuple[str, float] | None:
        """Return the newest suite of an org, or of all, and when it began; None if there is none."""
        sql = """
            SELECT id, created_at FROM suite WHERE org_url = ?1 OR ?1 IS NULL ORDER BY created_at DESC, id DESC LIMIT 1
        """
        return next(iter(self._database.query(sql, (org_url,))), None)


def mark_started(database: Database, options: RunOptions) -> None:
    """Say that a test of a suite has a run; call it in the transaction that saves the run."""
    sql = "UPDATE suite_test SET state = 'started' WHERE suite = ? AND place = ?"
    database.execute(sql, (options.origin.suite, options.origin.place))


def _contents(test: SuiteTest, common: JsonObject) -> tuple[bytes | None, bytes]:
    own = {name: value for name, value in write_options(test.options).items() if common.get(name) != value}
    return None if test.file is None else orjson.dumps(test.file), orjson.dumps(own)


def _test(row: Row, common: JsonObject) -> SuiteTest:
    place, kind, name, version, file, options, state = row
    read = read_options({**common, **orjson.loads(options)})
    read = replace(read, origin=read.origin._replace(place=place))
    known = metadata_type(kind) or EVALUATION_DEFINITION
    return SuiteTest(known, name, read, version, None if file is None else orjson.loads(file), state)
