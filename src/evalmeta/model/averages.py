"""Cases whose results are averaged over all iterations: their means, and the one verdict that they come to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.model.counting import Mean, counted_verdict, worst
from evalmeta.model.run import Average, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalmeta.model.run import CaseResult, RunOptions, TestResult

__all__ = ["AveragedCases", "counted_verdicts", "verdict_in"]


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
