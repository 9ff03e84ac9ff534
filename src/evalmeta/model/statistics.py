"""Statistics of a run, and the comparison of two runs, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.generated_data import Tokens


class Interval(NamedTuple):
    """A confidence interval of a share, 0 to 1."""

    low: float
    high: float


class Latency(NamedTuple):
    """Percentiles of the latency of answers, in milliseconds."""

    p50: float
    p90: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Measure:
    """The mean of `count` results of one name that were measured and not judged."""

    name: str
    mean: float
    count: int


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """The verdicts of one case over all iterations, as the run counts them.

    Attributes:
        is_averaged: whether the case counts by means over all iterations, which are one observation then.
    """

    number: int
    utterance: str
    passed: int = 0
    failed: int = 0
    errors: int = 0
    undecided: int = 0
    is_averaged: bool = False

    @property
    def decided(self) -> int:
        """Return in how many iterations the case passed or failed."""
        return self.passed + self.failed

    @property
    def pass_rate(self) -> float | None:
        """Return passed / (passed + failed), 0 to 1; None if the case was never decided."""
        return self.passed / self.decided if self.decided else None

    @property
    def passes(self) -> bool | None:
        """Return whether the case passed in more than half of its decided iterations; None if there are none."""
        return self.passed > self.failed if self.decided else None

    @property
    def is_flaky(self) -> bool:
        """Return whether the case passed in some iterations and failed in others."""
        return bool(self.passed and self.failed)


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """The numbers of a run over its cases and iterations.

    Attributes:
        cases: counts of each case, in order of number.
        intervals: the 95 % confidence interval of each case's pass rate, in the same order; None if it was not decided.
        interval: the same for the run's pass rate; None if cases are averaged over several iterations.
        latency: the latency of answers; None if it is unknown.
        timed: the number of answers with a known latency.
        tokens: the sums over the answers that report tokens; None means unknown.
        answers: the number of answers.
        told_tokens: the number of answers that report tokens.
        measures: the means of results that are measured and not judged, in the order of their first results.
    """

    cases: tuple[CaseCounts, ...]
    intervals: tuple[Interval | None, ...]
    interval: Interval | None
    latency: Latency | None
    timed: int
    tokens: Tokens | None
    answers: int
    told_tokens: int
    measures: tuple[Measure, ...] = ()

    @property
    def flaky(self) -> tuple[CaseCounts, ...]:
        """Return the cases that passed in some iterations and failed in others."""
        return tuple(each for each in self.cases if each.is_flaky)


FailOn = Literal["broken", "significant"]

# A difference is significant if its p-value is lower.
SIGNIFICANCE_LEVEL: Final = 0.05


class Standing(StrEnum):
    """The change of a case between two runs; a case passes if it passed in more than half of its decided iterations.

    FLAKY: the case passed in some iterations and failed in others in both runs, and the rates do not differ
    significantly. ERROR and UNDECIDED: one of the runs did not decide the case, because of errors or otherwise.
    """

    BROKEN = "broken"
    FIXED = "fixed"
    STILL_FAILING = "still failing"
    STILL_PASSING = "still passing"
    FLAKY = "flaky"
    NEW = "new"
    GONE = "gone"
    ERROR = "error"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class CaseComparison:
    """One case before and after.

    Attributes:
        number: the number now, or before if the case was removed.
        before: the counts before; None for a new case.
        after: the counts now; None for a removed case.
        p_value: the p-value of the difference of its pass rates (Fisher's exact test), times the number of tested cases
            (Bonferroni), at most 1; None if neither run has iterations.
    """

    standing: Standing
    number: int
    utterance: str
    before: CaseCounts | None
    after: CaseCounts | None
    p_value: float | None = None

    @property
    def rate_changed(self) -> bool:
        """Return whether both runs decided the case, with different pass rates."""
        rates = [None if each is None else each.pass_rate for each in (self.before, self.after)]
        return None not in rates and rates[0] != rates[1]

    @property
    def is_significant(self) -> bool:
        """Return whether its pass rate changed significantly."""
        return self.p_value is not None and self.p_value < SIGNIFICANCE_LEVEL

    @property
    def is_new_failure(self) -> bool:
        """Return whether the case is new and fails."""
        return self.before is None and self.after is not None and self.after.passes is False


@dataclass(frozen=True, slots=True)
class Significance:
    """The significance of a difference.

    Attributes:
        test: `mcnemar` for the same cases before and after, `fisher` for different ones.
        cases: the number of tested cases; of both runs together for `fisher`.
    """

    test: Literal["mcnemar", "fisher"]
    p_value: float
    cases: int

    @property
    def is_significant(self) -> bool:
        """Return whether the difference is significant."""
        return self.p_value < SIGNIFICANCE_LEVEL


class Shortage(NamedTuple):
    """Too few iterations: a case that always passed before and always fails now would not be significant.

    Attributes:
        cases: the number of cases for which p-values are corrected.
        needed: the iterations that both runs need.
    """

    iterations: int
    cases: int
    needed: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A test before and after.

    Attributes:
        before: the id of the earlier run, or a baseline file; `after` is the id of the run.
        cases: in order of number, removed cases last.
        significance: None if one run decided nothing.
        shortage: None if there are enough iterations to show that one case broke, or no case is in both runs.
        not_asked: the numbers of cases that are skipped because the earlier run, and this run, did not run them.
    """

    name: str
    before: str
    after: str
    cases: tuple[CaseComparison, ...]
    significance: Significance | None = None
    shortage: Shortage | None = None
    not_asked: tuple[int, int] = (0, 0)

    def of(self, standing: Standing) -> tuple[CaseComparison, ...]:
        """Return the cases with a standing."""
        return tuple(each for each in self.cases if each.standing is standing)

    @property
    def rates(self) -> tuple[float | None, float | None]:
        """Return the share of cases that pass, before and after; None if none was decided."""
        return _share(each.before for each in self.cases), _share(each.after for each in self.cases)

    def is_regression(self, fail_on: FailOn) -> bool:
        """Return whether the test became worse.

        For `broken`, one case that passed and now fails is enough. For `significant`, the difference of all cases
        together, or of the pass rate of one case, must be significant.
        """
        if fail_on == "broken":
            return bool(self.of(Standing.BROKEN))
        return self._is_worse() or any(
            (case.after.pass_rate or 0.0) < (case.before.pass_rate or 0.0)
            for case in self.cases
            if case.is_significant and case.before and case.after
        )

    def _is_worse(self) -> bool:
        if self.significance is None or not self.significance.is_significant:
            return False
        if self.significance.test == "mcnemar":
            up, down = flips(self.cases)
            return down > up
        before, after = self.rates
        return (after or 0.0) < (before or 0.0)


def flips(cases: Iterable[CaseComparison]) -> tuple[int, int]:
    """Return the number of cases that failed and now pass, and that passed and now fail; flaky ones by majority."""
    sides = [(each.before.passes, each.after.passes) for each in cases if each.before and each.after]
    return sides.count((False, True)), sides.count((True, False))


def _share(sides: Iterable[CaseCounts | None]) -> float | None:
    passes = [each.passes for each in sides if each is not None and each.passes is not None]
    return sum(passes) / len(passes) if passes else None
