"""Statistics of a run, and the comparison of two runs, as values."""

from __future__ import annotations

import re
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

    @property
    def decided(self) -> int:
        """Return in how many iterations the case passed or failed."""
        return self.passed + self.failed


@dataclass(frozen=True, slots=True)
class CaseCounts:
    """The verdicts of one case over all iterations, as the run counts them, or over the runs of a baseline.

    Attributes:
        utterance: what people know the case by: its label if it has several turns and a label.
        is_averaged: whether the case counts by means over all iterations, which are one observation then.
        runs: the counts of each run of a baseline, the latest last; empty if there is only one run.
        checks: the fingerprint of the case's expectations (`model.fingerprints`); empty if it is not known.
        asked: what was asked, if `utterance` is a label; empty otherwise.
        passed: in how many iterations nothing failed and something was judged, partly judged ones included.
        partly_judged: how many of the passed iterations have undecided results.
        quarantined: in how many iterations the case was in quarantine, which are in no other number.
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
    partly_judged: int = 0
    quarantined: int = 0

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

    @property
    def decided_runs(self) -> list[RunCounts]:
        """Return those of the runs in which the case was decided."""
        return [run for run in self.by_run if run.decided]

    @property
    def observed_runs(self) -> tuple[int, int]:
        """Return in how many runs the case passed, in most of the decided iterations, and in how many it did not."""
        runs = self.decided_runs
        passed = sum(run.passed > run.failed for run in runs)
        return passed, len(runs) - passed

    def __add__(self, other: CaseCounts) -> CaseCounts:
        """Return the counts of this case with those of more answers to it."""
        return replace(
            self,
            runs=(),
            passed=self.passed + other.passed,
            failed=self.failed + other.failed,
            errors=self.errors + other.errors,
            undecided=self.undecided + other.undecided,
            partly_judged=self.partly_judged + other.partly_judged,
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


_CHECK: Final = re.compile(r"(\d{1,9})/(\d{1,9}) (\d{1,9})/(\d{1,9})")


class JudgeCheck(NamedTuple):
    """How often a judge was right about labelled pairs: what it passed of right answers, and failed of wrong ones."""

    passed: int
    right: int
    failed: int
    wrong: int

    @property
    def text(self) -> str:
        """Return the check as runs record it, such as `45/50 36/40`."""
        return f"{self.passed}/{self.right} {self.failed}/{self.wrong}"

    @classmethod
    def read(cls, text: str) -> JudgeCheck | None:
        """Return a recorded check; None if it is not one, or has no right or no wrong answer."""
        found = _CHECK.fullmatch(text)
        check = cls(*map(int, found.groups())) if found else None
        return check if check and 0 < check.right >= check.passed and 0 < check.wrong >= check.failed else None


class CorrectedRate(NamedTuple):
    """The share of answers that pass, as the judge says and without the errors that it made in its check.

    Attributes:
        raw: the share of the answers that it judged.
        answers: how many these are.
        rate: the corrected share.
        interval: its 95 % confidence interval.
        check: the judge's check.
    """

    raw: float
    answers: int
    rate: float
    interval: Interval
    check: JudgeCheck


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
        corrected: the share of answers that a checked judge passes, corrected for its errors; None without a check.
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
    corrected: CorrectedRate | None = None

    @property
    def flaky(self) -> tuple[CaseCounts, ...]:
        """Return the cases that passed in some iterations and failed in others."""
        return tuple(case for case in self.cases if case.is_flaky)


Change = Literal["worse", "better", "same"]

SIGNIFICANCE_LEVEL: Final = 0.05
"""The chance of a false alarm of a command, over all its tests, cases and kinds of alarm."""


class Standing(StrEnum):
    """The change of a case since the baseline.

    BROKEN: its pass rate fell significantly, or it passed before and failed all answers now, and again each time it was
    asked again. SUSPECT: it passed before and failed all answers now. UNJUDGED: it passed before, and no rater could
    judge it now. BACK: it was one of these, and passed when it was asked again. FLAKY_NOW: it always passed before, and
    passed and failed now. FLAKY: it passed and failed both before and now. FIXED: its pass rate rose significantly.
    MAYBE_FIXED: it failed and now passes, but chance could explain that. ERROR: it ended in errors in one of the runs,
    now in more iterations than it passed or failed. UNDECIDED: no rater judged it before or now.
    """

    BROKEN = "broken"
    SUSPECT = "suspect"
    UNJUDGED = "no longer judged"
    BACK = "back"
    FLAKY_NOW = "flaky now"
    FIXED = "fixed"
    MAYBE_FIXED = "maybe fixed"
    STILL_FAILING = "still failing"
    STILL_PASSING = "still passing"
    FLAKY = "flaky"
    NEW = "new"
    GONE = "gone"
    ERROR = "error"
    UNDECIDED = "undecided"


SUSPECTS: Final = (Standing.SUSPECT, Standing.UNJUDGED)
"""Cases that count only after they have been asked again."""


@dataclass(frozen=True, slots=True)
class CaseComparison:
    """One case before and after.

    Attributes:
        number: the number now, or before if the case was removed.
        before: the counts before; None for a new case.
        after: the counts now; None for a removed case.
        p_value: the one-sided p-value of the change of its pass rate, corrected for everything that the command tests;
            None if there is only one observation before and one now.
        again: the counts of the answers after it was asked again; None if it was not.
        needed: how many more answers must fail, and none pass, to show that a suspect case broke; None if it is not
            suspect, or failing answers cannot show it.
    """

    standing: Standing
    number: int
    utterance: str
    before: CaseCounts | None
    after: CaseCounts | None
    p_value: float | None = None
    again: CaseCounts | None = None
    needed: int | None = None

    @property
    def change(self) -> Change:
        """Return how its pass rate changed; `same` if one of the runs did not decide it."""
        before, after = (None if side is None else side.pass_rate for side in (self.before, self.after))
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
        """Return whether it is suspect, and some answers ended in errors when it was asked again."""
        return self.standing in SUSPECTS and self.again is not None and self.again.errors > 0

    @property
    def has_only_errors(self) -> bool:
        """Return whether it was asked again, and every answer ended in an error."""
        again = self.again
        return again is not None and again.errors > 0 and not (again.decided or again.undecided)

    @property
    def left_to_ask(self) -> int:
        """Return how many more answers must fail to show that a suspect case broke; 0 if no answer can."""
        if self.standing not in SUSPECTS or self.needed is None:
            return 0
        return max(0, self.needed - (self.again.decided + self.again.undecided if self.again else 0))


@dataclass(frozen=True, slots=True)
class Significance:
    """The significance of the change of several cases together.

    Attributes:
        test: `permutation` for the same cases before and after, `fisher` for different ones.
        p_value: the one-sided p-value, corrected for everything that the command tests.
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

    @property
    def is_significantly(self) -> Change:
        """Return how the pass rate changed significantly; `same` if it did not."""
        return self.change if self.is_significant else "same"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A test before and after.

    Attributes:
        before: the id of the earlier run, or a baseline; `after` is the id of the run.
        cases: in order of number, removed cases last.
        significance: None if one run decided nothing.
        not_asked: the numbers of cases that are skipped because the earlier run, and this run, did not run them.
        changes: what changed in the test itself.
        is_uniform: whether answers to a case never differed within a run, so that a run counts as one answer.
        is_alike: whether answers to a case are known to differ between runs and not within one: failing again in the
            same run shows nothing.
        may_be_noise: whether a case is broken unless answers differ between runs and not within one, which a baseline
            of one run cannot show.
        runs: the number of runs in the baseline, the most of any case.
        probes: the numbers of passing cases that must be asked again to tell whether answers differ within a run, and
            how often each.
    """

    name: str
    before: str
    after: str
    cases: tuple[CaseComparison, ...]
    significance: Significance | None = None
    not_asked: tuple[int, int] = (0, 0)
    changes: ChangesOfTest = field(default_factory=ChangesOfTest)
    is_uniform: bool = False
    is_alike: bool = False
    may_be_noise: bool = False
    runs: int = 1
    probes: tuple[tuple[int, int], ...] = ()

    def of(self, *standings: Standing) -> tuple[CaseComparison, ...]:
        """Return the cases with one of these standings."""
        return tuple(case for case in self.cases if case.standing in standings)

    @property
    def suspects(self) -> tuple[CaseComparison, ...]:
        """Return the cases that passed before, did not pass now, and are not known to be broken."""
        return self.of(*SUSPECTS)

    @property
    def lost(self) -> tuple[CaseComparison, ...]:
        """Return the cases that passed before and now end in errors."""
        return tuple(case for case in self.cases if case.is_lost)

    @property
    def is_significantly(self) -> Change:
        """Return how all cases together changed significantly; `same` if they did not."""
        return self.significance.is_significantly if self.significance else "same"

    def is_regression(self, *, suspects_fail: bool = False) -> bool:
        """Return whether the test became worse.

        A broken case is a regression, and so are one that passed and now ends in errors, and a significant fall of all
        cases together. With `suspects_fail`, so is a suspect case.
        """
        if self.lost or self.of(Standing.BROKEN) or self.is_significantly == "worse":
            return True
        return suspects_fail and bool(self.suspects)


@dataclass(frozen=True, slots=True)
class SuiteComparison:
    """All tests of a command before and after.

    Attributes:
        significance: of all cases of all tests together; None if there is only one test, or nothing was decided.
    """

    tests: tuple[Comparison, ...] = ()
    significance: Significance | None = None

    @property
    def is_significantly(self) -> Change:
        """Return how all tests together changed significantly; `same` if they did not, or there is only one test."""
        return self.significance.is_significantly if self.significance else "same"

    @property
    def suspects(self) -> tuple[CaseComparison, ...]:
        """Return the suspect cases of all tests."""
        return tuple(case for test in self.tests for case in test.suspects)


def change_of(before: float, after: float) -> Change:
    """Return how a pass rate changed."""
    if before == after:
        return "same"
    return "worse" if after < before else "better"
