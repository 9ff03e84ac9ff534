from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.builders import criterion, exchange
from evalmeta.engine.scorers.comparisons import score_comparison
from evalmeta.model.definition import Expectation, Parameter
from evalmeta.model.generated import Action, GeneratedData
from evalmeta.model.run import TestResult, Verdict

ACTIONS = (
    Action("Find", {"id": "001xx", "count": 3, "flags": {"b": True, "a": None}}, {"rows": [1, 2, 2]}, 120.5),
    Action("Find", {"id": "002xx", "count": 3}),
)
EXCHANGE = exchange(GeneratedData("Hello World", "Orders", ACTIONS))
OUTCOME = "$.generatedData.outcome"
FIRST = "$.generatedData.invokedActions[0][0]"
ALL = "$.generatedData.invokedActions[*][?(@.function.name == 'Find')].function.input"


def judge(name: str, operator: str, actual: str, expected: str, *, reference: bool = True) -> TestResult:
    return score_comparison(criterion(name, operator, actual, expected, reference=reference), EXCHANGE)


@pytest.mark.parametrize(
    ("operator", "expected", "passed"),
    [
        ("equals", "Hello World", True),
        ("equals", "hello world", False),
        ("contains", "lo Wo", True),
        ("contains", "lo wo", False),
        ("startswith", "Hello", True),
        ("startswith", "World", False),
        ("endswith", "World", True),
        ("endswith", "WORLD", False),
    ],
)
def test_string_operators_are_case_sensitive(operator: str, expected: str, *, passed: bool) -> None:
    result = judge("string_comparison", operator, OUTCOME, expected)
    assert result.verdict is (Verdict.PASS if passed else Verdict.FAILURE)
    assert (result.score, result.expected, result.actual) == (float(passed), expected, "Hello World")
    assert (result.label, result.explanation.endswith(repr(expected))) == ("a label", True)


@pytest.mark.parametrize(
    ("operator", "holds_for"),
    [
        ("equals", {"120.5", "120.50", "1205e-1"}),
        ("greater_than_or_equal", {"120.5", "120.50", "1205e-1", "-7"}),
        ("greater_than", {"-7"}),
        ("less_than", {"4000"}),
        ("less_than_or_equal", {"120.5", "120.50", "1205e-1", "4000"}),
    ],
)
def test_numeric_operators_compare_numbers(operator: str, holds_for: set[str]) -> None:
    values = ["120.5", "120.50", "1205e-1", "-7", "4000"]
    results = {value: judge("numeric_comparison", operator, f"{FIRST}.executionLatency", value) for value in values}
    assert {value for value, result in results.items() if result.verdict is Verdict.PASS} == holds_for


def test_both_sides_may_be_references() -> None:
    parameters = (
        Parameter("operator", "equals"),
        Parameter("actual", OUTCOME, True),
        Parameter("expected", OUTCOME, True),
    )
    assert score_comparison(Expectation("string_comparison", parameters=parameters), EXCHANGE).verdict is Verdict.PASS


def test_both_sides_may_be_literals() -> None:
    assert judge("string_comparison", "equals", OUTCOME, OUTCOME, reference=False).verdict is Verdict.PASS


def test_other_values_compare_as_canonical_json() -> None:
    assert judge("string_comparison", "equals", f"{FIRST}.function.input.flags", '{"a":null,"b":true}').score == 1.0
    assert judge("string_comparison", "equals", f"{FIRST}.function.output.rows", "[1,2,2]").score == 1.0


def test_a_reference_that_matches_nothing_is_an_error_that_names_it() -> None:
    result = judge("string_comparison", "equals", "$.generatedData.latencyMs", "1")
    assert result.verdict is Verdict.ERROR
    assert result.error == "the reference of actual matches nothing: $.generatedData.latencyMs"


def test_several_equal_matches_are_one() -> None:
    result = judge("numeric_comparison", "equals", f"{ALL}.count", "3")
    assert result.verdict is Verdict.PASS
    assert "matches" not in result.explanation


def test_of_several_matches_that_differ_the_first_counts_and_is_said_to() -> None:
    result = judge("string_comparison", "startswith", f"{ALL}.id", "001")
    assert result.verdict is Verdict.PASS
    assert "2 matches that differ, the first counts" in result.explanation


@pytest.mark.parametrize("reference", [OUTCOME, f"{FIRST}.function.input.flags.b", f"{FIRST}.function.output.rows"])
def test_an_actual_value_that_is_no_number_fails_and_is_shown(reference: str) -> None:
    result = judge("numeric_comparison", "equals", reference, "1")
    assert result.verdict is Verdict.FAILURE
    assert "the actual value is no number" in result.explanation


@pytest.mark.parametrize(
    ("name", "operator", "actual", "expected", "complaint"),
    [
        ("numeric_comparison", "equals", OUTCOME, "many", "the expected value is no number: 'many'"),
        ("numeric_comparison", "contains", OUTCOME, "1", "'contains' is no operator of numeric_comparison"),
        ("string_comparison", "startsWith", OUTCOME, "x", "the nearest is startswith"),
        ("string_comparison", "equals", "$..outcome", "x", "actual: the reference descends without bound"),
    ],
)
def test_a_criterion_that_makes_no_sense_is_an_error(
    name: str, operator: str, actual: str, expected: str, complaint: str
) -> None:
    result = judge(name, operator, actual, expected)
    assert result.verdict is Verdict.ERROR
    assert complaint in result.explanation


def test_a_missing_parameter_is_an_error_that_names_it() -> None:
    result = score_comparison(Expectation("string_comparison", parameters=(Parameter("actual", "x"),)), EXCHANGE)
    assert result.error == "the parameter operator and expected is missing"


@given(st.text(), st.text())
def test_string_operators_agree_with_each_other(actual: str, expected: str) -> None:
    def holds(operator: str) -> bool:
        return judge("string_comparison", operator, actual, expected, reference=False).verdict is Verdict.PASS

    assert holds("equals") <= (holds("startswith") and holds("endswith"))
    assert (holds("startswith") or holds("endswith")) <= holds("contains")


@given(st.integers(-(10**30), 10**30), st.integers(-(10**30), 10**30))
def test_numbers_of_any_size_are_compared_exactly(actual: int, expected: int) -> None:
    def holds(operator: str) -> bool:
        return (
            judge("numeric_comparison", operator, str(actual), str(expected), reference=False).verdict is Verdict.PASS
        )

    assert [holds("less_than"), holds("equals"), holds("greater_than")] == [
        actual < expected,
        actual == expected,
        actual > expected,
    ]
