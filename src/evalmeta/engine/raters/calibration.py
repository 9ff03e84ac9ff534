"""Calibration: how well a rater agrees with people about labelled pairs, also with other forms of answers and examples.

Sources: J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20 (1960),
for kappa; E. B. Wilson (see `engine.statistics`) for intervals; T. Ye et al., "Justice or prejudice? Quantifying biases
in LLM-as-a-judge" (2024), for verbosity and formatting.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.engine.interfaces import Rater, Rating, Rubric
from evalmeta.engine.statistics import wilson
from evalmeta.errors import RaterError
from evalmeta.model.run import DECIDED, Verdict
from evalmeta.model.statistics import Interval, JudgeCheck

if TYPE_CHECKING:
    from evalmeta.engine.raters.labels import Pair
    from evalmeta.engine.raters.llm.rater import ModelRater


@dataclass(frozen=True, slots=True)
class RatedPair:
    """A pair and the rater's verdict, ERROR if it failed, and the rule that decided or else the rater's name."""

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
    """How often a rater agrees with people: a right failure is a wrong answer that the rater failed."""

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
        try:
            async with free:
                returned = rater(task.rubric(pair))
                rating: Rating | None = await returned if isinstance(returned, Awaitable) else returned
        except RaterError as error:
            return RatedPair(pair, Verdict.ERROR, "", str(error))
        if rating is None:
            return RatedPair(pair, Verdict.UNDECIDED, "", f"the rater does not judge {task.metric}")
        rule = "" if rating.verdict is Verdict.UNDECIDED else rating.rule or rating.rater
        return RatedPair(pair, rating.verdict, rule, rating.explanation)

    return tuple(await asyncio.gather(*map(rate, pairs)))


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


_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
_GREETING: Final = "Thank you for your question! I am happy to help you with that."
_CLOSING: Final = "I hope that this helps. Please let me know if you have any other questions."


def _sentences(text: str) -> list[str]:
    return _SENTENCE_END.split(text.strip())


PROBES: Final[Mapping[str, Callable[[str], str]]] = {
    "longer": lambda text: f"{_GREETING} {text} {_CLOSING}",
    "list": lambda text: "\n".join(f"- {sentence}" for sentence in _sentences(text)),
    "markdown": lambda text: "## Answer\n\n" + "\n\n".join(f"**{sentence}**" for sentence in _sentences(text)),
    "upper case": str.upper,
    "lower case": str.lower,
    "blanks": lambda text: "\n\n" + "  \n".join(_sentences(text)) + "  \n\n",
}
"""Other forms of an answer: polite words around it, Markdown, another case, additional blanks and line ends."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What another form of the answers does to the verdicts of a rater: pairs flip, or become undecided or errors."""

    name: str
    flipped: tuple[RatedPair, ...]
    decided: int
    undecided: int
    errors: int

    @property
    def flips(self) -> Share:
        """Return the flipped verdicts among those that were decided in both forms."""
        return Share(len(self.flipped), self.decided)


def pick_probed(rated: Sequence[RatedPair], count: int | None, *, seed: int) -> tuple[RatedPair, ...]:
    """Return at most `count` decided pairs with an answer, chosen at random; all if None."""
    decided = [pair for pair in rated if pair.is_decided and pair.pair.actual.strip()]
    if count is None or len(decided) <= count:
        return tuple(decided)
    return tuple(random.Random(seed).sample(decided, count))  # noqa: S311 - a choice that can be repeated


async def probe(rated: Sequence[RatedPair], rater: Rater, task: RatingTask = RESPONSES) -> tuple[Probe, ...]:
    """Rate decided pairs again in each other form; answers that already have the form are left out."""
    return tuple([await _probe(name, rated, rater, task) for name in PROBES])


async def _probe(name: str, rated: Sequence[RatedPair], rater: Rater, task: RatingTask) -> Probe:
    change = PROBES[name]
    before = [pair for pair in rated if change(pair.pair.actual) != pair.pair.actual]
    pairs = [replace(pair.pair, actual=change(pair.pair.actual)) for pair in before]
    after = await calibrate(pairs, rater, task)
    verdicts = [pair.verdict for pair in after]
    changed = zip(before, after, strict=True)
    return Probe(
        name,
        tuple(new for old, new in changed if new.is_decided and new.verdict is not old.verdict),
        sum(pair.is_decided for pair in after),
        verdicts.count(Verdict.UNDECIDED),
        verdicts.count(Verdict.ERROR),
    )


# Two of five parts of the pairs are held out; each other part provides a candidate, measured on the rest of them.
_PARTS: Final = 5
_HELD_OUT: Final = 2
_MIN_PAIRS: Final = 15


class Candidate(NamedTuple):
    """Examples, and the agreement without and with them on the pairs of the other parts."""

    examples: tuple[Pair, ...]
    before: Agreement
    after: Agreement

    @property
    def gain(self) -> int:
        """Return how many right decisions the examples add."""
        return self.after.right - self.before.right


@dataclass(frozen=True, slots=True)
class ExampleChoice:
    """The chosen examples, and the agreement without and with them on pairs that had no part in the choice."""

    examples: tuple[Pair, ...]
    before: Agreement
    after: Agreement
    candidates: tuple[Candidate, ...]

    @property
    def is_better(self) -> bool:
        """Return whether the examples add right decisions."""
        return self.after.right > self.before.right


def min_pairs(count: int) -> int:
    """Return the least number of pairs to choose examples from."""
    return max(_MIN_PAIRS, _PARTS * count)


def choice_ratings(pairs: int) -> int:
    """Return at most how many ratings a choice needs."""
    folds = _PARTS - _HELD_OUT
    return pairs * (folds * (folds - 1) + _HELD_OUT) // _PARTS + _PARTS * folds


async def choose_examples(
    rated: Sequence[RatedPair], rater: ModelRater, count: int, *, seed: int, task: RatingTask = RESPONSES
) -> ExampleChoice:
    """Choose examples among rated pairs.

    The pairs are shuffled with the seed and split into five parts with the same share of right answers. Two are held
    out. Each of the other three provides a candidate: pairs that the rater judged wrongly or not at all come first,
    right and wrong answers alternate. The candidate that adds the most right decisions on the pairs of the other two
    parts is measured on the pairs held out, which had no influence on the choice.
    """
    shuffled = random.Random(seed).sample(rated, len(rated))  # noqa: S311 - a choice that can be repeated
    # A stable sort keeps the random order within each label.
    ordered = sorted(shuffled, key=lambda pair: pair.pair.right)
    parts = [ordered[start::_PARTS] for start in range(_PARTS)]
    folds, held_out = parts[_HELD_OUT:], [*chain.from_iterable(parts[:_HELD_OUT])]
    candidates = []
    for fold in folds:
        others = [pair for other in folds if other is not fold for pair in other]
        examples = _candidate(fold, count)
        candidates.append(Candidate(examples, agreement(others), await _measure(others, examples, rater, task)))
    best = max(candidates, key=lambda candidate: candidate.gain)
    after = await _measure(held_out, best.examples, rater, task)
    return ExampleChoice(best.examples, agreement(held_out), after, tuple(candidates))


def _candidate(fold: Sequence[RatedPair], count: int) -> tuple[Pair, ...]:
    hardest = sorted(fold, key=lambda pair: pair.is_right)
    sides = ([pair.pair for pair in hardest if pair.pair.right is right] for right in (True, False))
    alternating = [pair for pairs in zip_longest(*sides) for pair in pairs if pair is not None]
    return tuple(alternating[:count])


async def _measure(
    rated: Sequence[RatedPair], examples: tuple[Pair, ...], rater: ModelRater, task: RatingTask
) -> Agreement:
    with_examples = rater.with_rubric(replace(rater.rubric, examples=examples))
    return agreement(await calibrate([pair.pair for pair in rated], with_examples, task))
