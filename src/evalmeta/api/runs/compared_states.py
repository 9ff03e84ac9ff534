"""Which states of tests are compared: what their runs say now, and what they said before.

The newest state of a test is its newest run of all cases, and over it the results of later runs of some cases on the
same branch. A case that the earlier state did not judge is as the last run said that judged it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.api.runs.comparisons import find_run, known_test, same_test
from evalmeta.engine.comparison import pair_cases
from evalmeta.model.comparison import KnownTest
from evalmeta.model.fingerprints import options_of
from evalmeta.model.statistics import CaseCounts
from evalmeta.store.case_states import contents_of, counts_of_cases, judging_runs
from evalmeta.store.run_lists import ListedRun, RunFilter, newest_runs, recent_runs, with_counts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from evalmeta.api.runs.change_bases import Base
    from evalmeta.model.login import User
    from evalmeta.model.statistics import RunCounts
    from evalmeta.package.project import Project
    from evalmeta.store.database import Database

_MOVED: Final = "its cases had other numbers in the last run of all cases"
_FEW: Final = 2
_MANY: Final = 20


@dataclass(frozen=True, slots=True)
class RunHistory:
    """The runs of a test that are over, the oldest first: of all cases, of some, and those that asked again."""

    name: str
    whole: list[ListedRun]
    parts: list[ListedRun]
    again: dict[str, list[ListedRun]]
    is_cut: bool  # whether there are older runs
    missing: str = "only some of its cases ran"  # why there is no run of all cases

    @property
    def file(self) -> str:
        """Return the path of the file that its newest run read; empty if that was not of a file."""
        newest = max((*self.whole, *self.parts), key=lambda run: run.started, default=None)
        return newest.file if newest else ""


@dataclass(frozen=True, slots=True)
class ComparedStates:
    """The two states of a test that are compared.

    Attributes:
        base: the run to compare with; None for a baseline.
        base_parts: the runs of some cases that belong to the state of the base; `parts` to the newest state.
        since: the runs of all cases after the base, the newest last.
        before: what is known of the test before, and `after` now.
        has_numbers: whether a case has the same number in all of these runs, because their content is the same.
        again: the runs that asked suspect cases of others again, by the ids of these.
        judged: the runs before the base that judged cases that the base did not judge, by the numbers of these.
        moved: the runs of some cases that are left out, because the numbers of their cases were others.
    """

    name: str
    base: ListedRun | None
    newest: ListedRun
    base_parts: list[ListedRun]
    parts: list[ListedRun]
    since: list[ListedRun]
    before: KnownTest
    after: KnownTest
    has_numbers: bool
    again: Mapping[str, Sequence[ListedRun]]
    judged: Mapping[int, ListedRun] = field(default_factory=dict)
    moved: Sequence[ListedRun] = ()


def read_histories(database: Database, *, test: str, user: User | None, branch: str = "") -> list[RunHistory]:
    """Return the newest runs of all tests, or of one, by test; up to the newest one of a branch, if it is given."""
    most = limits.CHANGES_RUNS
    recent = recent_runs(database, of_each=most, test=test, user=user, counted=False)
    histories = []
    for name, runs in recent.items():
        history = _history(name, runs, is_cut=len(runs) >= most)
        if history.is_cut and len(history.whole) < _FEW:
            # Most of them only asked some cases, or asked again.
            more = newest_runs(database, RunFilter(test=name, user=user), limit=_MANY * most, counted=False)
            history = _history(name, [*more][::-1], is_cut=True)
        histories.append(_up_to_branch(database, history, branch, user) if branch else history)
    return histories


def _up_to_branch(database: Database, history: RunHistory, branch: str, user: User | None) -> RunHistory:
    """Return the runs of a test up to the newest one of all cases on a branch, and later runs of some cases."""
    own = [run for run in history.whole if run.branch == branch]
    if own:
        return replace(history, whole=[run for run in history.whole if run.started <= own[-1].started])
    if history.is_cut:
        wanted = RunFilter(test=history.name, branch=branch, user=user)
        on_branch = [*newest_runs(database, wanted, limit=_MANY * limits.CHANGES_RUNS, counted=False)]
        older = _history(history.name, on_branch[::-1])
        if older.whole:
            until = RunFilter(test=history.name, until=older.whole[-1].started, user=user)
            before = newest_runs(database, until, limit=limits.CHANGES_RUNS, counted=False)
            runs = {run.id: run for run in (*on_branch, *before)}.values()
            return _history(history.name, sorted(runs, key=lambda run: (run.started, run.id)), is_cut=True)
    return replace(history, whole=[], missing=f"it has not run on the branch {branch}")


def _history(name: str, runs: Sequence[ListedRun], *, is_cut: bool = False) -> RunHistory:
    over = [run for run in runs if run.status.is_over and run.definition == name and run.answers_of is None]
    again = defaultdict[str, list[ListedRun]](list)
    for run in over:
        if run.confirms:
            again[run.confirms].append(run)
    own = [run for run in over if not run.confirms]
    whole, parts = ([run for run in own if run.is_whole is is_whole] for is_whole in (True, False))
    return RunHistory(name, whole, parts, again, is_cut)


def find_states(
    project: Project, database: Database, histories: Iterable[RunHistory], base: Base, *, user: User | None
) -> tuple[list[ComparedStates], list[tuple[str, str]]]:
    """Return the tests that have both states, and the others with the reason."""
    tests, others = [], []
    for history in histories:
        if not history.whole:
            others.append((history.name, history.missing))
            continue
        states = _states_of(project, database, history, base, user=user)
        if isinstance(states, str):
            others.append((history.name, states))
        else:
            tests.append(states)
            others += ((f"run {run.id} of {history.name}", _MOVED) for run in states.moved)
    return tests, others


def _states_of(
    project: Project, database: Database, history: RunHistory, base: Base, *, user: User | None
) -> ComparedStates | str:
    newest = history.whole[-1]
    if base.known is not None:
        known = same_test(history.name, base.known, project.root)
        if known is None:
            return base.missing
        parts, moved = _fitting_parts(project, database, history, newest)
        before, after = base.known[known], _known(project, newest, parts)
        return ComparedStates(
            history.name, None, newest, [], parts, [newest], before, after, False, history.again, moved=moved
        )
    whole = with_counts(database, history.whole) if base.needs_verdicts else history.whole
    recent, run = history, base.choose(whole)
    if run is None and history.is_cut:
        older = _older(database, history.name, min(base.until, whole[0].started), user)
        run = base.choose([*(with_counts(database, older) if base.needs_verdicts else older), newest])
    if run is None:
        return base.missing
    if history.is_cut and run.started < history.whole[0].started:
        wanted = RunFilter(test=history.name, since=run.started, user=user)
        history = _history(history.name, [*newest_runs(database, wanted, counted=False)][::-1])
    until = min(base.until, newest.started) if run.id != newest.id else base.until
    base_parts, _ = _fitting_parts(project, database, history, run, until=until)
    parts, moved = _fitting_parts(project, database, history, newest)
    if run.id == newest.id and len(parts) == len(base_parts):
        return "it has not run since then"
    by_number = states_by_number(database, [run, *base_parts], [newest, *parts])
    is_same = by_number is not None
    before, after = by_number or (_known(project, run, base_parts), _known(project, newest, parts))
    judged: dict[int, ListedRun] = {}
    earlier: list[ListedRun] = []
    if unjudged := _unjudged(before, after, has_numbers=is_same):
        earlier = _judging_runs(database, _runs_until(database, recent, [run, *base_parts][-1], user), run, unjudged)
    if earlier:
        if is_same:
            # Their content tells which cases they were in other runs.
            is_same = False
            before, after = _known(project, run, base_parts), _known(project, newest, parts)
        before, judged = _with_judgements(project, earlier, before, after)
    return ComparedStates(
        history.name,
        run,
        newest,
        base_parts,
        parts,
        [later for later in history.whole if later.started > run.started] or [newest],
        before,
        after,
        is_same,
        history.again,
        judged,
        moved,
    )


def _older(database: Database, name: str, until: float, user: User | None) -> list[ListedRun]:
    wanted = RunFilter(test=name, until=until, user=user)
    runs = newest_runs(database, wanted, limit=limits.CHANGES_RUNS, counted=False)
    return [run for run in runs if run.is_whole and not run.confirms and run.definition == name][::-1]


def _fitting_parts(
    project: Project, database: Database, history: RunHistory, whole: ListedRun, *, until: float = math.inf
) -> tuple[list[ListedRun], list[ListedRun]]:
    """Return the runs of some cases after a run of all cases, on the same branch, and those with other numbers."""
    parts = [part for part in history.parts if whole.started < part.started < until and part.branch == whole.branch]
    if not parts or _have_same_content(database, [whole, *parts]):
        return parts, []
    cases = known_test(find_run(project, whole.id, org_url=whole.org_url)).cases
    fitting: list[ListedRun] = []
    moved: list[ListedRun] = []
    for part in parts:
        own = known_test(find_run(project, part.id, org_url=part.org_url)).cases
        (fitting if _has_same_numbers(cases, own) else moved).append(part)
    return fitting, moved


def _have_same_content(database: Database, runs: Sequence[ListedRun]) -> bool:
    own = [run.id for run in runs if not run.org_url]
    return len(own) == len(runs) and len(set(contents_of(database, own).values())) == 1


def _has_same_numbers(whole: Sequence[CaseCounts], part: Sequence[CaseCounts]) -> bool:
    """Return whether the cases of a part have their numbers in the whole, or are new with new numbers."""
    known = {case.number for case in whole}
    pairs = [(old, new) for old, new in pair_cases(whole, part) if new]
    return all(new.number == old.number if old else new.number not in known for old, new in pairs)


def _known(project: Project, run: ListedRun, parts: Sequence[ListedRun]) -> KnownTest:
    """Return what is known of a test: the cases of a run, and over them those of later runs of some cases."""
    cases: dict[int, CaseCounts] = {}
    for part in (run, *parts):
        whole = known_test(find_run(project, part.id, org_url=part.org_url)).cases
        cases |= {case.number: case for case in whole}
    return _as_known(run, cases)


def states_by_number(
    database: Database, before: Sequence[ListedRun], after: Sequence[ListedRun]
) -> tuple[KnownTest, KnownTest] | None:
    """Return two states of a test without reading their results; only numbers name the cases.

    A state is a run of all cases, and over it later runs of some cases. None if a number may not mean the same case in
    all runs, or verdicts are not all that counts. New cases that pass are left out of the later state, because nothing
    is said of them.
    """
    runs = [*before, *after]
    if not (_have_same_content(database, runs) and all(run.is_plain for run in with_counts(database, runs))):
        return None
    earlier, later = _counts_of(database, before), _counts_of(database, after)
    old = {number: CaseCounts(number, f"{number}", *known) for number, known in earlier.items()}
    new: dict[int, CaseCounts] = {}
    for number, known in later.items():
        counts_before = earlier.get(number)
        if counts_before == known:
            new[number] = old[number]
        elif counts_before is not None or known.passed <= known.failed:
            new[number] = CaseCounts(number, f"{number}", *known)
    return _as_known(before[0], old), _as_known(after[0], new)


def _counts_of(database: Database, runs: Sequence[ListedRun]) -> dict[int, RunCounts]:
    counts: dict[int, RunCounts] = {}
    for part in runs:
        counts |= counts_of_cases(database, part.id)
    return counts


def _as_known(run: ListedRun, cases: Mapping[int, CaseCounts]) -> KnownTest:
    options = run.options
    return KnownTest(tuple(cases[number] for number in sorted(cases)), run.subject, options_of(options), options.setup)


def _runs_until(database: Database, history: RunHistory, last: ListedRun, user: User | None) -> list[ListedRun]:
    """Return the runs on the same branch up to one, the newest first."""
    older = _older(database, history.name, last.started, user) if history.is_cut else []
    runs = {run.id: run for run in (*older, *history.whole, *history.parts)}
    same = [run for run in runs.values() if run.started <= last.started and run.branch == last.branch]
    return sorted(same, key=lambda run: run.started, reverse=True)


def _judging_runs(
    database: Database, runs: Sequence[ListedRun], base: ListedRun, numbers: Collection[int]
) -> list[ListedRun]:
    """Return the runs that may have judged some cases of a run, without reading their results."""
    own = [run.id for run in runs if not run.org_url]
    contents = contents_of(database, [base.id, *own])
    content = None if base.org_url else contents.get(base.id)
    same = [run_id for run_id in own if contents.get(run_id) == content]
    others = [run_id for run_id in own if contents.get(run_id) != content]
    judging = judging_runs(database, same, numbers) | judging_runs(database, others)
    return [run for run in runs if run.org_url or run.id in judging]


def pair_states(
    before: KnownTest, after: KnownTest, *, has_numbers: bool
) -> Iterator[tuple[CaseCounts | None, CaseCounts]]:
    """Pair the cases of a test now with those before, None for a new case; see `ComparedStates` for `has_numbers`."""
    if not has_numbers:
        yield from ((old, new) for old, new in pair_cases(before.cases, after.cases) if new)
        return
    known = {case.number: case for case in before.cases}
    yield from ((known.get(new.number), new) for new in after.cases)


def _unjudged(before: KnownTest, after: KnownTest, *, has_numbers: bool) -> dict[int, CaseCounts]:
    """Return the earlier cases that were not judged, and do not pass now, by number."""
    if all(case.is_judged for case in before.cases):
        return {}
    return {
        old.number: old
        for old, new in pair_states(before, after, has_numbers=has_numbers)
        if old and not (old.is_judged or old.quarantined or (new.passes and new.is_judged))
    }


def _with_judgements(
    project: Project, runs: Sequence[ListedRun], before: KnownTest, after: KnownTest
) -> tuple[KnownTest, dict[int, ListedRun]]:
    """Return a test before, with unjudged cases as the last run said that judged them, and these runs by number."""
    cases, unjudged = {case.number: case for case in before.cases}, _unjudged(before, after, has_numbers=False)
    used: dict[int, ListedRun] = {}
    for run in runs:
        if not unjudged:
            break
        known = known_test(find_run(project, run.id, org_url=run.org_url)).cases
        judged = {
            case.number: replace(old, number=case.number)
            for old, case in pair_cases(known, unjudged.values())
            if old and case and old.is_judged
        }
        used |= dict.fromkeys(judged, run)
        cases |= judged
        unjudged = {number: case for number, case in unjudged.items() if number not in judged}
    return replace(before, cases=tuple(cases.values())), used
