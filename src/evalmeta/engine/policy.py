"""What passes: counts over cases and the decision about the whole run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from evalmeta.model.counting import Mean, counted_verdict, worst
from evalmeta.model.run import Average, Summary, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.run import CaseResult, RunOptions, TestResult

__all__ = ["Tally", "summarise"]

_TOLERANCE: Final = 1e-9


class Tally:
    """Counts case results as they come; memory grows with the number of cases only where results are averaged."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._verdicts: Counter[Verdict] = Counter()
        self._undecided: Counter[str] = Counter()
        self._averaged: dict[int, _AveragedCase] = {}

    def add(self, case: CaseResult) -> None:
        """Counts one case; with `undecided="fail"` an undecided result makes it a failed one."""
        is_averaged = False
        for result in case.results:
            if result.threshold is not None:
                is_averaged = True
            if result.verdict is Verdict.UNDECIDED and not result.is_measured:
                self._undecided[result.name] += 1
        verdict = counted_verdict(case, self._options)
        if is_averaged and verdict is not Verdict.ERROR:
            self._averaged.setdefault(case.number, _AveragedCase(case.label)).add(
                case, strict=self._options.undecided == "fail"
            )
        else:
            self._verdicts[verdict] += 1

    def summary(self) -> Summary:
        """Gives the counts so far; a run succeeds when its pass rate is reached and nothing was an error."""
        verdicts = self._verdicts.copy()
        for averaged in self._averaged.values():
            verdicts[averaged.verdict()] += averaged.iterations
        passed, failed, errors = (verdicts[each] for each in (Verdict.PASS, Verdict.FAILURE, Verdict.ERROR))
        pass_rate = passed / (passed + failed) if passed + failed else None
        return Summary(
            total=verdicts.total(),
            passed=passed,
            failed=failed,
            errors=errors,
            undecided=verdicts[Verdict.UNDECIDED],
            pass_rate=pass_rate,
            min_pass_rate=self._options.min_pass_rate,
            succeeded=not errors and self._reaches(pass_rate, verdicts.total()),
            undecided_results=tuple(sorted(self._undecided.items())),
            averages=tuple(
                average for number, each in sorted(self._averaged.items()) for average in each.averages(number)
            ),
        )

    def _reaches(self, pass_rate: float | None, total: int) -> bool:
        """Tells whether enough passed; a run in which nothing was decided has shown nothing."""
        if pass_rate is None:
            return not total
        return pass_rate >= self._options.min_pass_rate - _TOLERANCE


class _AveragedCase:
    """A case some of whose results are averaged over all iterations."""

    __slots__ = ("_label", "_means", "_others", "iterations")

    def __init__(self, label: str) -> None:
        self._label = label
        self._means: dict[str, Mean] = {}
        self._others: set[Verdict] = set()
        self.iterations = 0

    def add(self, case: CaseResult, *, strict: bool) -> None:
        self.iterations += 1
        for result in case.results:
            if result.threshold is not None:
                self._means.setdefault(result.name, Mean()).add(result)
            self._add_other(result, strict=strict)

    def _add_other(self, result: TestResult, *, strict: bool) -> None:
        if result.verdict is Verdict.UNDECIDED and strict and not result.is_measured:
            self._others.add(Verdict.FAILURE)
        elif result.threshold is None or result.verdict is Verdict.ERROR:
            self._others.add(result.verdict)

    def verdict(self) -> Verdict:
        """Gives the verdict over all iterations."""
        return worst({*self._others, *(mean.verdict for mean in self._means.values())})

    def averages(self, number: int) -> list[Average]:
        return [
            Average(number, self._label, name, mean.score, mean.threshold, mean.count, mean.verdict)
            for name, mean in self._means.items()
        ]


def summarise(cases: Iterable[CaseResult], options: RunOptions) -> Summary:
    """Counts cases, one pass over them, and decides whether they pass."""
    tally = Tally(options)
    for case in cases:
        tally.add(case)
    return tally.summary()
