from __future__ import annotations

import pytest

from evalmeta.engine.scorers.registry import SCORERS
from evalmeta.model.checks import OWN_CHECKS, Check, comparison_of, reference_of
from evalmeta.model.definition import Expectation


def test_every_check_has_a_scorer() -> None:
    assert OWN_CHECKS - {"function"} <= set(SCORERS)


@pytest.mark.parametrize(
    ("check", "comparison"),
    [
        (Expectation("contains", "x"), ("string_comparison", "contains", "$.generatedData.outcome", "x")),
        (Expectation("ends_with", "x"), ("string_comparison", "endswith", "$.generatedData.outcome", "x")),
        (
            Expectation("json", terms={"path": "$.a[0]", "operator": "equals", "expected": 5}),
            ("numeric_comparison", "equals", "$.generatedData.outcome.a[0]", "5"),
        ),
        (
            Expectation("json", terms={"path": "$.generatedData.topic", "operator": "equals", "expected": True}),
            ("string_comparison", "equals", "$.generatedData.topic", "true"),
        ),
        (
            Expectation("json", terms={"path": "$.a", "operator": "at_most", "expected": 5}),
            ("numeric_comparison", "less_than_or_equal", "$.generatedData.outcome.a", "5"),
        ),
    ],
)
def test_a_check_that_definitions_can_hold_becomes_a_comparison(
    check: Expectation, comparison: tuple[str, ...]
) -> None:
    found = comparison_of(check)
    assert found is not None
    assert (found.name, *(parameter.value for parameter in found.parameters)) == (
        comparison[0], comparison[1], comparison[2], comparison[3],
    )  # fmt: skip
    assert [parameter.is_reference for parameter in found.parameters] == [False, True, False]


@pytest.mark.parametrize(
    "check",
    [
        Expectation("not_contains", "x"),
        Expectation("matches", "x"),
        Expectation("json", terms={"path": "$.a"}),
        Expectation("json", terms={"path": "$.a", "operator": "equals", "expected": None}),
    ],
)
def test_definitions_cannot_hold_the_others(check: Expectation) -> None:
    assert comparison_of(check) is None


def test_a_check_of_a_package_can_have_a_comparison() -> None:
    row = Check("mentions", "texts", "Words.", "it has the word", "Paris", operator="contains")
    found = comparison_of(Expectation("mentions", "x"), {"mentions": row})
    assert found is not None
    assert [parameter.value for parameter in found.parameters] == ["contains", "$.generatedData.outcome", "x"]


def test_a_path_leads_into_the_answer_unless_it_begins_with_generated_data() -> None:
    paths = ("$", "$.a", " $[0] ", "$.generatedData.topic", "$.generatedDataX")
    assert [reference_of(path) for path in paths] == [
        "$.generatedData.outcome",
        "$.generatedData.outcome.a",
        "$.generatedData.outcome[0]",
        "$.generatedData.topic",
        "$.generatedData.outcome.generatedDataX",
    ]
