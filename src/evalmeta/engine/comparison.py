"""Compare two runs of a test, or a run with a baseline: case by case, and as a whole."""

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

_MIN_ITERATIONS: Final = 2
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
    """Compare the cases of two runs of the test `name`.

    If at least half of the cases of the smaller run are in both runs, McNemar's test compares the pairs. Otherwise
    Fisher's test compares how many cases passed in each run. `labels` are the names of both runs. `partial` says
    whether each run only sent some of its cases; cases with numbers that a partial run does not have are ignored.
    """
    before, after, not_asked = _without_unsent(before, after, partial)
    cases = []
    for old, new in pair_cases(before, after):
        case = new or old
        number, utterance = (case.number, case.utterance) if case else (0, "")
        cases.append(CaseComparison(_standing(old, new), number, utterance, old, new))
    cases = _with_p_values(cases)
    significance = _significance(before, after, cases)
    return Comparison(name, *labels, tuple(cases), significance, _shortage(cases), not_asked)


def _without_unsent(
    before: Sequence[CaseCounts], after: Sequence[CaseCounts], partial: tuple[bool, bool]
) -> tuple[Sequence[CaseCounts], Sequence[CaseCounts], tuple[int, int]]:
    """Return both runs without the cases that a partial run did not send, and how many these are in each run."""
    pairs = list(pair_cases(before, after))
    new = {now.number for old, now in pairs if now and not old} - {each.number for each in before}
    gone = {old.number for old, now in pairs if old and not now} - {each.number for each in after}
    new, gone = new if partial[0] else set(), gone if partial[1] else set()
    kept_before = [each for each in before if each.number not in gone]
    kept_after = [each for each in after if each.number not in new]
    return kept_before, kept_after, (len(new), len(gone))


def pair_cases(
    before: Iterable[CaseCounts], after: Iterable[CaseCounts]
) -> Iterator[tuple[CaseCounts | None, CaseCounts | None]]:
    """Pair the cases of two runs: first those with the same number and utterance, then with the same utterance.

    The others are new (None before) or gone (None after): a case with another utterance is another case, even if it
    has the same number.
    """
    rest = {each.number: each for each in before}
    ordered = sorted(after, key=lambda each: each.number)
    same = {each.number for each in ordered if each.number in rest and rest[each.number].utterance == each.utterance}
    moved: dict[str, list[CaseCounts]] = {}
    for number in sorted(rest, reverse=True):
        if number not in same:
            moved.setdefault(rest[number].utterance, []).append(rest[number])
    for each in ordered:
        candidates = moved.get(each.utterance)
        if each.number in same:
            yield rest[each.number], each
        else:
            yield (candidates.pop() if candidates else None), each
    for left in sorted((each for group in moved.values() for each in group), key=lambda each: each.number):
        yield left, None


def _standing(before: CaseCounts | None, after: CaseCounts | None) -> Standing:
    if before is None or after is None:
        return Standing.NEW if before is None else Standing.GONE
    if before.passes is None or after.passes is None:
        has_error = any(each.passes is None and each.errors for each in (before, after))
        return Standing.ERROR if has_error else Standing.UNDECIDED
    return _STANDINGS[before.passes, after.passes]


def _with_p_values(cases: list[CaseComparison]) -> list[CaseComparison]:
    """Return cases with p-values, corrected for the number of tested cases (Bonferroni).

    A case is flaky if both runs have mixed iterations whose rates do not differ significantly.
    """
    p_values = [_p_value(each) for each in cases]
    tested = sum(each is not None for each in p_values)
    compared = []
    for case, p_value in zip(cases, p_values, strict=True):
        if p_value is None:
            compared.append(case)
            continue
        corrected = replace(case, p_value=min(1.0, p_value * tested))
        is_mixed = all(each is not None and each.is_flaky for each in (case.before, case.after))
        is_flaky = is_mixed and not corrected.is_significant
        compared.append(replace(corrected, standing=Standing.FLAKY) if is_flaky else corrected)
    return compared


def _p_value(case: CaseComparison) -> float | None:
    """Return the p-value of a case's iterations, None if there is only one on each side or if they are averaged."""
    if case.before is None or case.after is None or case.before.is_averaged or case.after.is_averaged:
        return None
    decided = case.before.decided, case.after.decided
    if min(decided) < 1 or max(decided) == 1:
        return None
    return fisher((case.before.passed, case.before.failed), (case.after.passed, case.after.failed))


def _shortage(cases: Sequence[CaseComparison]) -> Shortage | None:
    """Return how many iterations are missing to show that one case broke completely, None if they are enough."""
    pairs = [(each.before.decided, each.after.decided) for each in cases if each.before and each.after]
    pairs = [each for each in pairs if min(each)]
    if not pairs or any(each.is_significant for each in cases):
        return None
    tested = sum(each.p_value is not None for each in cases) or len(pairs)
    needed = _MIN_ITERATIONS
    while fisher((needed, 0), (0, needed)) * tested >= SIGNIFICANCE_LEVEL:
        needed += 1
    lowest = min(fisher((first, 0), (0, second)) for first, second in set(pairs))
    if lowest * tested < SIGNIFICANCE_LEVEL:
        return None
    return Shortage(max(map(min, pairs)), tested, needed)


def _significance(
    before: Sequence[CaseCounts], after: Sequence[CaseCounts], cases: Sequence[CaseComparison]
) -> Significance | None:
    pairs = [(each.before, each.after) for each in cases if each.before and each.after]
    if 2 * len(pairs) >= min(len(before), len(after)):
        decided = sum(bool(old.decided and new.decided) for old, new in pairs)
        return Significance("mcnemar", mcnemar(*flips(cases)), decided) if decided else None
    first, second = _pass_counts(before), _pass_counts(after)
    if not sum(first) or not sum(second):
        return None
    return Significance("fisher", fisher(first, second), sum(first) + sum(second))


def _pass_counts(cases: Iterable[CaseCounts]) -> tuple[int, int]:
    passes = [each.passes for each in cases]
    return passes.count(True), passes.count(False)
