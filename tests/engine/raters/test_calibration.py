from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.raters.calibration import Agreement, RatedPair, Share, agreement, agreement_by_rule, calibrate
from evalmeta.engine.raters.judge import Rating
from evalmeta.engine.raters.labels import Pair
from evalmeta.engine.statistics import wilson
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
