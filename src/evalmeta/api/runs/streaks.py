"""Since when cases do not pass: the runs in a row in which they did not, and the run before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalmeta.model.changes import Moment, Onset
from evalmeta.model.run import Verdict
from evalmeta.model.statistics import CaseCounts
from evalmeta.store.case_states import contents_of, counts_of_cases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.api.runs.compared_states import ComparedStates
    from evalmeta.model.statistics import RunCounts
    from evalmeta.store.database import Database
    from evalmeta.store.run_lists import ListedRun


@dataclass(frozen=True, slots=True)
class Streak:
    """The runs in a row in which a case did not pass, as in the newest one.

    A run that did not judge the case says nothing about runs that did, and is left out between them.

    Attributes:
        runs: the runs that failed the case, or those that ended in errors or were undecided, the oldest first.
        before: the run before them that judged the case; None if there is none whose cases can be compared.
        follows_base: whether no run after the base can have judged the case before them.
        failed: the number of runs that failed the case since it passed.
        again: the answers of all runs since it passed, except the newest.
    """

    runs: tuple[ListedRun, ...]
    before: ListedRun | None
    follows_base: bool
    failed: int
    again: CaseCounts | None


def read_streaks(database: Database, test: ComparedStates) -> dict[int, Streak]:
    """Return in which runs in a row the cases did not pass that do not pass now, by number."""
    passed = {case.number for case in test.before.cases if case.passed}
    failing = (case.number for case in test.after.cases if not case.passed)
    worse = {number for number in failing if number in passed or not test.has_numbers}
    if not worse or test.newest.org_url:
        return {}
    runs = (*test.judged.values(), test.base, *test.base_parts, *test.since, *test.parts)
    known = {run.id: run for run in runs if run and not run.org_url and run.branch in {"", test.newest.branch}}
    contents = contents_of(database, [*known])
    # Where the content was another one, a number may have been another case.
    same = [run for run in known.values() if contents[run.id] == contents[test.newest.id]]
    same.sort(key=lambda run: run.started)
    counts = {run.id: counts_of_cases(database, run.id, worse) for run in same}
    again = {run.id: [counts_of_cases(database, more.id, worse) for more in test.again.get(run.id, ())] for run in same}
    return {number: streak for number in worse if (streak := _streak(test, number, same, counts, again))}


def _streak(
    test: ComparedStates,
    number: int,
    runs: Sequence[ListedRun],
    counts: Mapping[str, Mapping[int, RunCounts]],
    again: Mapping[str, Sequence[Mapping[int, RunCounts]]],
) -> Streak | None:
    rows = [run for run in runs if number in counts[run.id]]
    start = len(rows)
    while start and not counts[rows[start - 1].id][number].passed:
        start -= 1
    not_passed = rows[start:]
    if not not_passed:
        return None
    kinds = [_kind(counts[run.id][number]) for run in not_passed]
    alike: list[ListedRun] = []
    before = rows[start - 1] if start else None
    for run, kind in zip(reversed(not_passed), reversed(kinds), strict=True):
        if kind is kinds[-1]:
            alike.append(run)
        elif kind is Verdict.FAILURE:
            before = run
            break
    answers = [counts[run.id][number] for run in not_passed[:-1]]
    answers += [known[number] for run in not_passed for known in again[run.id] if number in known]
    asked = CaseCounts.of_runs(number, f"{number}", tuple(answers)) if answers else None
    follows_base = before is None and _follows_base(test, alike[-1], rows)
    return Streak(tuple(reversed(alike)), before, follows_base, kinds.count(Verdict.FAILURE), asked)


def _kind(counts: RunCounts) -> Verdict:
    """Return how a case that did not pass in a run ended there."""
    if counts.errors > counts.decided:
        return Verdict.ERROR
    return Verdict.FAILURE if counts.decided else Verdict.UNDECIDED


def _follows_base(test: ComparedStates, first: ListedRun, rows: Sequence[ListedRun]) -> bool:
    """Return whether all runs between the base and a run are among those whose results were looked at."""
    known = {run.id for run in rows}
    between = [run for run in test.since if run.started < first.started]
    return test.base is not None and first.started > test.base.started and known.issuperset(run.id for run in between)


def onset_of(test: ComparedStates, streak: Streak | None, number: int | None) -> Onset | None:
    """Return since when a case does not pass; None without a streak. `number` is the case's number in the base."""
    if streak is None:
        return None
    before = streak.before
    if streak.follows_base:
        # The numbers of its cases may be others.
        before = test.base if number is None else test.judged.get(number, test.base)
    return Onset(moment_of(streak.runs[0]), moment_of(before) if before else None, len(streak.runs))


def moment_of(run: ListedRun) -> Moment:
    """Return a run with its commit."""
    return Moment.of(run.id, run.started, run.options.origin, org_url=run.org_url)
