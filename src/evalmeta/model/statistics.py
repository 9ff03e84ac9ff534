"""Statistics of a run, and the comparison of two runs, as values."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from evalmeta.model.fingerprints import ChangesOfTest

if TYPE_CHECKING:
    from evalmeta.model.generated_data import Tokens


class Interval(NamedTuple):
    """A confidence interval of a share, 0 to 1."""

    low: float
    high: float


class PassAtK(NamedTuple):
    """The estimated chances of k answers to the same case, 0 to 1.

    Attributes:
        any_passes: at least one of k answers passes (pass@k).
        all_pass: all k answers pass (pass^k).
        cases: the number of cases with at least k decided answers.
    """

    k: int
    any_passes: float
    all_pass: float
    cases: int


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


class RunCounts(NamedTuple):
    """The verdicts of one case in one run; all are 0 if the run did not ask it."""

    passed: int = 0
    failed: int = 0
    errors: int = 0
    undecided: int = 0


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """The verdicts of one case over all iterations, as the run counts them, or over the runs of a baseline.

    Attributes:
        utterance: what people know the case by: its label if it has several turns and a label.
        is_averaged: whether the case counts by means over all iterations, which are one observation then.
        runs: the counts of each run of a baseline, the latest last; empty if there is only one run.
        checks: the fingerprint of the case's expectations (`model.fingerprints`); empty if it is not known.
        asked: what was asked, if `utterance` is a label; empty otherwise.
    """

    number: int
    utterance: str
    passed: int = 0
    failed: int = 0
    errors: int = 0
    undecided: int = 0
    is_averaged: bool = False
    runs: tuple[RunCounts, ...] = ()
    checks: str = ""
    asked: str = ""

    @classmethod
    def of_runs(
        cls, number: int, utterance: str, runs: tuple[RunCounts, ...], *, checks: str = "", asked: str = ""
    ) -> CaseCounts:
        """Return the counts of a case over the runs of a baseline."""
        passed, failed, errors, undecided = map(sum, zip(*runs, strict=True))
        runs = runs if len(runs) > 1 else ()
        return cls(number, utterance, passed, failed, errors, undecided, runs=runs, checks=checks, asked=asked)

    @property
    def by_run(self) -> tuple[RunCounts, ...]:
        """Return the counts of each run, the latest last; iterations that are averaged are one observation."""
        if self.runs:
            return self.runs
        if self.is_averaged and self.decided:
            return (RunCounts(int(self.passed > 0), int(self.failed > 0), self.errors, self.undecided),)
        return (RunCounts(self.passed, self.failed, self.errors, self.undecided),)

    def __add__(self, other: CaseCounts) -> CaseCounts:
        """Return the counts of this case with those of more answers to it."""
        return replace(
            self,
            runs=(),
            passed=self.passed + other.passed,
            failed=self.failed + other.failed,
            errors=self.errors + other.errors,
            undecided=self.undecided + other.undecided,
        )

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
    def has_mostly_errors(self) -> bool:
        """Return whether the case ended in errors in more iterations than it passed or failed."""
        return self.errors > self.decided

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
        interval: the same for the run's pass rate, clustered by case; None if cases are averaged over several
            iterations.
        latency: the latency of answers; None if it is unknown.
        timed: the number of answers with a known latency.
        tokens: the sums over the answers that report tokens; None means unknown.
        answers: the number of answers.
        told_tokens: the number of answers that report tokens.
        measures: the means of results that are measured and not judged, in the order of their first results.
        pass_at: pass@k and pass^k for k from 1 to the number of iterations; empty if every case counts by its mean.
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
    pass_at: tuple[PassAtK, ...] = ()

    @property
    def flaky(self) -> tuple[CaseCounts, ...]:
        """Return the cases that passed in some iterations and failed in others."""
        return tuple(each for each in self.cases if each.is_flaky)


FailOn = Literal["broken", "significant"]
Change = Literal["worse", "better", "same"]

# A difference is significant if its corrected p-value is lower.
SIGNIFICANCE_LEVEL: Final = 0.05


class Standing(StrEnum):
    """The change of a case between two runs; a case passes if it passed in more than half of its decided iterations.

    BROKEN and FIXED: its pass rate fell or rose significantly. SUSPECT and MAYBE_FIXED: it passed and now fails, or the
    reverse, but chance could explain that. BACK: it was suspect, and passed when it was asked again. FLAKY: it passed
    in some iterations and failed in others in both runs, and the rates do not differ significantly. ERROR: it ended in
    errors in one of the runs, now in more iterations than it passed or failed. UNDECIDED: one of the runs did not
    decide it for other reasons.
    """

    BROKEN = "broken"
    SUSPECT = "suspect"
    BACK = "back"
    FIXED = "fixed"
    MAYBE_FIXED = "maybe fixed"
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
        p_value: the one-sided p-value of the change of its pass rate, corrected for the number of tests; None if
            neither run has iterations. If the case was asked again, that of the new answers.
        again: the counts of the answers that confirm or refute that it broke; None if it was not asked again.
    """

    standing: Standing
    number: int
    utterance: str
    before: CaseCounts | None
    after: CaseCounts | None
    p_value: float | None = None
    again: CaseCounts | None = None

    @property
    def change(self) -> Change:
        """Return how its pass rate changed; `same` if one of the runs did not decide it."""
        before, after = (None if each is None else each.pass_rate for each in (self.before, self.after))
        return "same" if before is None or after is None else change_of(before, after)

    @property
    def is_significant(self) -> bool:
        """Return whether its pass rate changed significantly."""
        return self.p_value is not None and self.p_value < SIGNIFICANCE_LEVEL

    @property
    def is_new_failure(self) -> bool:
        """Return whether the case fails, and was never judged before."""
        known = self.before is not None and self.before.passes is not None
        return not known and self.after is not None and self.after.passes is False

    @property
    def is_lost(self) -> bool:
        """Return whether the case passed before and now ends in errors."""
        if self.standing is not Standing.ERROR or self.before is None or self.after is None:
            return False
        return self.before.passes is True and not self.before.has_mostly_errors

    @property
    def is_unconfirmed(self) -> bool:
        """Return whether it is suspect, and was asked again with no other result than errors."""
        return self.standing is Standing.SUSPECT and bool(self.again and self.again.errors and not self.again.decided)


@dataclass(frozen=True, slots=True)
class Significance:
    """The significance of the change of all cases together.

    Attributes:
        test: `permutation` for the same cases before and after, `fisher` for different ones.
        p_value: the one-sided p-value, corrected for the tests of single cases.
        cases: the number of tested cases; of both runs together for `fisher`.
        rates: the mean pass rate of these cases, before and after, 0 to 1.
    """

    test: Literal["permutation", "fisher"]
    p_value: float
    cases: int
    rates: tuple[float, float]

    @property
    def change(self) -> Change:
        """Return how the pass rate changed."""
        return change_of(*self.rates)

    @property
    def is_significant(self) -> bool:
        """Return whether the difference is significant."""
        return self.p_value < SIGNIFICANCE_LEVEL


class Shortage(NamedTuple):
    """Too few iterations: a case that always passed before and always fails now would not be significant.

    Attributes:
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
        changes: what changed in the test itself.
    """

    name: str
    before: str
    after: str
    cases: tuple[CaseComparison, ...]
    significance: Significance | None = None
    shortage: Shortage | None = None
    not_asked: tuple[int, int] = (0, 0)
    changes: ChangesOfTest = field(default_factory=ChangesOfTest)

    def of(self, *standings: Standing) -> tuple[CaseComparison, ...]:
        """Return the cases with one of these standings."""
        return tuple(each for each in self.cases if each.standing in standings)

    @property
    def lost(self) -> tuple[CaseComparison, ...]:
        """Return the cases that passed before and now end in errors."""
        return tuple(each for each in self.cases if each.is_lost)

    @property
    def is_significantly(self) -> Change:
        """Return how all cases together changed significantly; `same` if they did not."""
        significance = self.significance
        return significance.change if significance and significance.is_significant else "same"

    def is_regression(self, fail_on: FailOn) -> bool:
        """Return whether the test became worse.

        A broken case is a regression, and so is one that passed and now ends in errors. For `significant`, a
        significant fall of all cases together is one too; for `broken`, each case that passed and now fails, unless it
        passed when it was asked again.
        """
        if self.lost or self.of(Standing.BROKEN):
            return True
        return bool(self.of(Standing.SUSPECT)) if fail_on == "broken" else self.is_significantly == "worse"


def change_of(before: float, after: float) -> Change:
    """Return how a pass rate changed."""
    if before == after:
        return "same"
    return "worse" if after < before else "better"
