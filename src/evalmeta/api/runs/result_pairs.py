"""The results of compared cases, of which comparisons only have the counts, and why the cases changed."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.comparison import CaseComparison, Comparison, Standing
from evalmeta.model.run import CaseResult, Run, Verdict
from evalmeta.report.case_differences import reasons
from evalmeta.store.stored_cases import StoredCases

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

BETTER: Final = (Standing.FIXED, Standing.MAYBE_FIXED, Standing.BACK)
_AS_BEFORE: Final = frozenset({Standing.STILL_PASSING, Standing.STILL_FAILING, Standing.UNDECIDED, Standing.GONE})
_REASONS: Final = 3
_EXPLAINED: Final = 100


class ResultPair(NamedTuple):
    """The results of a case before and after that show its change; None if the run or the case is not known."""

    before: CaseResult | None
    after: CaseResult | None


def result_pairs(cases: Sequence[CaseComparison], before: Run | None, after: Run) -> list[ResultPair]:
    """Return a pair for each case, of several iterations those that show its change.

    On the better side, that is the first iteration that passed; on the other side, the first that did not. A case may
    have had another number before.
    """
    old = _by_number(before, {case.before.number for case in cases if case.before})
    new = _by_number(after, {case.after.number for case in cases if case.after})
    pairs = []
    for case in cases:
        is_better = case.standing in BETTER
        first = _chosen(old.get(case.before.number, ()), passed=not is_better) if case.before else None
        pairs.append(
            ResultPair(first, _chosen(new.get(case.after.number, ()), passed=is_better) if case.after else None)
        )
    return pairs


def explain_with(before: Iterable[Run], after: Iterable[Run]) -> Callable[[Comparison], dict[int, tuple[str, ...]]]:
    """Return a function that returns by number why cases of a comparison changed, from the runs that it compares.

    Without the run before, as with a baseline file, the reasons are those of the run after.
    """
    # Runs of different stores may have the same id.
    earlier, later = ({run.id: run for run in runs} for runs in (before, after))

    def explain(comparison: Comparison) -> dict[int, tuple[str, ...]]:
        run = later.get(comparison.after)
        return _change_reasons(comparison, earlier.get(comparison.before), run) if run else {}

    return explain


def _change_reasons(comparison: Comparison, before: Run | None, after: Run) -> dict[int, tuple[str, ...]]:
    """Return by number why cases changed, at most three reasons of each; the first cases if there are very many."""
    changed = [case for case in comparison.cases if case.standing not in _AS_BEFORE or case.change != "same"]
    cases = [case for case in changed if case.after is not None][:_EXPLAINED]
    pairs = zip(cases, result_pairs(cases, before, after), strict=True)
    return {
        case.number: tuple(islice(reasons(pair.before, pair.after), _REASONS)) for case, pair in pairs if pair.after
    }


def _by_number(run: Run | None, numbers: Collection[int]) -> Mapping[int, list[CaseResult]]:
    results: dict[int, list[CaseResult]] = {}
    if run is None:
        return results
    cases = run.cases
    wanted = cases.of_numbers(numbers) if isinstance(cases, StoredCases) else cases
    for case in wanted:
        if case.number in numbers:
            results.setdefault(case.number, []).append(case)
    return results


def _chosen(results: Sequence[CaseResult], *, passed: bool) -> CaseResult | None:
    wanted = (case for case in results if (case.verdict is Verdict.PASS) == passed)
    return next((case for case in (*wanted, *results)), None)
