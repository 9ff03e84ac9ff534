from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.raters.llm.model_server import NONCE, judgement
from evalmeta.engine.interfaces import Rating
from evalmeta.engine.raters.calibration import (
    PROBES,
    Agreement,
    ExampleChoice,
    Probe,
    RatedPair,
    Share,
    agreement,
    agreement_by_rule,
    calibrate,
    choice_ratings,
    choose_examples,
    min_pairs,
    pick_probed,
    probe,
)
from evalmeta.engine.raters.labels import Pair
from evalmeta.engine.raters.llm import LlmRater
from evalmeta.engine.raters.llm.providers import ModelReply
from evalmeta.engine.raters.llm.rater import ModelRater
from evalmeta.engine.statistics import wilson
from evalmeta.errors import RaterError
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from evalmeta.engine.interfaces import Rubric
    from evalmeta.engine.raters.llm.providers import Question


PAIRS = [
    Pair("yes", "pass", right=True),
    Pair("yes", "pass", right=False),
    Pair("yes", "fail", right=False),
    Pair("yes", "fail", right=True),
    Pair("yes", "open", right=True),
    Pair("yes", "none", right=True),
    Pair("yes", "broken", right=True),
]
RATINGS = {
    "pass": Rating(5.0, Verdict.PASS, "good", "panel", "same"),
    "fail": Rating(0.0, Verdict.FAILURE, "bad", "panel"),
    "open": Rating(None, Verdict.UNDECIDED, "who knows", "panel"),
}


class Panel:
    def __call__(self, rubric: Rubric) -> Rating | None:
        if rubric.actual == "broken":
            raise RaterError("no model")
        return RATINGS.get(rubric.actual)

    async def close(self) -> None:
        """Has nothing to let go of."""


class Slow(Panel):
    def __call__(self, rubric: Rubric) -> Awaitable[Rating]:  # type: ignore[override]
        return self.wait(rubric)

    async def wait(self, rubric: Rubric) -> Rating:
        await asyncio.sleep(0)
        return RATINGS[rubric.actual]


def judged() -> tuple[RatedPair, ...]:
    return asyncio.run(calibrate(PAIRS, Panel()))


def test_every_kind_of_verdict_is_counted() -> None:
    counts = agreement(judged())
    assert counts == Agreement(
        pairs=7, right_passes=1, right_failures=1, wrong_passes=1, wrong_failures=1, undecided=2, errors=1
    )
    assert counts.decided == 4
    assert counts.agreement.value == 0.5
    assert counts.coverage.value == pytest.approx(4 / 7)


def test_agreement_is_counted_by_rule_or_rater() -> None:
    by_rule = agreement_by_rule(judged())
    assert list(by_rule) == ["panel", "same"]
    assert by_rule["same"].wrong_passes == 1
    assert by_rule["panel"].wrong_failures == 1


def test_an_error_keeps_its_words() -> None:
    assert judged()[-1].explanation == "no model"


def test_awaitable_ratings_keep_the_order_of_pairs() -> None:
    verdicts = [one.verdict for one in asyncio.run(calibrate(PAIRS[:5], Slow()))]
    assert verdicts == [*[Verdict.PASS] * 2, *[Verdict.FAILURE] * 2, Verdict.UNDECIDED]


COHEN = {"right_passes": 20, "wrong_failures": 5, "wrong_passes": 10, "right_failures": 15}


def counted(*, undecided: int = 0, **counts: int) -> Agreement:
    return Agreement(pairs=sum(counts.values()) + undecided, undecided=undecided, errors=0, **counts)


def test_kappa_is_the_agreement_beyond_chance() -> None:
    # 35 of 50 agree; by chance, 25 x 30 + 25 x 20 of 2,500 would.
    assert counted(**COHEN).kappa == pytest.approx((0.7 - 0.5) / (1 - 0.5))


def test_undecided_pairs_change_coverage_and_nothing_else() -> None:
    counts, more = counted(**COHEN), counted(**COHEN, undecided=50)
    assert (more.kappa, more.agreement, more.true_positives) == (counts.kappa, counts.agreement, counts.true_positives)
    assert more.coverage == Share(50, 100)


def test_rates_tell_right_answers_from_wrong_ones() -> None:
    counts = counted(**COHEN)
    assert (counts.true_positives, counts.true_negatives) == (Share(20, 25), Share(15, 25))
    assert counts.true_positives.interval == wilson(20, 25)


def test_a_rater_that_passes_everything_has_no_kappa_above_chance() -> None:
    assert counted(right_passes=9, wrong_passes=1, right_failures=0, wrong_failures=0).kappa == 0
    assert counted(right_passes=9, wrong_passes=0, right_failures=0, wrong_failures=0).kappa is None


@given(st.lists(st.integers(0, 50), min_size=4, max_size=4).filter(any))
def test_kappa_is_that_of_two_by_two_tables(numbers: list[int]) -> None:
    a, b, c, d = numbers
    # 2 (ad - bc) / ((a + b)(b + d) + (a + c)(c + d)); b and c are the disagreements.
    below = (a + b) * (b + d) + (a + c) * (c + d)
    expected = pytest.approx(2 * (a * d - b * c) / below) if below else None
    assert counted(right_passes=a, wrong_passes=b, wrong_failures=c, right_failures=d).kappa == expected


def test_no_pairs_have_no_accuracy() -> None:
    assert agreement([]).agreement.value is None
    assert agreement([]).coverage.value is None


ANSWER = "It was shipped. It arrives on Monday, order A-17!"
SHIPPED = [Pair("It was shipped.", f"{ANSWER} {number}", right=True) for number in range(10)]


class Judge:
    """A rater that passes what a function accepts; None is undecided, and an exception an error."""

    def __init__(self, accepts: Callable[[str], bool | None]) -> None:
        self.accepts = accepts

    def __call__(self, rubric: Rubric) -> Rating:
        accepted = self.accepts(rubric.actual)
        if accepted is None:
            return Rating(None, Verdict.UNDECIDED, "who knows", "judge")
        return Rating(5.0, Verdict.PASS, "good", "judge") if accepted else Rating(0.0, Verdict.FAILURE, "bad", "judge")

    async def close(self) -> None:
        pass


def probed(accepts: Callable[[str], bool | None], pairs: list[Pair] = SHIPPED) -> dict[str, Probe]:
    async def go() -> tuple[Probe, ...]:
        rater = Judge(accepts)
        return await probe(pick_probed(await calibrate(pairs, rater), None, seed=0), rater)

    return {form.name: form for form in asyncio.run(go())}


@pytest.mark.parametrize("name", PROBES)
def test_another_form_keeps_every_word_of_the_answer(name: str) -> None:
    words = re.findall(r"\w+", ANSWER.lower())
    assert " ".join(words) in " ".join(re.findall(r"\w+", PROBES[name](ANSWER).lower()))


def test_a_rater_that_ignores_the_form_never_flips() -> None:
    probes = probed(lambda _: True)
    assert {form.flips for form in probes.values()} == {Share(0, 10)}


def test_a_rater_that_likes_long_answers_flips_with_their_length() -> None:
    probes = probed(lambda text: len(text) > 100)
    assert probes["longer"].flips == Share(10, 10)
    assert [pair.verdict for pair in probes["longer"].flipped] == [Verdict.PASS] * 10
    assert probes["lower case"].flips == Share(0, 10)


def test_a_rater_that_dislikes_markdown_flips_with_it() -> None:
    probes = probed(lambda text: "**" not in text)
    assert {name for name, form in probes.items() if form.flipped} == {"markdown"}


def test_a_verdict_that_becomes_undecided_or_an_error_is_counted_apart() -> None:
    def accepts(text: str) -> bool | None:
        if text.isupper():
            raise RaterError("too loud")
        return None if text.islower() else True

    probes = probed(accepts)
    assert (probes["lower case"].undecided, probes["lower case"].flips) == (10, Share(0, 0))
    assert (probes["upper case"].errors, probes["upper case"].flips) == (10, Share(0, 0))


def test_answers_that_have_the_form_already_are_left_out() -> None:
    pairs = [Pair("Shipped.", "it was shipped", right=True)]
    assert probed(lambda _: True, pairs)["lower case"].decided == 0


def test_only_decided_pairs_with_an_answer_are_probed() -> None:
    rated = [
        RatedPair(Pair("a", "b", right=True), Verdict.UNDECIDED, "", ""),
        RatedPair(Pair("a", " ", right=False), Verdict.FAILURE, "empty", ""),
        RatedPair(Pair("a", "c", right=True), Verdict.PASS, "same", ""),
    ]
    assert pick_probed(rated, None, seed=0) == (rated[2],)


def test_the_seed_chooses_the_probed_pairs() -> None:
    rated = [RatedPair(pair, Verdict.PASS, "same", "") for pair in SHIPPED]
    first, again, other = (pick_probed(rated, 4, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 4


# Answers are right if their number is even; a model can learn that from examples.
NUMBERS = [Pair("An even number.", f"Number {number}.", right=number % 2 == 0) for number in range(40)]


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


def choose(model: Learner, pairs: list[Pair] = NUMBERS, *, count: int = 4, seed: int = 0) -> ExampleChoice:
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
