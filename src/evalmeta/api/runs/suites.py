"""The suite of a command: its tests, saved before the first of them starts, and those that can still start later."""

from __future__ import annotations

import time
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from evalmeta.api.agent_tests import list_tests
from evalmeta.api.runs.changes import SuiteChanged, refuse_other_agent
from evalmeta.errors import EvalmetaError, NotFound, Suggestion
from evalmeta.formats.document import reading_from
from evalmeta.formats.files import digest_of
from evalmeta.protocol.json_fields import object_at, text
from evalmeta.report.text import and_more, count
from evalmeta.store.components import Components
from evalmeta.store.database import Database, open_database
from evalmeta.store.runs import Runs
from evalmeta.store.suites import State, Suite, Suites, SuiteTest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalmeta.api.runs.org import RunOrg
    from evalmeta.model.run import Run

SHOWN_TESTS = 10
"""The number of tests that messages name."""


class SuiteIncomplete(EvalmetaError):
    """Tests of a suite have no run."""


def begin_suite(org: RunOrg, tests: Sequence[SuiteTest]) -> list[SuiteTest]:
    """Save the tests of a command as a suite before the first of them starts, and return them with their places."""
    placed = [_placed(org, place, test) for place, test in enumerate(tests, 1)]
    with open_database(org.project.store) as database:
        if org.other is None:
            placed = [replace(test, version=_version_here(org, database, test) or "") for test in placed]
        url, name = (org.other.login.url, org.other.login.name) if org.other else ("", "")
        Suites(database).keep(Suite(org.origin.suite, url, name, time.time(), tuple(placed)))
    return placed


def _placed(org: RunOrg, place: int, test: SuiteTest) -> SuiteTest:
    return replace(test, options=replace(test.options, origin=org.origin._replace(place=place)))


def _version_here(org: RunOrg, database: Database, test: SuiteTest) -> str | None:
    """Return a hash of a test's file, or of its definition in the project's own org; None if it is gone."""
    if test.file is not None:
        try:
            return digest_of(org.project.root / text(test.file, "path"), reading_from(object_at(test.file, "reading")))
        except NotFound:
            return None
    content = Components(database).content(test.kind.name, test.name)
    return None if content is None else sha256(content).hexdigest()


async def startable(
    org: RunOrg, tests: Sequence[SuiteTest], runs: Iterable[Run], *, ignore_changes: bool, mixed: bool
) -> tuple[list[SuiteTest], list[EvalmetaError]]:
    """Return which tests of a suite that never started can start now, and why others cannot.

    A test cannot start if its file or definition is gone, or has changed since the suite began unless
    `ignore_changes` is set. None can if another agent would answer than in the `runs` of the suite, unless their
    answers may be `mixed`, or if something that one of them needs is missing.
    """
    versions = await _versions_now(org, tests)
    gone = [test for test in tests if versions[test.key] is None]
    changed = [test for test in tests if versions[test.key] not in {None, test.version} and not ignore_changes]
    errors: list[EvalmetaError] = [SuiteChanged(names(changed), names(gone))] if changed or gone else []
    ready = [test for test in tests if test not in changed and test not in gone]
    try:
        if ready and not mixed and org.other is None:
            _refuse_other_agents(org, runs)
        await org.check(ready)
    except EvalmetaError as error:
        return [], [*errors, error]
    return ready, errors


async def _versions_now(org: RunOrg, tests: Sequence[SuiteTest]) -> dict[str, str | None]:
    if org.other is None:
        with open_database(org.project.store) as database:
            return {test.key: _version_here(org, database, test) for test in tests}
    found = {
        f"{listed.type}:{listed.full_name}": listed.last_modified_date for listed in await list_tests(org.connection)
    }
    return {test.key: found.get(test.key) for test in tests}


def _refuse_other_agents(org: RunOrg, runs: Iterable[Run]) -> None:
    """Refuse to add answers to those of runs if another agent, or another version of it, would give them."""
    # Of the runs that the same agent answered, the first is named.
    asked = {(run.subject_name, run.options.setup): run for run in [*runs][::-1] if run.cases}
    with open_database(org.project.store) as database:
        for run in asked.values():
            refuse_other_agent(org.project, run, Runs(database).content(run.id), what="the suite of run")


def settle(org: RunOrg, tests: Sequence[SuiteTest], state: State) -> None:
    """Say why tests have no run."""
    with open_database(org.project.store) as database:
        Suites(database).settle(tests, state)


def why_incomplete(suite: Suite | None, run_ids: Sequence[str]) -> SuiteIncomplete | None:
    """Return the error of a suite with tests that have no run; None if it has none. `run_ids` are its runs."""
    due, canceled = (suite.of("due"), suite.of("canceled")) if suite else ((), ())
    parts = [f"{count(len(due), 'test')} never started: {names(due)}"] if due else []
    parts += [f"{count(len(canceled), 'test')} canceled before the start: {names(canceled)}"] if canceled else []
    if not parts:
        return None
    words = ("--job-id", run_ids[0]) if run_ids else ("--unfinished",)
    actions = [Suggestion("Start what is missing", "test", "resume", *words)] if due else []
    return SuiteIncomplete(f"the suite is not complete: {'; '.join(parts)}", actions=actions)


def names(tests: Sequence[SuiteTest]) -> str:
    """Return the names of tests for a message, as many as fit."""
    return and_more([test.name for test in tests], SHOWN_TESTS)
