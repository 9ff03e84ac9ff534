"""What a run's numbers say, as values: counts of each case, intervals, latencies, tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from evalmeta.model.generated import Tokens

__all__ = ["CaseCounts", "Interval", "Latency", "Measure", "RunStatistics"]


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
