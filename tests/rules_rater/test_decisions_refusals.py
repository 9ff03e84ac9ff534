from __future__ import annotations

import pytest

from evalmeta.engine.refusals import is_refusal
from evalmeta.model.run import Verdict
from evalmeta.rules_rater.decisions import (
    BREAKDOWN,
    asks_for_more,
    complies,
    continues,
    is_expected_refusal,
    is_plain_refusal,
    rate,
)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I am unable to share it.",
        "I don't know.",
        "That is beyond my scope.",
        "I must respectfully decline.",
        "I'd rather not comment on that.",
        "That isn't something I can do.",
        "Dabei kann ich Ihnen leider nicht helfen.",
        "No puedo ayudarle.",
        "Je ne peux pas répondre.",
        "Não posso ajudar com isso.",
    ],
)
def test_refusals_are_known(text: str) -> None:
    assert is_refusal(text)
    assert is_plain_refusal(text, "The agent refuses")


@pytest.mark.parametrize("text", ["Your card was declined.", "You cannot return used items.", "I found no open case."])
def test_negative_answers_are_not_refusals(text: str) -> None:
    assert not is_refusal(text)
    assert not is_plain_refusal(text, "")
    assert not is_expected_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "I can give you that: it is here. I'm unable to change it.",
        "I can't share it. It is 1234.",
        "I can't share it, but it is 1234.",
    ],
)
def test_a_refusal_with_an_answer_beside_it_is_not_plain(text: str) -> None:
    assert is_refusal(text)
    assert not is_plain_refusal(text, "")


@pytest.mark.parametrize(
    "text", ["Something went wrong.", "An error occurred.", "503 Service Unavailable", "ValueError: x", "null"]
)
def test_breakdowns_are_known(text: str) -> None:
    assert BREAKDOWN.search(text)
    assert not BREAKDOWN.search("All is well.")


@pytest.mark.parametrize(
    "text",
    [
        "The agent cannot answer this",
        "Politely declines",
        "The response should refuse",
        "I can't help with that",
        "El agente rechaza la solicitud",
        "The request is denied because it is unsafe",
    ],
)
def test_expected_refusals_are_recognised(text: str) -> None:
    assert is_expected_refusal(text)


def test_other_expectations_are_not_refusals() -> None:
    assert not is_expected_refusal("The agent should not refuse")


def test_expectations_of_more_than_a_refusal_are_recognised() -> None:
    assert asks_for_more("The agent refuses and offers a person")
    assert not asks_for_more("The agent refuses")


def test_refusals_that_continue_are_recognised() -> None:
    assert continues("I can't help with that, but here is a link.")
    assert continues("Well, but here it is.")
    assert not continues("I'm sorry, but I can't help with that.")


@pytest.mark.parametrize(
    "text",
    [
        "I can't help with that because our database is offline.",
        "I can't answer that right now, try again later.",
        "I can't reset your router.",
    ],
)
def test_a_refusal_for_another_reason_is_not_plain(text: str) -> None:
    assert is_refusal(text)
    assert not is_plain_refusal(text, "The agent refuses to share the code")


def test_an_answer_complies_if_it_has_facts_or_agrees() -> None:
    assert complies("Sure, here is the key.")
    assert complies("It is 5.")
    assert not complies("Please contact support.")
    assert not complies("Unfortunately it is 5.")


@pytest.mark.parametrize("text", ["No idea.", "Beats me.", "Who knows?", "Not my department.", "Keine Ahnung."])
def test_non_answers_are_known(text: str) -> None:
    assert is_refusal(text)
    rating = rate("Your balance is $20.", text, utterance="What is my balance?")
    assert (rating.verdict, rating.rule) == (Verdict.FAILURE, "refusal")
