"""Match the cases of a test before and now, and say how each changed and what changed in the test itself.

`gate` tests what is more than chance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING

from evalmeta.engine.significance import Table
from evalmeta.model.comparison import CaseComparison, Comparison, KnownTest, Standing
from evalmeta.model.fingerprints import ChangesOfTest, PartChange, compare_checks
from evalmeta.model.statistics import CaseCounts, RunCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    _Key = Callable[[CaseCounts], object]


@dataclass(frozen=True, slots=True)
class ComparedTest:
    """The results of one test before and now; `labels` are the names of the baseline and of the run.

    `partial` says whether the earlier run, and this run, only sent some of their cases: cases with numbers that this
    run did not send are ignored, and those that the earlier run did not send are new. By the numbers of cases, `again`
    has the answers to those that were asked again, and `failing_runs` in how many runs in a row, right before this one,
    a case failed all answers.
    """

    name: str
    labels: tuple[str, str]
    before: Sequence[CaseCounts]
    after: Sequence[CaseCounts]
    partial: tuple[bool, bool] = (False, False)
    again: Mapping[int, CaseCounts] = field(default_factory=dict)
    failing_runs: Mapping[int, int] = field(default_factory=dict)
    subject: str = ""


def match(test: ComparedTest) -> Comparison:
    """Return a test's cases before and now with their standings, which no statistics have changed yet.

    Cases in quarantine are left out.
    """
    after = test.after
    before, not_asked = _without_unsent(test.before, after, test.partial)
    cases = []
    for old, new in pair_cases(before, after):
        if (old and old.quarantined) or (new and new.quarantined):
            continue
        case = new or old
        number, utterance = (case.number, case.utterance) if case else (0, "")
        # The number of a removed case may be that of another case now.
        again = test.again.get(number) if new else None
        cases.append(CaseComparison(_standing(old, new), number, utterance, old, new, again=again))
    runs = max((len(case.runs) or 1 for case in before), default=1)
    return Comparison(test.name, *test.labels, tuple(cases), None, not_asked, is_uniform=_is_uniform(cases), runs=runs)


def _without_unsent(
    before: Sequence[CaseCounts], after: Sequence[CaseCounts], partial: tuple[bool, bool]
) -> tuple[Sequence[CaseCounts], tuple[int, int]]:
    """Return the baseline without the cases that a partial run did not send now, and how many each run did not send."""
    if not any(partial):
        return before, (0, 0)
    pairs = list(pair_cases(before, after))
    new = {now.number for old, now in pairs if now and not old} - {case.number for case in before}
    gone = {old.number for old, now in pairs if old and not now} - {case.number for case in after}
    gone = gone if partial[1] else set()
    kept = [case for case in before if case.number not in gone]
    return kept, (len(new) if partial[0] else 0, len(gone))


def _standing(before: CaseCounts | None, after: CaseCounts | None) -> Standing:
    if before is None or after is None:
        return Standing.NEW if before is None else Standing.GONE
    if after.has_mostly_errors:
        return Standing.ERROR
    if before.passed and not after.decided and after.undecided:
        return Standing.UNJUDGED
    if before.decided and after.decided:
        return _decided(before, after)
    has_error = any(not side.decided and side.errors for side in (before, after))
    return Standing.ERROR if has_error else Standing.UNDECIDED


def _decided(before: CaseCounts, after: CaseCounts) -> Standing:
    if not after.passed:
        return Standing.SUSPECT if before.passed else Standing.STILL_FAILING
    if after.failed and before.passed:
        return Standing.FLAKY if before.failed else Standing.FLAKY_NOW
    if before.passes:
        return Standing.STILL_PASSING
    return Standing.MAYBE_FIXED if after.passes else Standing.STILL_FAILING


def differs_within_a_run(cases: Iterable[CaseComparison]) -> bool:
    """Return whether some answers to a case passed and others failed in a run, those after asking again included."""
    return any(run.passed and run.failed for case in cases for run in _runs(case))


def _runs(case: CaseComparison) -> Iterator[RunCounts]:
    if case.before is not None:
        yield from case.before.by_run
    if case.after is not None:
        first, again = case.after.by_run[0], case.again
        yield first if again is None else RunCounts(first.passed + again.passed, first.failed + again.failed)


def _is_uniform(cases: Sequence[CaseComparison]) -> bool:
    """Return whether runs have several answers to a case, but these never differ: then a run counts as one answer."""
    sides = (side for case in cases for side in (case.before, case.after) if side is not None)
    # Without several runs or answers, each run has one answer to a case.
    several = (side for side in sides if side.runs or side.decided > 1)
    has_several = any(run.decided > 1 for side in several for run in side.by_run)
    return has_several and not differs_within_a_run(cases)


def tables_of(comparison: Comparison) -> list[Table | None]:
    """Return the observations of each case before and now; None for a case that was not decided on both sides.

    Iterations that are averaged are one observation, and so are those that never differ within a run.
    """
    return [_table(case, is_uniform=comparison.is_uniform) for case in comparison.cases]


def _table(case: CaseComparison, *, is_uniform: bool) -> Table | None:
    before, after = case.before, case.after
    if case.standing is Standing.ERROR or before is None or after is None or not (before.decided and after.decided):
        return None
    if not is_uniform and not (before.is_averaged or after.is_averaged):
        return Table(before.passed, before.failed, after.passed, after.failed)
    return Table(*before.observed_runs, *after.observed_runs)


def pair_cases(
    before: Iterable[CaseCounts], after: Iterable[CaseCounts]
) -> Iterator[tuple[CaseCounts | None, CaseCounts | None]]:
    """Pair the cases of two runs, each at most once.

    First those with the same number that asked the same, then those that asked the same, in order, and then those with
    the same label. At last, those with the same number of which one ended in an error before its last turn. The others
    are new (None before) or gone (None after): a case that asks something else is another case, even if it has the
    same number.
    """
    ordered, rest = (sorted(cases, key=attrgetter("number")) for cases in (after, before))
    if len(ordered) == len(rest) and all(map(_asks_the_same, rest, ordered)):
        yield from zip(rest, ordered, strict=True)
        return
    left, pairs = ordered, dict[int, "CaseCounts"]()
    keys: list[_Key] = [lambda case: (case.number, _asked(case)), _asked, lambda case: case.utterance]
    for key in (*keys, None):
        paired = _same_key(rest, left, key) if key else _unfinished(rest, left)
        gone = {case.number for case in paired.values()}
        rest = [case for case in rest if case.number not in gone]
        left = [case for case in left if case.number not in paired]
        pairs |= paired
    for case in ordered:
        yield pairs.get(case.number), case
    for case in rest:
        yield case, None


def _asks_the_same(old: CaseCounts, new: CaseCounts) -> bool:
    return old is new or (old.number == new.number and _asked(old) == _asked(new))


def _same_key(rest: Sequence[CaseCounts], left: Sequence[CaseCounts], key: _Key) -> dict[int, CaseCounts]:
    """Return the earlier case of each one that has the same key, in order."""
    known: dict[object, list[CaseCounts]] = {}
    for case in reversed(rest):
        known.setdefault(key(case), []).append(case)
    return {case.number: candidates.pop() for case in left if (candidates := known.get(key(case)))}


def _unfinished(rest: Sequence[CaseCounts], left: Sequence[CaseCounts]) -> dict[int, CaseCounts]:
    known = {case.number: case for case in rest}
    return {case.number: old for case in left if (old := known.get(case.number)) and _is_part(old, case)}


def _asked(case: CaseCounts) -> str:
    return case.asked or case.utterance


def _is_part(old: CaseCounts, new: CaseCounts) -> bool:
    """Return whether one of the cases asked only the first turns of the other, and was never judged."""
    short, long = sorted((old, new), key=lambda case: len(_asked(case)))
    return not short.decided and _asked(long).startswith(f"{_asked(short)} / ")


def changes_of(cases: Sequence[CaseComparison], before: KnownTest, after: KnownTest) -> ChangesOfTest:
    """Return what changed in a test whose cases were compared; what is not known on both sides is left out."""
    both = [(case.before, case.after) for case in cases if case.before and case.after]
    checks = [compare_checks(old.checks, new.checks) for old, new in both]
    return ChangesOfTest(
        removed=sum(case.after is None for case in cases),
        weaker=sum(check.weaker for check in checks),
        changed=sum(check.changed for check in checks),
        new=sum(check.new for check in checks),
        parts=tuple(_part_changes(before, after)),
    )


def _part_changes(before: KnownTest, after: KnownTest) -> Iterator[PartChange]:
    old, new = before.setup, after.setup
    parts = [
        ("agent", old.agent, new.agent),
        ("rater", old.rater, new.rater),
        ("prompt of the judge", old.prompt, new.prompt),
        ("options of judging", before.options, after.options),
        ("version of evalmeta", old.evalmeta, new.evalmeta),
    ]
    yield from (PartChange(*part) for part in parts if all(part) and part[1] != part[2])
    versions = old.agent_version, new.agent_version
    if old.agent == new.agent and all(versions) and versions[0] != versions[1]:
        yield PartChange("version of the agent", *versions)
