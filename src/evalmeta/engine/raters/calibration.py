"""Calibration: how well a rater agrees with people about labelled pairs.

Sources: J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20 (1960),
for kappa; E. B. Wilson (see `engine.statistics`) for intervals.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.engine.raters.judge import Rubric
from evalmeta.engine.statistics import wilson
from evalmeta.errors import RaterError
from evalmeta.model.run import DECIDED, Verdict
from evalmeta.model.statistics import JudgeCheck

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalmeta.engine.raters.judge import Rater, Rating
    from evalmeta.engine.raters.labels import Pair
    from evalmeta.model.statistics import Interval


@dataclass(frozen=True, slots=True)
class RatedPair:
    """A pair and the rater's verdict.

    Attributes:
        verdict: PASS, FAILURE or UNDECIDED; ERROR if the rater failed.
        rule: The rule that decided, or the rater's name if it has no rules; empty if undecided.
        explanation: The rater's explanation, or its error.
    """

    pair: Pair
    verdict: Verdict
    rule: str
    explanation: str

    @property
    def is_decided(self) -> bool:
        """Say whether the rater passed or failed the answer."""
        return self.verdict in DECIDED

    @property
    def is_right(self) -> bool:
        """Say whether the rater agrees with the person."""
        return self.is_decided and self.pair.right == (self.verdict is Verdict.PASS)


@dataclass(frozen=True, slots=True)
class Share:
    """A number of pairs out of several."""

    count: int
    total: int

    @property
    def value(self) -> float | None:
        """Return the share, 0 to 1; None of no pairs."""
        return self.count / self.total if self.total else None

    @property
    def interval(self) -> Interval | None:
        """Return Wilson's 95 % interval; None of no pairs."""
        return wilson(self.count, self.total) if self.total else None


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often a rater agrees with people.

    Attributes:
        pairs: The number of all pairs; the other counts add up to it.
        right_passes: The right answers that the rater passed.
        right_failures: The wrong answers that the rater failed.
        wrong_passes: The wrong answers that the rater passed.
        wrong_failures: The right answers that the rater failed.
    """

    pairs: int
    right_passes: int
    right_failures: int
    wrong_passes: int
    wrong_failures: int
    undecided: int
    errors: int

    @property
    def right(self) -> int:
        """Return the number of right decisions."""
        return self.right_passes + self.right_failures

    @property
    def decided(self) -> int:
        """Return the number of pairs that passed or failed."""
        return self.right + self.wrong_passes + self.wrong_failures

    @property
    def agreement(self) -> Share:
        """Return the right decisions among the decided pairs."""
        return Share(self.right, self.decided)

    @property
    def coverage(self) -> Share:
        """Return the decided pairs among all pairs."""
        return Share(self.decided, self.pairs)

    @property
    def true_positives(self) -> Share:
        """Return the passed answers among the decided right ones."""
        return Share(self.right_passes, self.right_passes + self.wrong_failures)

    @property
    def true_negatives(self) -> Share:
        """Return the failed answers among the decided wrong ones."""
        return Share(self.right_failures, self.right_failures + self.wrong_passes)

    @property
    def judge_check(self) -> JudgeCheck:
        """Return the counts of right decisions, by which reports correct pass rates."""
        passed, failed = self.true_positives, self.true_negatives
        return JudgeCheck(passed.count, passed.total, failed.count, failed.total)

    @property
    def kappa(self) -> float | None:
        """Return Cohen's kappa of the decided pairs: 1 is perfect agreement, 0 is what chance gives.

        With the observed agreement p and the agreement q that the shares of both sides' verdicts give by chance, it is
        (p - q) / (1 - q). It is None if no pair is decided, or if both sides give everything the same verdict.
        """
        total = self.decided
        passed = (self.right_passes + self.wrong_passes) * (self.right_passes + self.wrong_failures)
        failed = (self.right_failures + self.wrong_failures) * (self.right_failures + self.wrong_passes)
        by_chance = (passed + failed) / total**2 if total else 1.0
        return None if by_chance == 1 else (self.right / total - by_chance) / (1 - by_chance)


@dataclass(frozen=True, slots=True)
class RatingTask:
    """What is rated in every pair, and the minimum rating, 0 to 5, of an answer that passes."""

    metric: str = "bot_response_rating"
    threshold: float = 3.0

    def rubric(self, pair: Pair) -> Rubric:
        """Return what a rater receives."""
        return Rubric(self.metric, pair.utterance, pair.actual, expected=pair.expected, threshold=self.threshold)


RESPONSES: Final = RatingTask()


async def calibrate(pairs: Sequence[Pair], rater: Rater, task: RatingTask = RESPONSES) -> tuple[RatedPair, ...]:
    """Rate every pair, a few at a time, in order; a RaterError is an ERROR of its pair, and None is undecided."""
    free = asyncio.Semaphore(limits.RATER_CONCURRENCY)

    async def rate(pair: Pair) -> RatedPair:
        async with free:
            return await _rate(pair, rater, task)

    return tuple(await asyncio.gather(*map(rate, pairs)))


async def _rate(pair: Pair, rater: Rater, task: RatingTask) -> RatedPair:
    try:
        returned = rater(task.rubric(pair))
        rating: Rating | None = await returned if isinstance(returned, Awaitable) else returned
    except RaterError as error:
        return RatedPair(pair, Verdict.ERROR, "", str(error))
    if rating is None:
        return RatedPair(pair, Verdict.UNDECIDED, "", f"the rater does not judge {task.metric}")
    rule = rating.rule or rating.rater
    return RatedPair(pair, rating.verdict, "" if rating.verdict is Verdict.UNDECIDED else rule, rating.explanation)


def agreement(rated: Iterable[RatedPair]) -> Agreement:
    """Count how often the rater agrees."""
    counts = Counter((pair.verdict, pair.pair.right) for pair in rated)
    return Agreement(
        pairs=counts.total(),
        right_passes=counts[Verdict.PASS, True],
        right_failures=counts[Verdict.FAILURE, False],
        wrong_passes=counts[Verdict.PASS, False],
        wrong_failures=counts[Verdict.FAILURE, True],
        undecided=counts[Verdict.UNDECIDED, True] + counts[Verdict.UNDECIDED, False],
        errors=counts[Verdict.ERROR, True] + counts[Verdict.ERROR, False],
    )


def agreement_by_rule(rated: Sequence[RatedPair]) -> dict[str, Agreement]:
    """Count the decided pairs of each rule, sorted by the names of the rules."""
    rules = sorted({pair.rule for pair in rated if pair.is_decided})
    return {rule: agreement(pair for pair in rated if pair.is_decided and pair.rule == rule) for rule in rules}
