"""What passes: counts over cases and the decision about the whole run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from evalmeta.model.averages import AveragedCases
from evalmeta.model.counting import counted_verdict
from evalmeta.model.run import Summary, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.run import CaseResult, RunOptions

__all__ = ["Tally", "summarise"]

_TOLERANCE: Final = 1e-9


class Tally:
    """Counts case results as they come; memory grows with the number of cases only where results are averaged."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._verdicts: Counter[Verdict] = Counter()
        self._undecided: Counter[str] = Counter()
        self._averaged = AveragedCases(options)

    def add(self, case: CaseResult) -> None:
        """Counts one case; with `undecided="fail"` an undecided result makes it a failed one."""
        for result in case.results:
            if result.verdict is Verdict.UNDECIDED and not result.is_measured:
                self._undecided[result.name] += 1
        verdict = counted_verdict(case, self._options)
        if not self._averaged.take(case, verdict):
            self._verdicts[verdict] += 1

    def summary(self) -> Summary:
        """Gives the counts so far; a run succeeds when its pass rate is reached and nothing was an error."""
        verdicts, averaged = self._verdicts.copy(), self._averaged.verdicts()
        for number, iterations in self._averaged.iterations().items():
            verdicts[averaged[number]] += iterations
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
            averages=self._averaged.averages(),
            averaged=averaged,
        )

    def _reaches(self, pass_rate: float | None, total: int) -> bool:
        """Tells whether enough passed; a run in which nothing was decided has shown nothing."""
        if pass_rate is None:
            return not total
        return pass_rate >= self._options.min_pass_rate - _TOLERANCE


def summarise(cases: Iterable[CaseResult], options: RunOptions) -> Summary:
    """Counts cases, one pass over them, and decides whether they pass."""
    tally = Tally(options)
    for case in cases:
        tally.add(case)
    return tally.summary()
