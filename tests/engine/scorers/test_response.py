from __future__ import annotations

import asyncio

from engine.builders import exchange
from evalmeta.engine.raters.rater import Rating
from evalmeta.engine.scorer import SCORERS
from evalmeta.engine.scorers.response import rated_by
from evalmeta.model.definition import Expectation
from evalmeta.model.generated import GeneratedData
from evalmeta.model.run import Verdict

GOOD = Rating(4.0, Verdict.PASS, "it is fine", "panel")
EXPECTED = Expectation("output_validation", "Your order was shipped.", label="Answer")
EXCHANGE = exchange(GeneratedData("It is on its way."))


async def waiting_rater(_expected: str, _actual: str, **_: str) -> Rating:
    return GOOD


def test_a_rating_becomes_the_result() -> None:
    result = rated_by(lambda *_, **__: GOOD)(EXPECTED, EXCHANGE)
    assert (result.name, result.label, result.verdict, result.score) == (
        "output_validation",
        "Answer",
        Verdict.PASS,
        4.0,
    )
    assert (result.expected, result.actual) == ("Your order was shipped.", "It is on its way.")
    assert (result.rater, result.explanation) == ("panel", "it is fine")


def test_a_rater_may_wait() -> None:
    async def judge() -> object:
        return await rated_by(waiting_rater)(EXPECTED, EXCHANGE)

    assert asyncio.run(judge()).rater == "panel"


def test_the_default_rater_is_named() -> None:
    assert SCORERS["bot_response_rating"](EXPECTED, EXCHANGE).rater == "rules"


def test_without_an_expected_response_nothing_is_decided() -> None:
    result = SCORERS["bot_response_rating"](Expectation("bot_response_rating", " "), EXCHANGE)
    assert (result.verdict, result.score) == (Verdict.UNDECIDED, None)
