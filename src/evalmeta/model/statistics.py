"""What a run's numbers say, as values: counts of each case, intervals, latencies, tokens.

What became of a test's cases from one run to another, as values.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.generated_data import Tokens


class Interval(NamedTuple):
    """The shares, 0 to 1, between which the true one is believed to be."""

    low: float
    high: float


class Latency(NamedTuple):
    """How long answers took, in milliseconds; half of them took `p50` or less, 95 of 100 `p95` or less."""

    p50: float
    p90: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class Measure:
    """The mean of what was measured under one name and not judged, over `count` results."""

    name: str
    mean: float
    count: int


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """What one case came to over all iterations; verdicts as the run counts them.

    Attributes:
        is_averaged: whether it counts by means over all iterations: then these are one observation, not several.
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
        """Gives in how many iterations the case passed or failed."""
        return self.passed + self.failed

    @property
    def pass_rate(self) -> float | None:
        """Gives passed / (passed + failed), 0 to 1; None when it was never decided."""
        return self.passed / self.decided if self.decided else None

    @property
    def passes(self) -> bool | None:
        """Says whether the case passed in more than half of what was decided; None when nothing was."""
        return self.passed > self.failed if self.decided else None

    @property
    def is_flaky(self) -> bool:
        """Says whether the case passed in some iterations and failed in others."""
        return bool(self.passed and self.failed)


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """The numbers of a run over its cases and iterations.

    Attributes:
        cases: counts of each case, in order of number.
        intervals: where each case's pass rate is believed to be, with 95 % confidence, in the same order; None
            where nothing was decided.
        interval: the same of the run's pass rate; None where cases are averaged over several iterations.
        latency: of the answers whose latency is known; None when that is none.
        timed: how many answers these are.
        tokens: the sums over the answers that told; None is unknown.
        answers: how many answers came.
        told_tokens: how many answers told something of tokens.
        measures: the means of what was measured and not judged, in the order of their first results.
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
        """Gives the cases that passed in some iterations and failed in others."""
        return tuple(each for each in self.cases if each.is_flaky)


FailOn = Literal["broken", "significant"]


# Differences that chance alone makes less often than this are called more than noise.
SIGNIFICANCE_LEVEL: Final = 0.05


class Standing(StrEnum):
    """What became of a case; it passes when it passed in more than half of its decided iterations.

    FLAKY is a case that passed in some iterations and failed in others, before and now, and
    whose rates differ by no more than noise. ERROR and UNDECIDED are cases that one of both
    runs did not decide, the first for errors.
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
        number: its number now, or before if it is gone.
        before: its counts before; None for a new case.
        after: its counts now; None for a case that is gone.
        p_value: how often chance alone makes its pass rates differ so much (Fisher's exact
            test), times the number of cases that were tested so (Bonferroni), 1 at most;
            None when neither side has iterations.
    """

    standing: Standing
    number: int
    utterance: str
    before: CaseCounts | None
    after: CaseCounts | None
    p_value: float | None = None

    @property
    def rate_changed(self) -> bool:
        """Says whether both sides decided the case, with different pass rates."""
        rates = [None if each is None else each.pass_rate for each in (self.before, self.after)]
        return None not in rates and rates[0] != rates[1]

    @property
    def is_significant(self) -> bool:
        """Says whether its pass rate changed by more than noise."""
        return self.p_value is not None and self.p_value < SIGNIFICANCE_LEVEL

    @property
    def is_new_failure(self) -> bool:
        """Says whether the case fails and was not there before."""
        return self.before is None and self.after is not None and self.after.passes is False


@dataclass(frozen=True, slots=True)
class Significance:
    """Whether a difference is more than noise.

    Attributes:
        test: `mcnemar` for the same cases before and after, `fisher` for different ones.
        p_value: how often chance alone makes so large a difference.
        cases: how many cases it looked at; both sides together for `fisher`.
    """

    test: Literal["mcnemar", "fisher"]
    p_value: float
    cases: int

    @property
    def is_significant(self) -> bool:
        """Says whether the difference is more than noise."""
        return self.p_value < SIGNIFICANCE_LEVEL


class Shortage(NamedTuple):
    """Iterations that are too few: had one case passed always and failed always now, it could still be noise.

    Attributes:
        iterations: how many there are on both sides.
        cases: for how many cases p-values are corrected.
        needed: how many there must be on both sides.
    """

    iterations: int
    cases: int
    needed: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A test before and after.

    Attributes:
        name: the test's name.
        before: what it was compared with: a run's id, or a baseline file.
        after: the run that was compared.
        cases: in order of number, those that are gone last.
        significance: None when nothing was decided on one side.
        shortage: None when the iterations are enough to show that one case broke, or no case is on both sides.
        not_asked: how many cases are left out because the run before, and the run now, did not ask them.
    """

    name: str
    before: str
    after: str
    cases: tuple[CaseComparison, ...]
    significance: Significance | None = None
    shortage: Shortage | None = None
    not_asked: tuple[int, int] = (0, 0)

    def of(self, standing: Standing) -> tuple[CaseComparison, ...]:
        """Gives the cases of which a thing became."""
        return tuple(each for each in self.cases if each.standing is standing)

    @property
    def rates(self) -> tuple[float | None, float | None]:
        """Gives the share of cases that pass, before and after; None where none was decided."""
        return _share(each.before for each in self.cases), _share(each.after for each in self.cases)

    def is_regression(self, fail_on: FailOn) -> bool:
        """Says whether the test became worse.

        For `broken`, one case is enough that passed and now fails. For `significant` it must
        be more than noise: all cases taken together, or the pass rate of one.
        """
        if fail_on == "broken":
            return bool(self.of(Standing.BROKEN))
        return self._is_worse() or any(_has_slipped(each) for each in self.cases)

    def _is_worse(self) -> bool:
        if self.significance is None or not self.significance.is_significant:
            return False
        if self.significance.test == "mcnemar":
            up, down = flips(self.cases)
            return down > up
        before, after = self.rates
        return (after or 0.0) < (before or 0.0)


def flips(cases: Iterable[CaseComparison]) -> tuple[int, int]:
    """Counts the cases that failed and pass, and those that passed and fail; flaky ones by their majority, too."""
    sides = [(each.before.passes, each.after.passes) for each in cases if each.before and each.after]
    return sides.count((False, True)), sides.count((True, False))


def _share(sides: Iterable[CaseCounts | None]) -> float | None:
    passes = [each.passes for each in sides if each is not None and each.passes is not None]
    return sum(passes) / len(passes) if passes else None


def _has_slipped(case: CaseComparison) -> bool:
    if not case.is_significant or case.before is None or case.after is None:
        return False
    return (case.after.pass_rate or 0.0) < (case.before.pass_rate or 0.0)
