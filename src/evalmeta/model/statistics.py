"""Statistics of a run as values."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from evalmeta.model.generated_data import Tokens
    from evalmeta.model.spending import Spent


class Interval(NamedTuple):
    """A confidence interval of a share, 0 to 1."""

    low: float
    high: float


class PassAtK(NamedTuple):
    """The estimated chances of k answers to the same case, 0 to 1."""

    k: int
    any_passes: float  # at least one of k answers passes (pass@k)
    all_pass: float  # all k answers pass (pass^k)
    cases: int  # the number of cases with at least k decided answers


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
    """The verdicts of one case over all iterations, as the run counts them, or over the runs of a baseline."""

    number: int
    utterance: str  # what people know the case by: its label if it has several turns and a label
    passed: int = 0  # in how many iterations nothing failed and something was judged, partly judged ones included
    failed: int = 0
    errors: int = 0
    undecided: int = 0
    is_averaged: bool = False  # whether the case counts by means over all iterations, which are one observation then
    runs: tuple[RunCounts, ...] = ()  # of each run of a baseline, the latest last; empty if there is only one
    checks: str = ""  # the fingerprint of the case's expectations (`model.fingerprints`); empty if it is not known
    asked: str = ""  # what was asked, if `utterance` is a label; empty otherwise
    partly_judged: int = 0  # how many of the passed iterations have undecided results
    quarantined: int = 0  # in how many iterations the case was in quarantine, which are in no other number

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
    def is_judged(self) -> bool:
        """Return whether the case was decided, and did not mostly end in errors."""
        return bool(self.decided) and not self.has_mostly_errors

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
        match = _CHECK.fullmatch(text)
        check = cls(*map(int, match.groups())) if match else None
        return check if check and 0 < check.right >= check.passed and 0 < check.wrong >= check.failed else None


class CorrectedRate(NamedTuple):
    """The share of answers that pass, as the judge says and without the errors that it made in its check."""

    raw: float  # the share of the answers that it judged
    answers: int  # how many these are
    rate: float  # the corrected share
    interval: Interval  # its 95 % confidence interval
    check: JudgeCheck  # the judge's check


@dataclass(frozen=True, slots=True)
class RunStatistics:
    """The numbers of a run over its cases and iterations."""

    cases: tuple[CaseCounts, ...]  # counts of each case, in order of number
    intervals: tuple[Interval | None, ...]  # of each case's pass rate, 95 %, in the same order; None if undecided
    interval: Interval | None  # of the run's pass rate, clustered by case; None if iterations are averaged
    latency: Latency | None  # the latency of answers; None if it is unknown
    timed: int  # the number of answers with a known latency
    tokens: Tokens | None  # the sums over the answers that report tokens; None means unknown
    answers: int  # the number of answers
    told_tokens: int  # the number of answers that report tokens
    measures: tuple[Measure, ...] = ()  # of results that are measured and not judged, in the order of the first
    functions: tuple[Measure, ...] = ()  # the shares of results that passed, of each function that judges answers
    pass_at: tuple[PassAtK, ...] = ()  # for k from 1 to the number of iterations; empty if all count by means
    corrected: CorrectedRate | None = None  # None if the judge was not checked
    spent: tuple[Spent, ...] = ()  # what the answers and judgements cost, by role and model
    first_token: Latency | None = None  # the time until the first part of streamed answers; None if none was streamed

    @property
    def flaky(self) -> tuple[CaseCounts, ...]:
        """Return the cases that passed in some iterations and failed in others."""
        return tuple(case for case in self.cases if case.is_flaky)
