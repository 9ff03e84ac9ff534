from __future__ import annotations

import pytest

from evalmeta.rules_rater.decisions import is_described, without_examples


@pytest.mark.parametrize(
    "text",
    [
        "The agent greets the user",
        "Lists the 3 open opportunities",
        "The response should mention the return policy",
        "Summary of the open cases",
        "It should explain the fee",
    ],
)
def test_descriptions_are_recognised(text: str) -> None:
    assert is_described(text)


@pytest.mark.parametrize("text", ["Your order was shipped.", "Thanks for waiting.", "It is 5 km.", "The answer is 42."])
def test_answers_are_not_descriptions(text: str) -> None:
    assert not is_described(text)


def test_examples_of_a_description_are_not_expected() -> None:
    assert without_examples("Names a price, for example $5") == "Names a price, "
