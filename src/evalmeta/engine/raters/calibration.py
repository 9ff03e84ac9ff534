"""Calibration: how often a rater agrees with people about labelled pairs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalmeta import limits
from evalmeta.engine.raters.judge import Rubric
from evalmeta.errors import RaterError
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evalmeta.engine.raters.judge import Rater, Rating
    from evalmeta.engine.raters.labels import Pair


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
        return self.verdict in {Verdict.PASS, Verdict.FAILURE}

    @property
    def is_right(self) -> bool:
        """Say whether the rater agrees with the person."""
        return self.is_decided and self.pair.right == (self.verdict is Verdict.PASS)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often a rater agrees with people.

    Attributes:
        pairs: The number of all pairs; the other counts add up to it.
        wrong_passes: The wrong answers that the rater passed.
        wrong_failures: The right answers that the rater failed.
    """

    pairs: int
    right: int
    wrong_passes: int
    wrong_failures: int
    undecided: int
    errors: int

    @property
    def decided(self) -> int:
        """Return the number of pairs that passed or failed."""
        return self.right + self.wrong_passes + self.wrong_failures

    @property
    def accuracy(self) -> float | None:
        """Return the share of right decisions among the decided pairs, 0 to 1; None if none was decided."""
        return self.right / self.decided if self.decided else None

    @property
    def coverage(self) -> float:
        """Return the share of pairs that were decided, 0 to 1."""
        return self.decided / max(1, self.pairs)


async def calibrate(pairs: Sequence[Pair], rater: Rater) -> tuple[RatedPair, ...]:
    """Rate every pair, a few at a time, in order; a RaterError is an ERROR of its pair, and None is undecided."""
    free = asyncio.Semaphore(limits.RATER_CONCURRENCY)

    async def rate(pair: Pair) -> RatedPair:
        async with free:
            return await _rate(pair, rater)

    return tuple(await asyncio.gather(*map(rate, pairs)))


async def _rate(pair: Pair, rater: Rater) -> RatedPair:
    rubric = Rubric("bot_response_rating", pair.utterance, pair.actual, expected=pair.expected)
    try:
        returned = rater(rubric)
        rating: Rating | None = await returned if isinstance(returned, Awaitable) else returned
    except RaterError as error:
        return RatedPair(pair, Verdict.ERROR, "", str(error))
    if rating is None:
        return RatedPair(pair, Verdict.UNDECIDED, "", "the rater does not judge responses")
    rule = rating.rule or rating.rater
    return RatedPair(pair, rating.verdict, "" if rating.verdict is Verdict.UNDECIDED else rule, rating.explanation)


def agreement(rated: Iterable[RatedPair]) -> Agreement:
    """Count how often the rater agrees."""
    pairs = list(rated)
    wrong = [each.verdict for each in pairs if each.is_decided and not each.is_right]
    verdicts = [each.verdict for each in pairs]
    return Agreement(
        pairs=len(pairs),
        right=sum(each.is_right for each in pairs),
        wrong_passes=wrong.count(Verdict.PASS),
        wrong_failures=wrong.count(Verdict.FAILURE),
        undecided=verdicts.count(Verdict.UNDECIDED),
        errors=verdicts.count(Verdict.ERROR),
    )


def agreement_by_rule(rated: Sequence[RatedPair]) -> dict[str, Agreement]:
    """Count the decided pairs of each rule, sorted by the names of the rules."""
    rules = sorted({each.rule for each in rated if each.is_decided})
    return {rule: agreement(each for each in rated if each.is_decided and each.rule == rule) for rule in rules}
