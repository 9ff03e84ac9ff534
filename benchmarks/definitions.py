"""Definitions of about 6.7 kB with 10 test cases, all alike and all different."""

from __future__ import annotations

from evalmeta.model.definition import Definition, Expectation, Inputs, TestCase
from evalmeta.xmlio.definitions import write_definition

CASES = 10


def make_definition(number: int) -> bytes:
    cases = tuple(_case(number, case) for case in range(1, CASES + 1))
    return write_definition(Definition(f"Order_Desk_{number}", "Order_Desk", description="Orders", test_cases=cases))


def _case(number: int, case: int) -> TestCase:
    utterance = f"Where is order {number}-{case}? I have been waiting for it since last Tuesday and nobody calls back."
    answer = f"Order {number}-{case} left our warehouse on Monday and will be with you in two days."
    expectations = (
        Expectation("topic_sequence_match", "Orders"),
        Expectation("action_sequence_match", "['GetOrder', 'GetShipment']"),
        Expectation("bot_response_rating", answer),
        Expectation("completeness"),
    )
    return TestCase(Inputs(utterance), expectations, case)
