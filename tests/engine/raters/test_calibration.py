from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from evalmeta.engine.raters.calibration import Agreement, RatedPair, agreement, agreement_by_rule, calibrate
from evalmeta.engine.raters.judge import Rating
from evalmeta.engine.raters.labels import Pair
from evalmeta.errors import RaterError
from evalmeta.model.run import Verdict

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalmeta.engine.raters.judge import Rubric

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
    assert counts == Agreement(pairs=7, right=2, wrong_passes=1, wrong_failures=1, undecided=2, errors=1)
    assert counts.decided == 4
    assert counts.accuracy == 0.5
    assert counts.coverage == pytest.approx(4 / 7)


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


def test_no_pairs_have_no_accuracy() -> None:
    assert agreement([]).accuracy is None
    assert agreement([]).coverage == 0.0
