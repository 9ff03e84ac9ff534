"""Comparing a run of a test with another, or with a baseline: case by case, and as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta.engine.statistics import fisher, mcnemar
from evalmeta.model.statistics import (
    SIGNIFICANCE_LEVEL,
    CaseComparison,
    Comparison,
    Shortage,
    Significance,
    Standing,
    flips,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.statistics import CaseCounts


# Fewer iterations are never tested.
_FEWEST: Final = 2
_STANDINGS: Final = {
    (True, True): Standing.STILL_PASSING,
    (True, False): Standing.BROKEN,
    (False, True): Standing.FIXED,
    (False, False): Standing.STILL_FAILING,
}


def compare(
    before: Sequence[CaseCounts],
    after: Sequence[CaseCounts],
    *,
    name: str,
    labels: tuple[str, str],
    partial: tuple[bool, bool] = (False, False),
) -> Comparison:
    """Compares the cases of two runs.

    Where at least half of the smaller side's cases are on both sides, McNemar's test looks
    at the pairs; otherwise Fisher's looks at how many cases pass on each side.

    Args:
        before: the counts of each case before.
        after: the counts of each case now.
        name: the test's name.
        labels: what both sides are called.
        partial: whether the side asked some of its cases only: cases whose number it has not are left out.
    """
    before, after, not_asked = _asked(before, after, partial)
    cases = _with_p_values([_compared(*pair) for pair in pair_cases(before, after)])
    shared = sum(each.before is not None and each.after is not None for each in cases)
    is_paired = 2 * shared >= min(len(before), len(after))
    significance = _paired(cases) if is_paired else _unpaired(before, after)
    return Comparison(name, *labels, tuple(cases), significance, _shortage(cases), not_asked)


def pair_cases(
    before: Iterable[CaseCounts], after: Iterable[CaseCounts]
) -> Iterator[tuple[CaseCounts | None, CaseCounts | None]]:
    """Pairs the cases of two runs: those of the same number and utterance, then those of the same utterance.

    What is left is new (None before) or gone (None after): a number alone, with another
    utterance, is another question.
    """
    rest = {each.number: each for each in before}
    ordered = sorted(after, key=lambda each: each.number)
    same = {each.number for each in ordered if _utterance(rest.get(each.number)) == each.utterance}
    moved: dict[str, list[CaseCounts]] = {}
    for number in sorted(rest, reverse=True):
        if number not in same:
            moved.setdefault(rest[number].utterance, []).append(rest[number])
    for each in ordered:
        found = rest[each.number] if each.number in same else _taken(moved.get(each.utterance))
        yield found, each
    for left in sorted((each for group in moved.values() for each in group), key=lambda each: each.number):
        yield left, None


def _asked(
    before: Sequence[CaseCounts], after: Sequence[CaseCounts], partial: tuple[bool, bool]
) -> tuple[Sequence[CaseCounts], Sequence[CaseCounts], tuple[int, int]]:
    """Leaves out what a side that asked some cases only did not ask; tells how many that are, before and after."""
    pairs = list(pair_cases(before, after))
    new = {now.number for old, now in pairs if now and not old} - {each.number for each in before}
    gone = {old.number for old, now in pairs if old and not now} - {each.number for each in after}
    new, gone = new if partial[0] else set(), gone if partial[1] else set()
    first = [each for each in before if each.number not in gone]
    second = [each for each in after if each.number not in new]
    return first, second, (len(new), len(gone))


def _utterance(case: CaseCounts | None) -> str | None:
    return case.utterance if case else None


def _taken(waiting: list[CaseCounts] | None) -> CaseCounts | None:
    return waiting.pop() if waiting else None


def _compared(before: CaseCounts | None, after: CaseCounts | None) -> CaseComparison:
    named = after or before
    number, utterance = (named.number, named.utterance) if named else (0, "")
    return CaseComparison(_standing(before, after), number, utterance, before, after)


def _standing(before: CaseCounts | None, after: CaseCounts | None) -> Standing:
    if before is None or after is None:
        return Standing.NEW if before is None else Standing.GONE
    if before.passes is None or after.passes is None:
        broke = any(each.passes is None and each.errors for each in (before, after))
        return Standing.ERROR if broke else Standing.UNDECIDED
    return _STANDINGS[before.passes, after.passes]


def _with_p_values(cases: list[CaseComparison]) -> list[CaseComparison]:
    p_values = [_p_value(each) for each in cases]
    tested = sum(each is not None for each in p_values)
    return [
        case if p_value is None else _tested(replace(case, p_value=min(1.0, p_value * tested)))
        for case, p_value in zip(cases, p_values, strict=True)
    ]


def _tested(case: CaseComparison) -> CaseComparison:
    """Gives a case that is mixed on both sides as flaky, unless its rates differ by more than noise."""
    is_mixed = all(each is not None and each.is_flaky for each in (case.before, case.after))
    return replace(case, standing=Standing.FLAKY) if is_mixed and not case.is_significant else case


def _p_value(case: CaseComparison) -> float | None:
    """Tests the iterations of one case; a single question on each side, or a mean over all, proves nothing."""
    if case.before is None or case.after is None or case.before.is_averaged or case.after.is_averaged:
        return None
    decided = case.before.decided, case.after.decided
    if min(decided) < 1 or max(decided) == 1:
        return None
    return fisher((case.before.passed, case.before.failed), (case.after.passed, case.after.failed))


def _shortage(cases: Sequence[CaseComparison]) -> Shortage | None:
    """Tells whether a case that broke completely could be noise still."""
    pairs = [(each.before.decided, each.after.decided) for each in cases if each.before and each.after]
    pairs = [each for each in pairs if min(each)]
    if not pairs or any(each.is_significant for each in cases):
        return None
    tested = sum(each.p_value is not None for each in cases) or len(pairs)
    needed = _FEWEST
    while fisher((needed, 0), (0, needed)) * tested >= SIGNIFICANCE_LEVEL:
        needed += 1
    most_telling = min(fisher((first, 0), (0, second)) for first, second in set(pairs))
    if most_telling * tested < SIGNIFICANCE_LEVEL:
        return None
    return Shortage(max(map(min, pairs)), tested, needed)


def _paired(cases: Sequence[CaseComparison]) -> Significance | None:
    decided = sum(_is_decided(each) for each in cases)
    return Significance("mcnemar", mcnemar(*flips(cases)), decided) if decided else None


def _is_decided(case: CaseComparison) -> bool:
    return all(each is not None and each.decided for each in (case.before, case.after))


def _unpaired(before: Iterable[CaseCounts], after: Iterable[CaseCounts]) -> Significance | None:
    first, second = _tables(before), _tables(after)
    if not sum(first) or not sum(second):
        return None
    return Significance("fisher", fisher(first, second), sum(first) + sum(second))


def _tables(cases: Iterable[CaseCounts]) -> tuple[int, int]:
    passes = [each.passes for each in cases]
    return passes.count(True), passes.count(False)
