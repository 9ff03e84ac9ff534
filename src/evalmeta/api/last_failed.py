"""The cases of tests that failed when they were last run, as `evalmeta test run --last-failed` runs them again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.api.comparisons import find_run
from evalmeta.api.org_targets import address_of
from evalmeta.api.run_location import is_elsewhere
from evalmeta.api.run_selection import evaluations_of, failing_cases
from evalmeta.model.evaluation import CaseList
from evalmeta.model.registry import type_of_run
from evalmeta.model.run import RunStatus
from evalmeta.report.details import all_utterances
from evalmeta.report.text import count, number_ranges
from evalmeta.store.database import open_database
from evalmeta.store.remote_runs import newest_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.api.agent_tests import AgentTest
    from evalmeta.api.org_targets import Target
    from evalmeta.client.connection import Connection
    from evalmeta.model.evaluation import Case
    from evalmeta.model.run import Run
    from evalmeta.package.project import Project


class LastFailed(NamedTuple):
    """Which cases to run again.

    Attributes:
        tests: the tests with cases that failed, and those that never ran.
        lists: the cases of each of these tests.
        notes: what users must know about the choice, in sentences.
    """

    tests: tuple[AgentTest, ...]
    lists: tuple[CaseList, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _LastResults:
    """The utterances of the cases of a test that failed when they were last run, by number; and where it was."""

    failed: dict[int, str]
    latest: Run | None
    notes: list[str]


async def last_failed(
    connection: Connection, project: Project, tests: Sequence[AgentTest], *, target: Target | None
) -> LastFailed:
    """Return the cases of tests whose latest result in an org fails their run, and all cases of tests that never ran.

    The latest results are those of the latest run that is over; for cases that it left out, those of earlier runs, back
    to the latest complete run of all cases.

    Raises:
        OrgError: the org cannot be reached or refuses a call.
        StoreError: the project's database cannot be used.
    """
    org_url = address_of(target) if is_elsewhere(project, target) else ""
    results = {test.key: _last_results(project, test, org_url) for test in tests}
    new = [test for test in tests if results[test.key].latest is None]
    failed = [test for test in tests if results[test.key].failed]
    evaluations = await evaluations_of(connection, failed)
    lists, notes = [CaseList(test.key, None) for test in new], _summary(tests, new, failed)
    for test in failed:
        found, changes = _present(test, results[test.key].failed, evaluations[test.key].cases)
        lists.append(CaseList(test.key, found))
        notes += [*results[test.key].notes, *changes]
    chosen = {items.name for items in lists if items.numbers is None or items.numbers}
    return LastFailed(tuple(test for test in tests if test.key in chosen), tuple(lists), tuple(notes))


def _last_results(project: Project, test: AgentTest, org_url: str) -> _LastResults:
    found = _LastResults({}, None, [])
    known: set[int] = set()
    with open_database(project.state_dir) as database:
        runs = newest_runs(database, definition=test.full_name, org_url=org_url)
    for each in (each for each in runs if type_of_run(each.id) == test.type):
        if not each.status.is_over:
            found.notes.append(f"Run {each.id} of {test.full_name} is not finished; its results do not count.")
            continue
        run = find_run(project, each.id, org_url=org_url)
        found.latest = found.latest or run
        failing = failing_cases(run)
        for case in run.cases:
            if case.number in failing and case.number not in known:
                found.failed.setdefault(case.number, all_utterances(case))
        known.update(case.number for case in run.cases)
        if run.status is RunStatus.COMPLETED and not run.options.is_partial:
            break
    return found


def _present(test: AgentTest, failed: dict[int, str], cases: Iterable[Case]) -> tuple[frozenset[int], list[str]]:
    """Return the numbers that the failed cases have now, and what changed; cases are known by their utterances."""
    now = {case.number: " / ".join(turn.utterance for turn in case.turns) for case in cases}
    moved = {number for number, text in failed.items() if not _has_begun_with(now.get(number), text)}
    places = {text: number for number, text in now.items() if text in {failed[each] for each in moved}}
    found = {number: places.get(text, number) if number in moved else number for number, text in failed.items()}
    removed = sorted(number for number, place in found.items() if place not in now)
    changed = sorted(number for number in moved if failed[number] not in places and number in now)
    return frozenset(found.values()) & now.keys(), [*_changes(test, removed, changed)]


def _has_begun_with(utterances: str | None, asked: str) -> bool:
    """Return whether a case asked this; one that ended in an error did not send its last turns."""
    return utterances is not None and f"{utterances} / ".startswith(f"{asked} / ")


def _changes(test: AgentTest, removed: Sequence[int], changed: Sequence[int]) -> Iterator[str]:
    for numbers, what in ((removed, "removed"), (changed, "changed")):
        if numbers:
            verb = "was" if len(numbers) == 1 else "were"
            cases = "Case" if len(numbers) == 1 else "Cases"
            yield f"{cases} {number_ranges(numbers)} of {test.full_name} {verb} {what} since the last run."


def _summary(tests: Sequence[AgentTest], new: Sequence[AgentTest], failed: Sequence[AgentTest]) -> list[str]:
    passed = len(tests) - len(new) - len(failed)
    notes = [f"Not run again, because nothing failed in their last runs: {count(passed, 'test')}."] if passed else []
    if new:
        names = ", ".join(test.full_name for test in new)
        notes.append(f"Not run before, so all cases run: {names}.")
    return notes
