"""Compare two runs of a test, or a run with a baseline: case by case, and as a whole."""

from __future__ import annotations

from dataclasses import replace
from math import fsum
from typing import TYPE_CHECKING, Final

from evalmeta.engine.matching import pair_cases
from evalmeta.engine.significance import CaseTests, Table, fisher_worse, permutation_worse
from evalmeta.model.statistics import (
    SIGNIFICANCE_LEVEL,
    CaseComparison,
    Comparison,
    Shortage,
    Significance,
    Standing,
    change_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.statistics import CaseCounts

# All cases together are one test, and the cases one by one are another.
_TESTS: Final = 2
_MIN_ITERATIONS: Final = 2
# Means of equal rates may differ in the last digits.
_DIGITS: Final = 12
_STANDINGS: Final = {
    (True, True): Standing.STILL_PASSING,
    (True, False): Standing.SUSPECT,
    (False, True): Standing.MAYBE_FIXED,
    (False, False): Standing.STILL_FAILING,
}
_PROVEN: Final = {"worse": Standing.BROKEN, "better": Standing.FIXED}


def compare(
    before: Sequence[CaseCounts],
    after: Sequence[CaseCounts],
    *,
    name: str,
    labels: tuple[str, str],
    partial: tuple[bool, bool] = (False, False),
    will_confirm: bool = False,
) -> Comparison:
    """Compare the cases of two runs of the test `name`.

    If at least half of the cases of the smaller run are in both runs, a permutation test compares the pairs. Otherwise
    Fisher's exact test compares how many cases passed in each run. `labels` are the names of both runs. `partial` says
    whether each run only sent some of its cases; cases with numbers that a partial run does not have are ignored.
    With `will_confirm`, half of the significance level is left to the confirmation, so p-values are twice as large.
    """
    before, after, not_asked = _without_unsent(before, after, partial)
    cases = []
    for old, new in pair_cases(before, after):
        case = new or old
        number, utterance = (case.number, case.utterance) if case else (0, "")
        cases.append(CaseComparison(_standing(old, new), number, utterance, old, new))
    stages = 2 if will_confirm else 1
    significance = _significance(before, after, cases, stages=stages)
    shortage = _shortage(cases, stages=stages)
    tested = tuple(_with_p_values(cases, stages=stages))
    return Comparison(name, *labels, tested, significance, shortage, not_asked)


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


def _standing(before: CaseCounts | None, after: CaseCounts | None) -> Standing:
    if before is None or after is None:
        return Standing.NEW if before is None else Standing.GONE
    if after.has_mostly_errors:
        return Standing.ERROR
    if before.passes is None or after.passes is None:
        has_error = any(each.passes is None and each.errors for each in (before, after))
        return Standing.ERROR if has_error else Standing.UNDECIDED
    if before.is_flaky and after.is_flaky:
        return Standing.FLAKY
    return _STANDINGS[before.passes, after.passes]


def _with_p_values(cases: Sequence[CaseComparison], *, stages: int) -> Iterator[CaseComparison]:
    """Yield the cases with corrected p-values; those whose rate changed significantly are broken or fixed."""
    tables = [_table(each) for each in cases]
    tested = [each for each in tables if each is not None]
    worse = iter(CaseTests(tested).corrected())
    better = iter(CaseTests(each.mirrored for each in tested).corrected())
    for case, table in zip(cases, tables, strict=True):
        if table is None:
            yield case
            continue
        fell, rose = next(worse), next(better)
        if not _is_repeated(case):
            yield case
            continue
        p_value = min(1.0, stages * _TESTS * (rose if case.change == "better" else fell))
        found = replace(case, p_value=1.0 if case.change == "same" else p_value)
        yield replace(found, standing=_PROVEN[case.change]) if found.is_significant else found


def _table(case: CaseComparison) -> Table | None:
    """Return the answers that are compared; None if a run did not decide the case.

    Iterations that are averaged are one observation, so the other run counts by its majority.
    """
    before, after = case.before, case.after
    if case.standing is Standing.ERROR or before is None or after is None or not (before.decided and after.decided):
        return None
    if before.is_averaged or after.is_averaged:
        return Table(*(int(each) for side in (before, after) for each in (side.passes is True, not side.passes)))
    return Table(before.passed, before.failed, after.passed, after.failed)


def _is_repeated(case: CaseComparison) -> bool:
    """Return whether one of the runs has several observations of the case."""
    sides = [each for each in (case.before, case.after) if each]
    return not any(each.is_averaged for each in sides) and max(each.decided for each in sides) > 1


def _shortage(cases: Sequence[CaseComparison], *, stages: int) -> Shortage | None:
    """Return how many iterations are missing to show that one case broke completely, None if they are enough.

    Cases that always passed or always failed in both runs do not add to the correction for many cases.
    """
    tables = [table for each in cases if (table := _table(each))]
    if not tables:
        return None
    mixed = sum(0 < each.passed_before + each.passed < sum(each) for each in tables)
    tests = stages * _TESTS * max(1, mixed)
    iterations = max(min(each.passed_before + each.failed_before, each.passed + each.failed) for each in tables)
    needed = _MIN_ITERATIONS
    while fisher_worse(Table(needed, 0, 0, needed)) * tests >= SIGNIFICANCE_LEVEL:
        needed += 1
    return Shortage(iterations, len(tables), needed) if iterations < needed else None


def _significance(
    before: Sequence[CaseCounts], after: Sequence[CaseCounts], cases: Sequence[CaseComparison], *, stages: int
) -> Significance | None:
    pairs = [each for each in cases if each.before and each.after]
    if 2 * len(pairs) >= min(len(before), len(after)):
        return together(pairs, stages=stages)
    table = Table(*_pass_counts(before), *_pass_counts(after))
    if not (table.passed_before + table.failed_before and table.passed + table.failed):
        return None
    rates = _rates([table])
    p_value = fisher_worse(table.mirrored if change_of(*rates) == "better" else table)
    return Significance("fisher", min(1.0, stages * p_value), sum(table), rates)


def together(cases: Sequence[CaseComparison], *, stages: int) -> Significance | None:
    """Return the significance of the change of all cases together; None if no case was decided in both runs."""
    tables = [table for each in cases if (table := _table(each))]
    if not tables:
        return None
    rates = _rates(tables)
    change = change_of(*rates)
    seen = [each.mirrored for each in tables] if change == "better" else tables
    p_value = permutation_worse(seen)
    corrected = min(1.0, stages * (p_value + CaseTests(seen).share(p_value)))
    return Significance("permutation", 1.0 if change == "same" else corrected, len(tables), rates)


def _rates(tables: Sequence[Table]) -> tuple[float, float]:
    """Return the mean of the cases' pass rates, before and now."""
    before = fsum(each.passed_before / (each.passed_before + each.failed_before) for each in tables)
    now = fsum(each.passed / (each.passed + each.failed) for each in tables)
    return round(before / len(tables), _DIGITS), round(now / len(tables), _DIGITS)


def _pass_counts(cases: Iterable[CaseCounts]) -> tuple[int, int]:
    passes = [each.passes for each in cases]
    return passes.count(True), passes.count(False)
