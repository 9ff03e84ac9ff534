"""What passes: counts over cases and the decision about the whole run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from evalmeta.model.counting import counted_verdict
from evalmeta.model.run import Summary, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.run import CaseResult, RunOptions

__all__ = ["Tally", "summarise"]

_TOLERANCE: Final = 1e-9


class Tally:
    """Counts case results as they come; memory does not grow with their number."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._verdicts: Counter[Verdict] = Counter()
        self._undecided: Counter[str] = Counter()

    def add(self, case: CaseResult) -> None:
        """Counts one case; with `undecided="fail"` an undecided result makes it a failed one."""
        self._undecided.update(result.name for result in case.results if result.verdict is Verdict.UNDECIDED)
        self._verdicts[counted_verdict(case, self._options)] += 1

    def summary(self) -> Summary:
        """Gives the counts so far; a run succeeds when its pass rate is reached and nothing was an error."""
        passed, failed = self._verdicts[Verdict.PASS], self._verdicts[Verdict.FAILURE]
        errors = self._verdicts[Verdict.ERROR]
        pass_rate = passed / (passed + failed) if passed + failed else None
        return Summary(
            total=self._verdicts.total(),
            passed=passed,
            failed=failed,
            errors=errors,
            undecided=self._verdicts[Verdict.UNDECIDED],
            pass_rate=pass_rate,
            min_pass_rate=self._options.min_pass_rate,
            succeeded=not errors and self._reaches(pass_rate),
            undecided_results=tuple(sorted(self._undecided.items())),
        )

    def _reaches(self, pass_rate: float | None) -> bool:
        """Tells whether enough passed; a run in which nothing was decided has shown nothing."""
        if pass_rate is None:
            return not self._verdicts.total()
        return pass_rate >= self._options.min_pass_rate - _TOLERANCE


def summarise(cases: Iterable[CaseResult], options: RunOptions) -> Summary:
    """Counts cases, one pass over them, and decides whether they pass."""
    tally = Tally(options)
    for case in cases:
        tally.add(case)
    return tally.summary()
