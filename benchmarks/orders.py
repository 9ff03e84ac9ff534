"""The questions about orders that the public rows and the engine's rows ask, and what they expect."""

from __future__ import annotations

from evalmeta.model.definition import Definition, Expectation, Inputs, Parameter, TestCase

FAILING = 10


def make_tests(name: str, cases: int) -> Definition:
    """Return a definition whose every tenth case fails."""
    tests = tuple(
        TestCase(Inputs(f"Where is order {number} of {name}?"), expectations(number), number)
        for number in range(1, cases + 1)
    )
    return Definition(name, "Order_Desk", test_cases=tests)


def expectations(number: int) -> tuple[Expectation, ...]:
    """Return the three checks of a case: topic, actions, and a criterion with a JSONPath."""
    criterion = (
        Parameter("operator", "contains"),
        Parameter("actual", "$.generatedData.outcome", is_reference=True),
        Parameter("expected", "Paris" if number % FAILING else "Rome"),
    )
    return (
        Expectation("topic_sequence_match", "Orders"),
        Expectation("action_sequence_match", "['Find_Order']"),
        Expectation("string_comparison", label="The city", parameters=criterion),
    )
