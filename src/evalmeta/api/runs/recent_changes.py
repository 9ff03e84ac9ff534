"""What changed in all tests since an earlier state: which cases broke, why, by whose fault, and since which commit.

Only what the gate calls changed is listed.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.api.agent_tests import test_name_of
from evalmeta.api.runs.change_bases import Base, find_base
from evalmeta.api.runs.compared_states import ComparedStates, RunHistory, find_states, pair_states, read_histories
from evalmeta.api.runs.comparisons import find_run
from evalmeta.api.runs.streaks import Streak, moment_of, onset_of, read_streaks
from evalmeta.engine.comparison import ComparedTest, changes_of
from evalmeta.engine.gate import compare
from evalmeta.errors import NotFound
from evalmeta.model.case_faults import fault_of, needs_earlier_result
from evalmeta.model.changes import ChangedCase, Changes, Moment
from evalmeta.model.comparison import CaseComparison, Standing
from evalmeta.model.run import WORST_FIRST
from evalmeta.report.causes import causes_of, reason_of
from evalmeta.report.text import and_more, one_line
from evalmeta.store.case_states import results_of_cases
from evalmeta.store.database import open_database
from evalmeta.store.run_lists import distinct_values

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.comparison import Comparison
    from evalmeta.model.login import User
    from evalmeta.model.run import CaseResult
    from evalmeta.model.statistics import CaseCounts
    from evalmeta.package.project import Project
    from evalmeta.store.database import Database
    from evalmeta.store.run_lists import ListedRun

# Cases of which chance may be the reason, in words.
_SUSPECT: Final = {
    Standing.SUSPECT: "suspect",
    Standing.UNJUDGED: "no longer judged",
    Standing.FLAKY_NOW: "flaky now",
    Standing.BACK: "passed when asked again",
}
_BETTER: Final = frozenset({Standing.FIXED, Standing.MAYBE_FIXED})
_SHOWN_TESTS: Final = 5
_RANKS: Final = {verdict: rank for rank, verdict in enumerate(WORST_FIRST)}


def changes_since(
    project: Project,
    database: Database,
    base: str = "",
    *,
    test: str = "",
    branch: str = "",
    user: User | None = None,
    now: float | None = None,
) -> Changes:
    """Compare the newest state of all tests, or of one, with an earlier one; see `find_base` for `base`.

    With a `branch`, the newest state is that of this branch; NotFound if no run is of it.
    Without a base, it is the state before the day of the newest run, or else the previous run of each test.
    """
    if branch and branch not in (known := distinct_values(database, "branch", user=user)):
        actions = [f"Branches that are known: {and_more(known, _SHOWN_TESTS)}."] if known else []
        raise NotFound(f"no run of the branch {one_line(branch)!r} is known here", actions=actions)
    histories, gone = _with_files(project, read_histories(database, test=test, user=user, branch=branch))
    runs = [run for history in histories for run in (*history.whole, *history.parts) if branch in {"", run.branch}]
    newest = max((run.started for run in runs), default=None)
    if newest is None:
        return Changes("")
    chosen = find_base(project, database, base, newest=newest, now=time.time() if now is None else now, user=user)
    found = find_states(project, database, histories, chosen, user=user)
    if not base and not found[0]:
        previous = find_base(project, database, "previous", newest=newest, now=newest, user=user)
        if (others := find_states(project, database, histories, previous, user=user))[0]:
            chosen, found = previous, others
    tests, not_compared = found
    not_compared += ((history.name, "its file is gone") for history in gone)
    return _changes(project, database, chosen, tests, not_compared, newest)


def _with_files(project: Project, histories: Sequence[RunHistory]) -> tuple[Sequence[RunHistory], Sequence[RunHistory]]:
    """Return the histories of tests that are still here, and those of tests whose files were deleted or renamed.

    If no file is here, the folder has no tests, such as that of a server or an archive, and all tests are here.
    """
    files = {history.name: history.file for history in histories if history.file}
    gone = {name for name, file in files.items() if not (project.root / file).exists()}
    if project.is_archive or len(gone) == len(files):
        return histories, []
    return [known for known in histories if known.name not in gone], [
        known for known in histories if known.name in gone
    ]


def read_changes(project: Project, base: str = "", *, test: str = "", branch: str = "") -> Changes:
    """Return what `changes_since` finds in the project's store.

    `test` is the name of a test or the path of its file; it raises NotFound if other tests have run, but not this one.
    """
    with open_database(project.store) as database:
        known = distinct_values(database, "definition") if test else []
        name = _known_name(project, test, known) if known else test
        return changes_since(project, database, base, test=name, branch=branch)


def _known_name(project: Project, test: str, known: Sequence[str]) -> str:
    """Return the name of a test that has run."""
    name = test_name_of(project, Path(test))
    if found := next((known_name for known_name in (name, test) if known_name in known), None):
        return found
    near = get_close_matches(name, known, n=1) or get_close_matches(test, known, n=1)
    hint = f"Did you mean {near[0]}?" if near else f"Tests that have run: {and_more(known, _SHOWN_TESTS)}."
    raise NotFound(f"no run of the test {one_line(test)!r} is known here", actions=[hint])


def _changes(
    project: Project,
    database: Database,
    base: Base,
    found: Sequence[ComparedStates],
    not_compared: Sequence[tuple[str, str]],
    newest: float,
) -> Changes:
    streaks = [read_streaks(database, test) for test in found]
    both = [_in_both(test) for test in found]
    compared = [
        ComparedTest(
            test.name,
            ("", test.newest.id),
            before,
            after,
            again={number: streak.again for number, streak in known.items() if streak.again},
            failing_runs={number: max(0, streak.failed - 1) for number, streak in known.items()},
            subject=test.newest.subject,
        )
        for test, known, (before, after) in zip(found, streaks, both, strict=True)
    ]
    broken: list[ChangedCase] = []
    suspects: list[ChangedCase] = []
    fixed: list[ChangedCase] = []
    new_numbers = [_new_numbers(test) for test in found]
    new = [
        case
        for test, numbers in zip(found, new_numbers, strict=True)
        for case in _new_failures(project, database, test, numbers[: limits.VIEW_ROWS])
    ]
    still = otherwise = 0
    # Each test by itself: which others ran must not change its verdict.
    for test, known, comparison in zip(found, streaks, map(compare, compared), strict=True):
        # Most cases pass as before.
        cases = [case for case in comparison.cases if not _passes_still(case)]
        still += sum(map(_fails_still, cases))
        otherwise += sum(map(_fails_otherwise, cases))
        for case in _changed_cases(project, database, test, comparison, cases, known):
            standing = case.comparison.standing
            if standing in _BETTER or _recovered(case.comparison):
                fixed.append(case)
            elif standing in _SUSPECT:
                # An answer that passed afterwards shows that nobody is to blame.
                fault = None if standing is Standing.BACK else case.fault
                suspects.append(replace(case, fault=fault, badge=_SUSPECT[standing]))
            else:
                broken.append(case)
    runs = [run for test in found for run in (*test.since, *test.parts) if _is_after(run, test.base)]
    starts = [test.base.started for test in found if test.base]
    earlier = {test.base.options.origin.revision for test in found if test.base}
    commits = [commit for commit in _commits(runs) if commit.revision not in earlier]
    return Changes(
        base.label,
        max(starts, default=None),
        newest,
        tuple(commits),
        sum(not run.options.origin.revision for run in runs),
        causes_of(broken),
        causes_of(suspects),
        tuple(fixed),
        tuple(new),
        sum(map(len, new_numbers)),
        still,
        otherwise,
        tuple(test.name for test in found),
        tuple(not_compared),
        branches=tuple(Counter(test.newest.branch for test in found).most_common()),
    )


def _in_both(test: ComparedStates) -> tuple[Sequence[CaseCounts], Sequence[CaseCounts]]:
    """Return the cases before and now; if they are known by their numbers, only those that are in both."""
    if not test.has_numbers:
        return test.before.cases, test.after.cases
    before, after = ({case.number for case in known.cases} for known in (test.before, test.after))
    if before == after:
        return test.before.cases, test.after.cases
    kept = before & after
    old, new = ([case for case in known.cases if case.number in kept] for known in (test.before, test.after))
    return old, new


def _new_numbers(test: ComparedStates) -> list[int]:
    """Return the numbers of the cases that do not pass, were never judged, and are not as before."""
    return [
        new.number
        for old, new in pair_states(test.before, test.after, has_numbers=test.has_numbers)
        if not (new.passes or new.quarantined)
        and (old is None or (old.passes is None and not old.quarantined and not _is_alike(old, new)))
    ]


def _new_failures(
    project: Project, database: Database, test: ComparedStates, numbers: Collection[int]
) -> Iterator[ChangedCase]:
    """Yield cases that do not pass and were never judged before."""
    before = moment_of(test.base) if test.base else None
    for number, (run, result) in _results(project, database, (test.newest, *test.parts), numbers).items():
        compared = CaseComparison(Standing.NEW, number, result.utterance, None, None)
        yield ChangedCase(test.name, compared, moment_of(run), before, result, reason_of(result))


def _is_after(run: ListedRun, base: ListedRun | None) -> bool:
    return base is None or run.started > base.started


def _commits(runs: Iterable[ListedRun]) -> list[Moment]:
    first: dict[str, ListedRun] = {}
    for run in sorted(runs, key=lambda run: run.started):
        if run.options.origin.revision:
            first.setdefault(run.options.origin.revision, run)
    return [moment_of(run) for run in first.values()]


def _passes_still(case: CaseComparison) -> bool:
    """Return whether a case passes as before, and did not end in errors before."""
    return case.standing is Standing.STILL_PASSING and case.before is not None and not case.before.errors


def _fails_still(case: CaseComparison) -> bool:
    if case.standing is Standing.STILL_FAILING:
        return True
    return bool(case.before and case.after and _is_alike(case.before, case.after))


def _fails_otherwise(case: CaseComparison) -> bool:
    """Return whether a case failed before, and now is not judged or ends in an error."""
    before, after = case.before, case.after
    return bool(before and after and before.passes is False and before.is_judged and not after.is_judged)


def _is_alike(before: CaseCounts, after: CaseCounts) -> bool:
    """Return whether a case ended in errors before and now, or was undecided before and now."""
    if before.has_mostly_errors or after.has_mostly_errors:
        return before.has_mostly_errors and after.has_mostly_errors
    return not (before.decided or after.decided)


def _recovered(case: CaseComparison) -> bool:
    """Return whether a case ended in errors before, and passes."""
    before, after = case.before, case.after
    return bool(before and after and before.has_mostly_errors and after.passes and not after.has_mostly_errors)


def _changed_cases(
    project: Project,
    database: Database,
    test: ComparedStates,
    comparison: Comparison,
    cases: Iterable[CaseComparison],
    streaks: Mapping[int, Streak],
) -> Iterator[ChangedCase]:
    changed = {case.number: case for case in cases if _is_changed(case)}
    if not changed:
        return
    parts = {part.what for part in changes_of(comparison.cases, test.before, test.after).parts}
    if test.base and test.base.subject != test.newest.subject:
        parts.add("agent")
    results = _results(project, database, (test.newest, *test.parts), changed)
    judged = [changed[number] for number, (_, result) in results.items() if needs_earlier_result(result)]
    earlier_numbers = {case.before.number: case.number for case in judged if case.before}
    earlier = _results(project, database, (test.base, *test.base_parts), earlier_numbers) if test.base else {}
    before = {earlier_numbers[number]: result for number, (_, result) in earlier.items()}
    for number, (run, result) in results.items():
        case = changed[number]
        shown = ChangedCase(test.name, case, moment_of(run), moment_of(test.base) if test.base else None, result)
        if result.is_quarantined:
            continue
        if case.standing in _BETTER or _recovered(case):
            yield shown
            continue
        fault, badge = fault_of(case, before.get(number), result, parts)
        onset = onset_of(test, streaks.get(number), case.before.number if case.before else None)
        yield replace(shown, reason=reason_of(result), fault=fault, badge=badge, onset=onset)


def _results(
    project: Project, database: Database, runs: Sequence[ListedRun], numbers: Collection[int]
) -> dict[int, tuple[ListedRun, CaseResult]]:
    """Return the newest result of each case with its run: the first that did not pass, if there are several."""
    newest: dict[int, tuple[ListedRun, CaseResult]] = {}
    for run in runs:
        is_own = not run.org_url
        remote = () if is_own else find_run(project, run.id, org_url=run.org_url).cases
        own: dict[int, CaseResult] = {}
        for case in results_of_cases(database, run.id, numbers) if is_own else remote:
            if case.number not in numbers:
                continue
            known = own.get(case.number)
            if known is None or _RANKS[case.verdict] < _RANKS[known.verdict]:
                own[case.number] = case
        newest |= {number: (run, case) for number, case in own.items()}
    return newest


def _is_changed(case: CaseComparison) -> bool:
    standing = case.standing
    if standing in _SUSPECT or standing in _BETTER or standing is Standing.BROKEN:
        return True
    return case.is_lost or _recovered(case)
