from __future__ import annotations

import pytest

from evalmeta.engine.raters.rules.decisions import rate
from evalmeta.model.run import Verdict


@pytest.mark.parametrize(
    "tail",
    [
        "Just kidding!",
        "Just kidding, I have no idea.",
        "Scratch that.",
        "Actually, forget what I said.",
        "I made that up.",
        "Wait, that's wrong.",
        "On second thought, no.",
        "Not really.",
        "As if!",
        "War nur ein Scherz!",
        "Es broma.",
        "Je plaisante !",
    ],
)
@pytest.mark.parametrize("statement", ["Your refund was approved.", "Order 10045 was sent on Friday."])
def test_an_answer_that_is_taken_back_fails(statement: str, tail: str) -> None:
    rating = rate(statement, f"{statement} {tail}", utterance="")
    assert (rating.verdict, rating.rule) == (Verdict.FAILURE, "retraction")


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("Yes", "Yes. Just kidding!"),
        ("The agent thanks the user", "Thank you very much! Just kidding."),
        ("I can't help with that.", "I can't help with that. Just kidding."),
        ("The agent asks for the order number", "What is your order number? Just kidding."),
        ("Your refund was approved.", "Your refund was approved. Yes, in a parallel universe."),
        ("Your refund was approved.", "Your refund was approved. So they say."),
        ("Anna is the manager.", "Anna is the manager of another team."),
        ("Anna is the manager.", "Anna is the manager of a competitor."),
        ("Your refund was approved.", "Your refund was approved for someone else."),
        ("Your refund was approved.", "Your refund was approved, hopefully."),
        ("Your refund was approved.", "Your refund was approved, in the wild dreams of my colleague."),
        ("Your refund was approved.", "Your refund was approved. The opposite is true."),
        ("Your refund was approved.", "Your refund was approved. That applies to your neighbour."),
        ("Your refund was approved.", "The customer claims: Your refund was approved."),
        ("Your refund was approved.", "Had you paid, your refund was approved."),
        ("Your refund was approved.", "Your refund was approved. \N{FACE WITH ROLLING EYES}"),
        ("Ihre Bestellung ist da.", "Ihre Bestellung ist da, glaube ich."),
        ("Su pedido fue enviado.", "Si paga, su pedido fue enviado."),
        ("Votre commande est là.", "Votre commande est là, peut-être."),
        ("Het pakket is verzonden.", "Het pakket is verzonden. Grapje!"),
        ("Il pacco è stato spedito.", "Il pacco è stato spedito, forse."),
        ("Die Ware ist da.", "Die Ware ist da. Schön wär's gewesen, mein lieber Freund."),
    ],
)
def test_no_answer_passes_with_irony_or_another_referent(expected: str, actual: str) -> None:
    assert rate(expected, actual, utterance="").verdict is not Verdict.PASS


@pytest.mark.parametrize(
    "actual",
    [
        "No joke: your refund was approved.",
        "It was rejected. Just kidding, your refund was approved!",
        "Your refund was approved. If that is wrong, please write to us.",
        "Your refund was approved. Please ignore that earlier e-mail.",
    ],
)
def test_what_takes_back_something_else_never_fails(actual: str) -> None:
    assert rate("Your refund was approved.", actual, utterance="").verdict is not Verdict.FAILURE


def test_a_correction_to_the_expected_value_never_fails() -> None:
    rating = rate("Order 7 was sent on Friday.", "Order 7 was sent on Monday. Scratch that: on Friday.", utterance="")
    assert rating.verdict is not Verdict.FAILURE


def test_an_answer_may_continue_after_the_statement() -> None:
    expected = "No, refunds are not possible after 30 days."
    assert rate(expected, f"Thank you for waiting. {expected}", utterance="").verdict is Verdict.PASS
    rating = rate("Your refund was approved.", "Your refund was approved. You will get an e-mail today.", utterance="")
    assert rating.verdict is Verdict.PASS
