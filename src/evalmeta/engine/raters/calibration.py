"""How far a rater can be trusted: what it says of pairs that people have judged."""

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


_METRIC = "bot_response_rating"


@dataclass(frozen=True, slots=True)
class Pair:
    """An expectation and an answer that a person has judged.

    Attributes:
        right: whether the answer meets the expectation.
        rule: the rule that must decide, where one must.
        split: the part of the set that it belongs to, such as `held-out`.
    """

    expected: str
    actual: str
    right: bool
    utterance: str = ""
    rule: str = ""
    split: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair and what the rater said of it.

    Attributes:
        verdict: PASS, FAILURE or UNDECIDED; ERROR when it could not be rated.
        rule: the rule that decided, or the rater's name when it goes by none; empty when none decided.
        explanation: the rater's own words, or its error.
    """

    pair: Pair
    verdict: Verdict
    rule: str
    explanation: str

    @property
    def is_decided(self) -> bool:
        """Says whether the rater passed or failed the answer."""
        return self.verdict in {Verdict.PASS, Verdict.FAILURE}

    @property
    def is_right(self) -> bool:
        """Says whether the rater decided as the person did."""
        return self.is_decided and self.pair.right == (self.verdict is Verdict.PASS)


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of what a rater said.

    Attributes:
        pairs: all that were asked; the other counts are of these.
        wrong_passes: wrong answers that it passed, the worst it can do.
        wrong_failures: right answers that it failed.
    """

    pairs: int
    right: int
    wrong_passes: int
    wrong_failures: int
    undecided: int
    errors: int

    @property
    def decided(self) -> int:
        """Counts the pairs that were passed or failed."""
        return self.right + self.wrong_passes + self.wrong_failures

    @property
    def accuracy(self) -> float | None:
        """Gives the share of decided pairs that were decided rightly, 0 to 1; None when none were decided."""
        return self.right / self.decided if self.decided else None

    @property
    def coverage(self) -> float:
        """Gives the share of pairs that were decided, 0 to 1."""
        return self.decided / max(1, self.pairs)


async def calibrate(pairs: Sequence[Pair], rater: Rater) -> tuple[Judged, ...]:
    """Asks a rater about every pair, a few at a time; the order is kept.

    What cannot be rated is an ERROR of that pair, and None of a rater is undecided.
    """
    free = asyncio.Semaphore(limits.RATER_CONCURRENCY)

    async def judge(pair: Pair) -> Judged:
        async with free:
            return await _judge(pair, rater)

    return tuple(await asyncio.gather(*map(judge, pairs)))


def tally(judged: Iterable[Judged]) -> Tally:
    """Counts what was said of pairs."""
    each = list(judged)
    wrong = [one.verdict for one in each if one.is_decided and not one.is_right]
    verdicts = [one.verdict for one in each]
    return Tally(
        pairs=len(each),
        right=sum(one.is_right for one in each),
        wrong_passes=wrong.count(Verdict.PASS),
        wrong_failures=wrong.count(Verdict.FAILURE),
        undecided=verdicts.count(Verdict.UNDECIDED),
        errors=verdicts.count(Verdict.ERROR),
    )


def tally_by_rule(judged: Sequence[Judged]) -> dict[str, Tally]:
    """Counts by the rule that decided, in the order of the rules' names."""
    rules = sorted({one.rule for one in judged if one.is_decided})
    return {rule: tally(one for one in judged if one.is_decided and one.rule == rule) for rule in rules}


async def _judge(pair: Pair, rater: Rater) -> Judged:
    rubric = Rubric(_METRIC, pair.utterance, pair.actual, expected=pair.expected)
    try:
        given = rater(rubric)
        rating: Rating | None = await given if isinstance(given, Awaitable) else given
    except RaterError as error:
        return Judged(pair, Verdict.ERROR, "", str(error))
    if rating is None:
        return Judged(pair, Verdict.UNDECIDED, "", "the rater does not judge responses")
    rule = rating.rule or rating.rater
    return Judged(pair, rating.verdict, "" if rating.verdict is Verdict.UNDECIDED else rule, rating.explanation)
