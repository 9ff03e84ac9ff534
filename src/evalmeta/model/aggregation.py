"""What results come to: the verdict of a case, means over turns and iterations, and what a case counts as.

Cases whose results are averaged over all iterations: their means, and the one verdict that they come to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.model.run import Average, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalmeta.model.run import CaseResult, RunOptions, TestResult


_TOLERANCE: Final = 1e-9


class Mean:
    """The mean of results that are judged together, as they come.

    One that nobody could judge is left out, and keeps the mean from being a pass.
    The mean must reach the threshold of the last result; where a result has shown that less is better,
    by passing below its threshold or failing above it, it must not exceed it (ADK does the same).
    """

    __slots__ = ("_is_lower_better", "_total", "_was_unjudged", "count", "threshold")

    def __init__(self) -> None:
        self._total = 0.0
        self._is_lower_better = self._was_unjudged = False
        self.count = 0
        self.threshold = 0.0

    def add(self, result: TestResult) -> None:
        """Takes a result that has a threshold."""
        if result.threshold is None:
            return
        self.threshold = result.threshold
        if result.score is None:
            self._was_unjudged |= result.verdict is Verdict.UNDECIDED
            return
        self._total += result.score
        self.count += 1
        distance = result.score - result.threshold
        self._is_lower_better |= (distance if result.verdict is Verdict.FAILURE else -distance) > _TOLERANCE

    @property
    def score(self) -> float | None:
        """Gives the mean; None when nothing had a score."""
        return self._total / self.count if self.count else None

    @property
    def verdict(self) -> Verdict:
        """Gives PASS or FAILURE; UNDECIDED when nothing had a score, or some of what would pass could not be judged."""
        if not self.count:
            return Verdict.UNDECIDED
        distance = self._total / self.count - self.threshold
        if (-distance if self._is_lower_better else distance) < -_TOLERANCE:
            return Verdict.FAILURE
        return Verdict.UNDECIDED if self._was_unjudged else Verdict.PASS


def means_of(results: Iterable[TestResult]) -> dict[str, Mean]:
    """Gives the mean of every name whose results are averaged, in the order of their first results."""
    means: dict[str, Mean] = {}
    for result in results:
        if result.threshold is not None:
            means.setdefault(result.name, Mean()).add(result)
    return means


def case_verdict(results: Iterable[TestResult]) -> Verdict:
    """Gives the verdict of a case that was asked: the worst of FAILURE, ERROR, PASS and UNDECIDED, in this order.

    Results with a threshold count by their mean. Nothing decided, or nothing expected, is UNDECIDED.
    """
    results = list(results)
    verdicts = {result.verdict for result in results}
    if len(verdicts) > 1 and any(result.threshold is not None for result in results):
        verdicts = {each.verdict for each in results if each.threshold is None or each.verdict is Verdict.ERROR}
        verdicts.update(mean.verdict for mean in means_of(results).values())
    return worst(verdicts)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Gives the worst of FAILURE, ERROR, PASS and UNDECIDED, in this order; UNDECIDED of nothing."""
    verdicts = set(verdicts)
    for verdict in (Verdict.FAILURE, Verdict.ERROR, Verdict.PASS):
        if verdict in verdicts:
            return verdict
    return Verdict.UNDECIDED


def counted_verdict(case: CaseResult, options: RunOptions) -> Verdict:
    """Gives the verdict that is counted: with `undecided="fail"`, what is undecided makes a case fail."""
    if options.undecided != "fail" or case.verdict is Verdict.ERROR:
        return case.verdict
    undecided = case.verdict is Verdict.UNDECIDED or any(
        result.verdict is Verdict.UNDECIDED and not result.is_measured for result in case.results
    )
    return Verdict.FAILURE if undecided else case.verdict


class AveragedCases:
    """Takes what is averaged out of the case results of a run, as they come; all others it leaves to who counts."""

    __slots__ = ("_cases", "_options")

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._cases: dict[int, _AveragedCase] = {}

    def take(self, case: CaseResult, verdict: Verdict) -> bool:
        """Counts a case that is averaged and says so; one whose own verdict is ERROR never is."""
        if verdict is Verdict.ERROR or all(result.threshold is None for result in case.results):
            return False
        self._cases.setdefault(case.number, _AveragedCase(case.label)).add(case, self._options)
        return True

    def iterations(self) -> dict[int, int]:
        """Gives in how many iterations each case was averaged, by number."""
        return {number: each.iterations for number, each in self._cases.items()}

    def verdicts(self) -> dict[int, Verdict]:
        """Gives what each case counts as in all these iterations, by number."""
        return {number: each.verdict() for number, each in self._cases.items()}

    def averages(self) -> tuple[Average, ...]:
        """Gives the means by number of the case and name."""
        return tuple(average for number, each in sorted(self._cases.items()) for average in each.averages(number))


class _AveragedCase:
    __slots__ = ("_label", "_means", "_others", "iterations")

    def __init__(self, label: str) -> None:
        self._label = label
        self._means: dict[str, Mean] = {}
        self._others: set[Verdict] = set()
        self.iterations = 0

    def add(self, case: CaseResult, options: RunOptions) -> None:
        self.iterations += 1
        for result in case.results:
            if result.threshold is not None:
                self._means.setdefault(result.name, Mean()).add(result)
            self._add_other(result, strict=options.undecided == "fail")

    def _add_other(self, result: TestResult, *, strict: bool) -> None:
        if result.verdict is Verdict.UNDECIDED and strict and not result.is_measured:
            self._others.add(Verdict.FAILURE)
        elif result.threshold is None or result.verdict is Verdict.ERROR:
            self._others.add(result.verdict)

    def verdict(self) -> Verdict:
        return worst({*self._others, *(mean.verdict for mean in self._means.values())})

    def averages(self, number: int) -> list[Average]:
        return [
            Average(number, self._label, name, mean.score, mean.threshold, mean.count, mean.verdict)
            for name, mean in self._means.items()
        ]


def verdict_in(averaged: Mapping[int, Verdict], case: CaseResult, options: RunOptions) -> Verdict:
    """Gives the verdict that a run counts for one of its case results; `averaged` is its summary's."""
    verdict = counted_verdict(case, options)
    if verdict is Verdict.ERROR or all(result.threshold is None for result in case.results):
        return verdict
    return averaged.get(case.number, verdict)


def counted_verdicts(cases: Iterable[CaseResult], options: RunOptions) -> list[tuple[int, Verdict]]:
    """Gives number and counted verdict of every case result of a run, as its summary counts them; in no order."""
    averaged = AveragedCases(options)
    found = []
    for case in cases:
        verdict = counted_verdict(case, options)
        if not averaged.take(case, verdict):
            found.append((case.number, verdict))
    verdicts = averaged.verdicts()
    found += [(number, verdicts[number]) for number, count in averaged.iterations().items() for _ in range(count)]
    return found
