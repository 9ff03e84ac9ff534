from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import pytest

from engine.raters.llm.model_server import NONCE, judgement
from evalmeta.engine.raters.calibration import calibrate
from evalmeta.engine.raters.example_choice import ExampleChoice, choice_ratings, choose_examples, min_pairs
from evalmeta.engine.raters.labels import Pair
from evalmeta.engine.raters.llm.providers import ModelReply
from evalmeta.engine.raters.llm.rater import ModelRater
from evalmeta.model.settings import LlmRater

if TYPE_CHECKING:
    from evalmeta.engine.raters.llm.providers import Question

# Answers are right if their number is even; a model can learn that from examples.
PAIRS = [Pair("An even number.", f"Number {number}.", right=number % 2 == 0) for number in range(40)]


class Learner:
    """A model that passes everything, unless the examples have a key to the rule."""

    def __init__(self, *, learns: bool = True) -> None:
        self.learns = learns
        self.asked = 0

    async def ask(self, question: Question) -> ModelReply:
        self.asked += 1
        [nonce] = NONCE.findall(question.system)
        answer = json.loads(question.message)["answer"]
        has_examples = '"verdict": "fail"' in question.system and self.learns
        passes = not has_examples or int(answer.removeprefix("Number ").removesuffix(".")) % 2 == 0
        return ModelReply(json.dumps({**judgement(5 if passes else 0), "nonce": nonce}))

    async def close(self) -> None:
        pass


def choose(model: Learner, pairs: list[Pair] = PAIRS, *, count: int = 4, seed: int = 0) -> ExampleChoice:
    async def go() -> ExampleChoice:
        rater = ModelRater([model], LlmRater(adapter="llm", model="fixed"))
        return await choose_examples(await calibrate(pairs, rater), rater, count, seed=seed)

    return asyncio.run(go())


def test_agreement_before_and_after_is_measured_on_pairs_that_had_no_part_in_the_choice() -> None:
    choice = choose(Learner())

    assert (choice.before.right, choice.before.pairs) == (8, 16)
    assert (choice.after.right, choice.after.pairs) == (16, 16)
    assert choice.is_better
    assert len(choice.examples) == 4


def test_examples_that_do_not_help_are_reported_as_such() -> None:
    choice = choose(Learner(learns=False))
    assert choice.before.right == choice.after.right
    assert not choice.is_better


def test_examples_have_both_labels_and_prefer_what_the_rater_got_wrong() -> None:
    labels = [example.right for example in choose(Learner()).examples]
    assert labels == [True, False, True, False]


def test_the_best_candidate_of_the_folds_wins() -> None:
    choice = choose(Learner())
    best = max(candidate.gain for candidate in choice.candidates)
    assert len(choice.candidates) == 3
    assert next(candidate for candidate in choice.candidates if candidate.gain == best).examples == choice.examples


def test_the_seed_repeats_the_choice() -> None:
    first, again, other = (choose(Learner(), seed=seed).examples for seed in (3, 3, 4))
    assert first == again != other


@pytest.mark.parametrize("size", [20, 33, 40, 101])
def test_the_announced_number_of_ratings_is_enough(size: int) -> None:
    model = Learner()
    pairs = [Pair("An even number.", f"Number {number}.", right=number % 2 == 0) for number in range(size)]
    choose(model, pairs)
    assert model.asked - size <= choice_ratings(size)


@pytest.mark.parametrize(("count", "pairs"), [(1, 15), (3, 15), (4, 20), (10, 50)])
def test_enough_pairs_are_required(count: int, pairs: int) -> None:
    assert min_pairs(count) == pairs
    even = [Pair("x", f"Number {number}.", right=number % 2 == 0) for number in range(pairs)]
    assert len(choose(Learner(), even, count=count).examples) == count
