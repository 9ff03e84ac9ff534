"""Test cases in Python: `evaluate` judges them, and an assertion makes a test of each."""

import pytest
from desk import answer

import evalmeta

CASES = [
    {"input": "Where is order 7?", "contains": "Monday", "topic": "Orders"},
    {"input": "Do you open on Sundays?", "contains_any": ["closed", "not open"], "actions": []},
    {
        "input": "Send an email to Raj and add a calendar invite.",
        "actions": [{"name": "sendEmail", "input": {"to": "Raj"}}, "bookCalendar"],
    },
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["input"])
def test_one_case(case):
    assert evalmeta.evaluate([case], answer)


def test_all_cases():
    run = evalmeta.evaluate(CASES, answer)
    assert run.succeeded, run
    assert run.summary.total == len(CASES)


def test_a_file():
    assert evalmeta.evaluate("pytest/desk.yaml", answer)
