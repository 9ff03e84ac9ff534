from __future__ import annotations

import pytest

from evalmeta.engine.raters.rules.phrases import (
    asked_part,
    asks_for,
    is_asking,
    is_described,
    is_question,
    opening,
    stated_part,
    without_courtesy,
    without_examples,
)


@pytest.mark.parametrize(
    "text", ["Summary of the account", "The agent should greet", "Lists all cases", "A friendly greeting to the user"]
)
def test_descriptions_are_recognised(text: str) -> None:
    assert is_described(text)


@pytest.mark.parametrize("text", ["Your order was shipped.", "The answer is 5.", "Model X is faster.", "It is late."])
def test_model_answers_are_not_descriptions(text: str) -> None:
    assert not is_described(text)


def test_the_statement_of_a_description_is_the_model_answer() -> None:
    assert stated_part("The agent confirms that it was sent") == "it was sent"
    assert stated_part("The agent tells the user that it was sent") == "it was sent"
    assert stated_part("The agent helps") == ""


def test_a_description_can_ask_for_a_question() -> None:
    assert asks_for("The agent asks for the order number")
    assert asks_for("The response should include a prompt for the user to specify the size")
    assert not asks_for("The agent answers")


def test_the_words_to_ask_for_are_found() -> None:
    assert asked_part("The agent asks the user for the order number") == ["order", "number"]
    assert asked_part("The agent asks") == []
    assert asked_part("The agent asks for name and age") == []
    assert asked_part("The agent answers") == []


def test_a_request_counts_as_a_question() -> None:
    assert is_asking("Please provide your order number.", ["order", "number"])
    assert not is_asking("Please provide your name.", ["order", "number"])
    assert not is_asking("Here it is.", [])


@pytest.mark.parametrize("text", ["Thanks for waiting. It is done.", "Your table for 2 is booked."])
def test_what_is_said_to_the_user_is_not_a_description(text: str) -> None:
    assert not is_described(text)


def test_texts_of_questions_only_are_recognised() -> None:
    assert is_question("Which one? The red one?")
    assert not is_question("The red one. Right?")
    assert not is_question("")


@pytest.mark.parametrize(("text", "word"), [("Sure, go on.", "yes"), ("No.", "no"), ("No problem", ""), ("Maybe", "")])
def test_a_leading_yes_or_no_is_recognised(text: str, word: str) -> None:
    assert opening(text) == word


def test_courtesy_says_nothing_of_the_matter() -> None:
    text = "Great question! It is 5. Let me know if you need anything else."
    assert without_courtesy(text) == "It is 5."
    assert without_courtesy("One moment, please.") == ""


def test_examples_are_not_expected() -> None:
    assert without_examples('Includes the price. For example, "It is 5."') == "Includes the price. "
