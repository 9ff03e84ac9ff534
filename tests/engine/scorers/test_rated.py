from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from engine.builders import exchange
from evalmeta.engine.interfaces import Rating, Rubric
from evalmeta.engine.scorers.rated import NEEDS_LLM, rated_by
from evalmeta.engine.scorers.registry import SCORERS
from evalmeta.errors import RaterError
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import Action, GeneratedData
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable

GOOD = Rating(4.0, Verdict.PASS, "it is fine", "panel")
EXPECTED = Expectation("output_validation", "Your order was shipped.", label="Answer")
EXCHANGE = exchange(GeneratedData("It is on its way."))


class Panel:
    """A rater that records its rubrics, and can return an awaitable."""

    def __init__(self, *, waits: bool = False) -> None:
        self.waits = waits
        self.asked: list[Rubric] = []

    def __call__(self, rubric: Rubric) -> Rating | Awaitable[Rating]:
        self.asked.append(rubric)
        return asyncio.sleep(0, GOOD) if self.waits else GOOD

    async def close(self) -> None:
        pass


def test_a_rating_becomes_the_result() -> None:
    result = rated_by(Panel())(EXPECTED, EXCHANGE)
    assert (result.name, result.label, result.verdict, result.score) == (
        "output_validation",
        "Answer",
        Verdict.PASS,
        4.0,
    )
    assert (result.expected, result.actual) == ("Your order was shipped.", "It is on its way.")
    assert (result.rater, result.explanation) == ("panel", "it is fine")


def test_a_rater_can_return_an_awaitable() -> None:
    async def judge() -> object:
        return await rated_by(Panel(waits=True))(EXPECTED, EXCHANGE)

    assert asyncio.run(judge()).rater == "panel"


def test_the_default_rater_is_named() -> None:
    assert SCORERS["bot_response_rating"](EXPECTED, EXCHANGE).rater == "rules"


def test_without_an_expected_response_nothing_is_decided() -> None:
    result = SCORERS["bot_response_rating"](Expectation("bot_response_rating", " "), EXCHANGE)
    assert (result.verdict, result.score) == (Verdict.UNDECIDED, None)


@pytest.mark.parametrize("name", ["coherence", "completeness", "conciseness", "instruction_following", "factuality"])
def test_quality_is_undecided_without_an_llm_rater(name: str) -> None:
    result = SCORERS[name](Expectation(name), exchange(GeneratedData("Shipped.")))
    assert (result.verdict, result.score, result.actual) == (Verdict.UNDECIDED, None, "Shipped.")
    assert result.explanation == NEEDS_LLM


def test_a_rater_receives_the_actions() -> None:
    panel = Panel()
    generated = GeneratedData("It is on its way.", actions=(Action("GetOrder"),))
    rated_by(panel, threshold=4.0)(Expectation("instruction_adherence"), exchange(generated, "Where is it?"))
    assert panel.asked == [
        Rubric("instruction_following", "Where is it?", "It is on its way.", actions=generated.actions, threshold=4.0)
    ]


def test_a_rater_receives_the_instructions_of_one_expectation() -> None:
    panel = Panel()
    rated_by(panel)(Expectation("coherence", terms={"instructions": "One sentence."}), EXCHANGE)
    assert panel.asked[0].instructions == "One sentence."


def test_an_expectation_can_have_its_own_threshold() -> None:
    panel = Panel()
    rated_by(panel, threshold=3.0)(Expectation("bot_response_rating", "Hi", terms={"threshold": 4}), EXCHANGE)
    assert panel.asked[0].threshold == 4.0


def test_instructions_that_are_not_a_text_are_an_error() -> None:
    with pytest.raises(RaterError, match="the term instructions is not valid"):
        rated_by(Panel())(Expectation("coherence", terms={"instructions": ["One sentence."]}), EXCHANGE)
