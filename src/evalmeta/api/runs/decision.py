"""What a baseline decides about the runs of a call: the verdict on each run, and the exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalmeta.errors import EXIT_EXPECTATION_FAILED, EXIT_FAILED, EXIT_PASSED
from evalmeta.model.comparison import Comparison, Standing, SuiteComparison
from evalmeta.report.comparison import verdict
from evalmeta.report.report import BaselineVerdict
from evalmeta.report.text import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.api.runs.comparisons import Comparator
    from evalmeta.api.runs.finished import FinishedRun


class Decision(NamedTuple):
    """What a baseline decides about the runs of a command, each with its comparison, None if it lacks their test.

    Failures that the baseline has are ignored, even if a run misses its pass rate because of them. Regressions fail.
    New cases must reach the run's pass rate. A test that is not in the baseline, without decided cases, or with too few
    judged results is judged on its own. Errors and time-outs are never ignored.
    """

    comparator: Comparator
    suite: SuiteComparison
    pairs: list[tuple[FinishedRun, Comparison | None]]

    @classmethod
    def of(cls, comparator: Comparator, finished: Sequence[FinishedRun]) -> Decision:
        """Compare runs with a baseline; this reads all their results."""
        suite = comparator.compare([run.run for run in finished])
        tests = {comparison.after: comparison for comparison in suite.tests}
        return cls(comparator, suite, [(run, tests.get(run.run.id)) for run in finished])

    def verdicts(self) -> list[BaselineVerdict | None]:
        """Return what the baseline decides about each run; None for those that are judged on their own."""
        return [self._verdict(*pair) for pair in self.pairs]

    def code(self, code: int) -> int:
        """Return the exit code that replaces the runs' own."""
        if code not in {EXIT_PASSED, EXIT_EXPECTATION_FAILED}:
            return code
        if any(case.is_unconfirmed for test in self.suite.tests for case in test.cases):
            return EXIT_FAILED
        return EXIT_EXPECTATION_FAILED if any(self._fails(*pair) for pair in self.pairs) else EXIT_PASSED

    def why(self, new_code: int, code: int) -> str:
        """Return why the comparison decides the exit code; empty if the runs alone decide it."""
        if new_code == EXIT_PASSED:
            return "" if new_code == code else _why_ignored(self.suite.tests)
        asked = (pair for pair in self.pairs if not pair[0].run.is_cut)
        failing = [test for finished, test in asked if test and self._fails(finished, test)]
        if new_code == EXIT_EXPECTATION_FAILED and failing:
            return self._why_failed(failing)
        return "" if new_code == code else self._why_failed(self.suite.tests)

    def _verdict(self, finished: FinishedRun, comparison: Comparison | None) -> BaselineVerdict | None:
        # What the baseline says of the cases that were asked says nothing of those that the cost limit left out.
        if comparison is None or _is_judged_alone(finished) or finished.run.is_cut:
            return None
        unconfirmed = any(case.is_unconfirmed for case in comparison.cases)
        passed = not (unconfirmed or self._fails(finished, comparison))
        text = verdict(comparison, suspects_fail=self.comparator.suspects_fail)
        why = text if passed else f"{self._why_failed([comparison])} {self.comparator.baseline.label}"
        return BaselineVerdict(comparison, passed, why)

    def _fails(self, finished: FinishedRun, comparison: Comparison | None) -> bool:
        if finished.run.is_cut:
            return True
        if comparison is None or _is_judged_alone(finished):
            return not finished.summary.succeeded
        if comparison.is_regression(suspects_fail=self.comparator.suspects_fail) or self._falls_with_others(comparison):
            return True
        return _misses_pass_rate(comparison, finished.summary.min_pass_rate)

    def _falls_with_others(self, comparison: Comparison) -> bool:
        """Return whether all tests together became significantly worse, this one among them."""
        fell = comparison.significance is not None and comparison.significance.change == "worse"
        return fell and self.suite.is_significantly == "worse"

    def _why_failed(self, comparisons: Sequence[Comparison]) -> str:
        """Return why a comparison fails runs that passed; the label of the baseline follows."""
        if unconfirmed := sum(case.is_unconfirmed for test in comparisons for case in test.cases):
            return f"{count(unconfirmed, 'suspect case')} ended in errors when asked again, and passed in"
        if broken := sum(len(test.of(Standing.BROKEN)) for test in comparisons):
            return f"{count(broken, 'case')} broke compared with"
        if any(test.is_significantly == "worse" for test in comparisons):
            return "significantly worse than"
        return self._why_else(comparisons)

    def _why_else(self, comparisons: Sequence[Comparison]) -> str:
        if lost := sum(len(test.lost) for test in comparisons):
            return f"{count(lost, 'case')} ended in errors and passed in"
        if self.comparator.suspects_fail and (suspects := sum(len(test.suspects) for test in comparisons)):
            return f"{count(suspects, 'suspect case')} did not pass again, and passed in"
        new = sum(case.is_new_failure for test in comparisons for case in test.cases)
        verb = "is" if new == 1 else "are"
        return (
            f"{count(new, 'failing case')} {verb} not in" if new else "all tests together are significantly worse than"
        )


def _why_ignored(comparisons: Sequence[Comparison]) -> str:
    """Return why a comparison passes runs that failed; the label of the baseline follows."""
    failing = [case for test in comparisons for case in test.cases if case.after and case.after.failed]
    if any(not case.before or not case.before.failed for case in failing):
        return "nothing is significantly worse than"
    return f"{count(len(failing), 'failure')} {'is' if len(failing) == 1 else 'are'} already in"


def _is_judged_alone(finished: FinishedRun) -> bool:
    return finished.summary.pass_rate is None or not finished.summary.judges_enough


def _misses_pass_rate(comparison: Comparison, min_pass_rate: float) -> bool:
    """Return whether the cases that were never judged before do not reach the run's pass rate."""
    unknown = [case.after for case in comparison.cases if case.after and not (case.before and case.before.decided)]
    passed, decided = sum(side.passed for side in unknown), sum(side.decided for side in unknown)
    return any(case.is_new_failure for case in comparison.cases) and passed < min_pass_rate * decided
