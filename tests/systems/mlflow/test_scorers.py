"""What scorers return becomes results of checks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.mlflow.entities import Feedback
from evalmeta.mlflow.genai.scorers import scorer
from evalmeta.systems.mlflow.scorers import aggregated, checks_of

if TYPE_CHECKING:
    from evalmeta.systems.mlflow.scorers import Aggregation


def _spread(values: list[float]) -> float:
    return max(values) - min(values)


@pytest.mark.parametrize(
    ("aggregation", "name", "value"),
    [
        ("min", "min", 1.0),
        ("max", "max", 4.0),
        ("mean", "mean", 2.5),
        ("median", "median", 2.5),
        ("variance", "variance", 1.25),
        ("p90", "p90", 3.7),
        (_spread, "_spread", 3.0),
    ],
)
def test_an_aggregation_is_that_of_its_name_and_without_values_not_a_number(
    aggregation: Aggregation, name: str, value: float
) -> None:
    assert aggregated([4.0, 1.0, 3.0, 2.0], aggregation) == (name, pytest.approx(value))
    assert math.isnan(aggregated([], aggregation)[1])
    assert aggregated([7.0], "p90") == ("p90", 7.0)


def test_a_coroutine_is_awaited_and_each_feedback_of_a_list_is_a_result() -> None:
    @scorer
    async def says() -> list[object]:
        return [Feedback(name="polite", value=True), Feedback(value="no", rationale="it shouts"), 0.5]

    checks = checks_of(says, says.run())
    assert [(check.name, check.passed) for check in checks] == [("polite", True), ("says", False), ("says", None)]
    assert [check.score for check in checks] == [None, None, 0.5]
    assert checks[1].reason == '"no": it shouts'


def test_pass_if_decides_instead_of_yes_and_true() -> None:
    at_least = scorer(name="long", pass_if=lambda value: value >= 3)(lambda: 3)
    assert [check.passed for returned in (2, 3) for check in checks_of(at_least, returned)] == [False, True]


def test_a_value_that_is_too_long_for_a_result_is_cut_and_stays_json() -> None:
    given = scorer(name="says")(lambda: None)
    [check] = checks_of(given, "x" * limits.MAX_ERROR_CHARS)
    assert len(str(check.reason)) < limits.MAX_ERROR_CHARS
    assert str(check.reason).endswith('…"')
