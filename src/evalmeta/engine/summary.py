"""The summary of a run: its counts, and whether it succeeded."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from evalmeta.model.aggregation import AveragedCases, counted_verdict, coverage_of
from evalmeta.model.run import Coverage, Summary, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.run import CaseResult, RunOptions

_TOLERANCE: Final = 1e-9
# Before Python 3.12, `Verdict.UNDECIDED` calls a function.
_UNDECIDED: Final = Verdict.UNDECIDED


def summarise(cases: Iterable[CaseResult], options: RunOptions) -> Summary:
    """Count case results in one pass, and decide whether the run succeeded."""
    counter = SummaryCounter(options)
    for case in cases:
        counter.add(case)
    return counter.summary()


class SummaryCounter:
    """Count case results one by one; memory only grows with the number of cases if results are averaged."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._verdicts: Counter[Verdict] = Counter()
        self._undecided: Counter[str] = Counter()
        self._averaged = AveragedCases(options)
        self._judged = self._results = 0

    def add(self, case: CaseResult) -> None:
        """Count one case result; with `undecided="fail"`, a case with an undecided result has failed."""
        judged, total = coverage_of(case)
        self._judged += judged
        self._results += total
        if judged < total:
            for result in case.results:
                if result.verdict is _UNDECIDED and not result.is_measured:
                    self._undecided[result.name] += 1
        verdict = counted_verdict(case, self._options)
        if not self._averaged.add(case, verdict):
            self._verdicts[verdict] += 1

    def summary(self) -> Summary:
        """Return the counts so far; a run succeeds if it reaches its pass rate, judges enough and has no errors."""
        verdicts, averaged = self._verdicts.copy(), self._averaged.verdicts()
        for number, iterations in self._averaged.iterations().items():
            verdicts[averaged[number]] += iterations
        passed, failed, errors = (verdicts[each] for each in (Verdict.PASS, Verdict.FAILURE, Verdict.ERROR))
        pass_rate = passed / (passed + failed) if passed + failed else None
        needed = self._options.min_pass_rate - _TOLERANCE
        # A run in which no case was decided has shown nothing.
        is_reached = not verdicts.total() if pass_rate is None else pass_rate >= needed
        coverage, min_decided = Coverage(self._judged, self._results), self._options.min_decided
        return Summary(
            total=verdicts.total(),
            passed=passed,
            failed=failed,
            errors=errors,
            undecided=verdicts[Verdict.UNDECIDED],
            pass_rate=pass_rate,
            min_pass_rate=self._options.min_pass_rate,
            succeeded=not errors and is_reached and coverage.reaches(min_decided),
            undecided_results=tuple(sorted(self._undecided.items())),
            averages=self._averaged.averages(),
            averaged=averaged,
            coverage=coverage,
            min_decided=min_decided,
        )
