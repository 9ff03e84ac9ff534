from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.builders import exchange
from evalmeta.engine.raters import offline_rater
from evalmeta.engine.scorers import make_scorers, score
from evalmeta.model.definition import Expectation
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import TestResult, Verdict
from evalmeta.model.run_options import Scoring

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run_options import Matches

STATE: JsonObject = {
    "order": {"status": "shipped", "items": [{"sku": "A-7", "count": 2}, {"sku": "B-1", "count": 1}]},
    "user:name": "Ada",
    "cart.total": 30,
    "coupon": None,
}


def judge(
    path: str,
    expected: JsonValue,
    state: JsonObject | None = STATE,
    *,
    outcome: str = "Done.",
    matches: Matches = "first",
    **terms: JsonValue,
) -> TestResult:
    expectation = Expectation("state", label="state", terms={"path": path, "expected": expected, **terms})
    scorers = make_scorers(Scoring(matches=matches), offline_rater())
    result = score(expectation, exchange(GeneratedData(outcome, state=state)), scorers=scorers)
    assert isinstance(result, TestResult)
    return result


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("order.status", "shipped"),
        ("$.order.status", "shipped"),
        ("order.items[0].count", 2.0),
        ("order.items[-1]", {"count": {"type": "integer", "at_most": 1}}),
        ("order", {"status": {"matches": "^ship"}}),
        ("user:name", {"one_of": ["Ada", "Grace"]}),
        ("$['cart.total']", {"at_least": 30}),
        ("coupon", None),
        ("order.items", {"any": True}),
        ("$", {"order": {"items": {"type": "array"}}}),
        ("$", {"equals": STATE}),
    ],
)
def test_a_value_at_a_path_is_compared_as_arguments_are(path: str, expected: JsonValue) -> None:
    result = judge(path, expected)
    assert (result.verdict, result.score) == (Verdict.PASS, 1.0)


@pytest.mark.parametrize(
    ("path", "expected", "why"),
    [
        ("order.status", "open", 'order.status: expected "open", got "shipped"'),
        (
            "order",
            {"status": "open", "id": 7},
            'order.status: expected "open", got "shipped"; order.id: expected 7, but',
        ),
        ("order.items[1].count", {"at_least": 2}, "order.items[1].count: expected at least 2, got 1"),
        ("order.items", [{"sku": "A-7"}], "order.items: expected 1 item, got 2: "),
        ("order.items[0].count", "2", 'order.items[0].count: expected "2", got 2'),
        ("order.items[0].count", True, "order.items[0].count: expected true, got 2"),
        ("cart.total", 30, "cart.total: expected 30, but it is missing"),
        ("order.total", {"any": True}, "order.total: expected any value, but it is missing"),
        ("discount", None, "discount: expected null, but it is missing"),
        ("$", {"equals": {}}, "$: expected {}, got {"),
        ("order", {}, "order.status: not expected, got"),
        ("order.items[0]", {"sku": {}}, 'order.items[0].sku: expected {}, got "A-7"'),
    ],
)
def test_a_failure_names_the_path_and_both_values(path: str, expected: JsonValue, why: str) -> None:
    result = judge(path, expected)
    assert (result.verdict, result.score, result.explanation[: len(why)]) == (Verdict.FAILURE, 0.0, why)
    assert result.expected
    assert result.actual


def test_an_unreported_state_is_undecided_and_an_empty_one_is_known() -> None:
    unknown, empty = judge("order.status", "shipped", None), judge("order.status", "shipped", {})
    assert (unknown.verdict, unknown.score) == (Verdict.UNDECIDED, None)
    assert "does not report the state of its session" in unknown.explanation
    assert (empty.verdict, empty.explanation) == (
        Verdict.FAILURE,
        'order.status: expected "shipped", but it is missing',
    )
    assert judge("$", {"equals": {}}, {}).verdict is Verdict.PASS


def test_an_agent_that_did_nothing_passes_only_where_that_is_valid() -> None:
    assert judge("coupon", None, outcome="").verdict is Verdict.UNDECIDED
    assert judge("coupon", None, outcome="", empty=True).verdict is Verdict.PASS
    assert judge("coupon", 1, outcome="").verdict is Verdict.FAILURE


def test_a_literal_value_has_no_matchers() -> None:
    state: JsonObject = {"filter": {"type": "open", "page": 2}}
    assert judge("filter", {"type": "open"}, state, literal=True).verdict is Verdict.PASS
    assert judge("filter", {"type": "string"}, {"filter": "open"}, literal=True).verdict is Verdict.FAILURE
    assert judge("filter", {}, state, literal=True).verdict is Verdict.FAILURE


@pytest.mark.parametrize(
    ("matches", "verdict"), [("first", Verdict.PASS), ("any", Verdict.PASS), ("all", Verdict.FAILURE)]
)
def test_which_of_several_matches_count_is_the_rule_of_the_run(matches: Matches, verdict: Verdict) -> None:
    result = judge("order.items[*].count", 2, matches=matches)
    assert (result.verdict, "the path has 2 matches" in result.explanation) == (verdict, True)


@pytest.mark.parametrize(
    ("path", "expected", "why"),
    [
        ("order[", 1, "the path order[ cannot be followed: the reference"),
        ("order", {"at_least": "x"}, "the expected value of order cannot be compared: 'at_least' is"),
    ],
)
def test_terms_that_cannot_be_judged_are_an_error(path: str, expected: JsonValue, why: str) -> None:
    result = judge(path, expected)
    assert (result.verdict, result.explanation[: len(why)]) == (Verdict.ERROR, why)
