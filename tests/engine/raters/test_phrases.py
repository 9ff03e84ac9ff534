from __future__ import annotations

import pytest

from evalmeta.engine.raters.phrases import (
    asks_for_more,
    goes_on,
    has_exception,
    is_deflection,
    is_described,
    is_expected_refusal,
    is_question,
    is_refusal,
)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I am unable to share it.",
        "I don't know.",
        "That is beyond my scope.",
        "An error occurred.",
    ],
)
def test_refusals_are_known(text: str) -> None:
    assert is_refusal(text)


@pytest.mark.parametrize("text", ["Your card was declined.", "You cannot return used items.", "I found no open case."])
def test_answers_that_say_no_are_no_refusals(text: str) -> None:
    assert not is_refusal(text)
    assert not is_expected_refusal(text)


@pytest.mark.parametrize(
    "text",
    ["The agent cannot answer this", "Politely declines", "The response should refuse", "I can't help with that"],
)
def test_an_expectation_may_ask_for_a_refusal(text: str) -> None:
    assert is_expected_refusal(text)


def test_an_expectation_may_ask_for_more_than_a_refusal() -> None:
    assert asks_for_more("The agent refuses and offers a person")
    assert not asks_for_more("The agent refuses")


def test_a_refusal_may_go_on() -> None:
    assert goes_on("I can't help with that, but here is a link.")
    assert not goes_on("I'm sorry, but I can't help with that.")


@pytest.mark.parametrize("text", ["Please contact support.", "Unfortunately no."])
def test_a_deflection_is_not_plain(text: str) -> None:
    assert is_deflection(text)


@pytest.mark.parametrize(
    "text", ["Summary of the account", "The agent should greet", "Lists all cases", "A friendly greeting to the user"]
)
def test_descriptions_are_told_from_model_answers(text: str) -> None:
    assert is_described(text)
    assert not is_described("Your order was shipped.")


def test_a_text_may_only_ask_back() -> None:
    assert is_question("Which one? The red one?")
    assert not is_question("The red one. Right?")
    assert not is_question("")


def test_exceptions_are_seen() -> None:
    assert has_exception("It is free unless you pay.")
    assert not has_exception("It is free.")
