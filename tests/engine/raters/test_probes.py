from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest

from evalmeta.engine.raters.calibration import RatedPair, Share, calibrate
from evalmeta.engine.raters.judge import Rating
from evalmeta.engine.raters.labels import Pair
from evalmeta.engine.raters.probes import PROBES, Probe, pick_probed, probe
from evalmeta.errors import RaterError
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.engine.raters.judge import Rubric

ANSWER = "It was shipped. It arrives on Monday, order A-17!"
PAIRS = [Pair("It was shipped.", f"{ANSWER} {number}", right=True) for number in range(10)]


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


def probed(accepts: Callable[[str], bool | None], pairs: list[Pair] = PAIRS) -> dict[str, Probe]:
    async def go() -> tuple[Probe, ...]:
        rater = Judge(accepts)
        return await probe(pick_probed(await calibrate(pairs, rater), None, seed=0), rater)

    return {each.name: each for each in asyncio.run(go())}


@pytest.mark.parametrize("name", PROBES)
def test_another_form_keeps_every_word_of_the_answer(name: str) -> None:
    words = re.findall(r"\w+", ANSWER.lower())
    assert " ".join(words) in " ".join(re.findall(r"\w+", PROBES[name](ANSWER).lower()))


def test_a_rater_that_ignores_the_form_never_flips() -> None:
    found = probed(lambda _: True)
    assert {each.flips for each in found.values()} == {Share(0, 10)}


def test_a_rater_that_likes_long_answers_flips_with_their_length() -> None:
    found = probed(lambda text: len(text) > 100)
    assert found["longer"].flips == Share(10, 10)
    assert [each.verdict for each in found["longer"].flipped] == [Verdict.PASS] * 10
    assert found["lower case"].flips == Share(0, 10)


def test_a_rater_that_dislikes_markdown_flips_with_it() -> None:
    found = probed(lambda text: "**" not in text)
    assert {name for name, each in found.items() if each.flipped} == {"markdown"}


def test_a_verdict_that_becomes_undecided_or_an_error_is_counted_apart() -> None:
    def accepts(text: str) -> bool | None:
        if text.isupper():
            raise RaterError("too loud")
        return None if text.islower() else True

    found = probed(accepts)
    assert (found["lower case"].undecided, found["lower case"].flips) == (10, Share(0, 0))
    assert (found["upper case"].errors, found["upper case"].flips) == (10, Share(0, 0))


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
    rated = [RatedPair(pair, Verdict.PASS, "same", "") for pair in PAIRS]
    first, again, other = (pick_probed(rated, 4, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == 4
