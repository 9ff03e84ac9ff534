from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from engine.raters.llm.model_server import judging, model_serving
from evalmeta.engine.raters.rater import Rating, Rubric
from evalmeta.errors import SettingsError
from evalmeta.model.run import RunOptions, Verdict
from evalmeta.model.scoring import Scoring
from evalmeta.model.settings import LlmRater
from evalmeta.org.evaluations import rater_of

if TYPE_CHECKING:
    from evalmeta.org.organization import Organization

JUDGED = RunOptions(scoring=Scoring(rater="judge"))
RUBRIC = Rubric("coherence", "Where is it?", "It is on its way.")


def test_what_a_model_said_in_one_run_is_known_in_the_next(org: Organization) -> None:
    async def rate(org: Organization) -> Rating:
        async with rater_of(org, JUDGED) as rater:
            return await rater(RUBRIC)

    with model_serving(judging(4)) as server:
        judge = LlmRater(adapter="llm", model="judge-1", url=server.url)
        ratings = [asyncio.run(rate(replace(org, raters={"judge": judge}))) for _ in range(2)]

    assert ratings == [Rating(4, Verdict.PASS, "2 of 3 samples: It deserves 4.", "llm:judge-1 (prompt v1)")] * 2
    assert len(server.bodies) == 2


def test_a_rater_that_is_not_bound_is_named(org: Organization) -> None:
    async def bind() -> None:
        async with rater_of(org, JUDGED):
            pass

    with pytest.raises(SettingsError, match="no rater is called 'judge'"):
        asyncio.run(bind())
