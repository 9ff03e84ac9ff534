"""The choice of examples for an LLM rater by cross-validation."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.raters.calibration import RESPONSES, RatingTask, agreement, calibrate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.engine.raters.calibration import Agreement, RatedPair
    from evalmeta.engine.raters.labels import Pair
    from evalmeta.engine.raters.llm.rater import ModelRater


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
    parts = _split(rated, seed)
    folds, held_out = parts[_HELD_OUT:], [*chain.from_iterable(parts[:_HELD_OUT])]
    candidates = []
    for fold in folds:
        others = [pair for other in folds if other is not fold for pair in other]
        examples = _candidate(fold, count)
        candidates.append(Candidate(examples, agreement(others), await _measure(others, examples, rater, task)))
    best = max(candidates, key=lambda each: each.gain)
    after = await _measure(held_out, best.examples, rater, task)
    return ExampleChoice(best.examples, agreement(held_out), after, tuple(candidates))


def _split(rated: Sequence[RatedPair], seed: int) -> list[list[RatedPair]]:
    shuffled = random.Random(seed).sample(rated, len(rated))  # noqa: S311 - a choice that can be repeated
    # A stable sort keeps the random order within each label.
    ordered = sorted(shuffled, key=lambda each: each.pair.right)
    return [ordered[start::_PARTS] for start in range(_PARTS)]


def _candidate(fold: Sequence[RatedPair], count: int) -> tuple[Pair, ...]:
    hardest = sorted(fold, key=lambda each: each.is_right)
    sides = ([each.pair for each in hardest if each.pair.right is right] for right in (True, False))
    alternating = [each for pair in zip_longest(*sides) for each in pair if each is not None]
    return tuple(alternating[:count])


async def _measure(
    rated: Sequence[RatedPair], examples: tuple[Pair, ...], rater: ModelRater, task: RatingTask
) -> Agreement:
    with_examples = rater.with_rubric(replace(rater.rubric, examples=examples))
    return agreement(await calibrate([pair.pair for pair in rated], with_examples, task))
