"""Comparing a run of a test with another, or with a baseline: case by case, and as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta.engine.statistics import fisher, mcnemar
from evalmeta.model.comparison import CaseComparison, Comparison, Significance, Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.statistics import CaseCounts

__all__ = ["compare", "pair_cases"]

_STANDINGS: Final = {
    (True, True): Standing.STILL_PASSING,
    (True, False): Standing.BROKEN,
    (False, True): Standing.FIXED,
    (False, False): Standing.STILL_FAILING,
}


def compare(
    before: Sequence[CaseCounts], after: Sequence[CaseCounts], *, name: str, labels: tuple[str, str]
) -> Comparison:
    """Compares the cases of two runs.

    Where at least half of the smaller side's cases are on both sides, McNemar's test looks
    at the pairs; otherwise Fisher's looks at how many cases pass on each side.

    Args:
        before: the counts of each case before.
        after: the counts of each case now.
        name: the test's name.
        labels: what both sides are called.
    """
    cases = _with_p_values([_compared(*pair) for pair in pair_cases(before, after)])
    shared = sum(each.before is not None and each.after is not None for each in cases)
    is_paired = 2 * shared >= min(len(before), len(after))
    significance = _paired(cases) if is_paired else _unpaired(before, after)
    return Comparison(name, *labels, tuple(cases), significance)


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
        case if p_value is None else replace(case, p_value=min(1.0, p_value * tested))
        for case, p_value in zip(cases, p_values, strict=True)
    ]


def _p_value(case: CaseComparison) -> float | None:
    """Tests the iterations of one case; a single question on each side proves nothing."""
    if case.before is None or case.after is None:
        return None
    decided = case.before.decided, case.after.decided
    if min(decided) < 1 or max(decided) == 1:
        return None
    return fisher((case.before.passed, case.before.failed), (case.after.passed, case.after.failed))


def _paired(cases: Sequence[CaseComparison]) -> Significance | None:
    standings = [each.standing for each in cases]
    decided = sum(each in _STANDINGS.values() for each in standings)
    if not decided:
        return None
    p_value = mcnemar(standings.count(Standing.FIXED), standings.count(Standing.BROKEN))
    return Significance("mcnemar", p_value, decided)


def _unpaired(before: Iterable[CaseCounts], after: Iterable[CaseCounts]) -> Significance | None:
    first, second = _tables(before), _tables(after)
    if not sum(first) or not sum(second):
        return None
    return Significance("fisher", fisher(first, second), sum(first) + sum(second))


def _tables(cases: Iterable[CaseCounts]) -> tuple[int, int]:
    passes = [each.passes for each in cases]
    return passes.count(True), passes.count(False)
