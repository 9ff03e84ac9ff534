from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.raters.rules.containment import doubts


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("Your card is active.", "Good news, your card is now active. It was sent by mail."),
        ("The shop sells tea.", "The store sells tea, from its own garden."),
        ("In March, the prices change.", "The prices change in March."),
        ("Yes, breakfast is included.", "Breakfast is included to your account."),
        ("It opens on Monday.", "It opens this Monday."),
        ("Your order has been cancelled.", "I've just cancelled your order."),
        ("I have added the note to the case.", "The note has been added to the case."),
        ("The invoice is overdue.", "The invoice is overdue by a week."),
    ],
)
def test_harmless_words_around_the_answer_are_no_doubt(expected: str, actual: str) -> None:
    assert doubts(expected, actual) == ()


@pytest.mark.parametrize(
    ("expected", "actual", "doubt"),
    [
        ("Members enter free.", "Members' children enter free.", "other words between them: children"),
        ("Your card is active.", "They claim your card is active.", "other words before them: claim, they"),
        ("Shipping is free.", "Shipping is free for members.", "a restriction"),
        ("Shipping is free.", "Shipping is free of 5 duties.", "a restriction"),
        ("Shipping is free.", "Shipping is free. Perhaps.", "an exception or a doubt"),
        ("Shipping is free.", "Shipping is free. No joke.", "negation"),
        ("The gate is open.", "The gate is open. Others are closed.", "opposite"),
        ("The gate is open.", "The gate was open.", "past"),
        ("The gate is open.", "The gate is open, right?", "is a question"),
        ("Cats like tea.", "Cats. Like. Tea.", "several sentences"),
        ("Your card is active.", "My card is active.", "the persons differ"),
        ("You owe me tea.", "I owe you tea.", "order of the persons differs"),
        ("Anna is the owner.", "Anna is the owner, and she left.", "adds a statement: 'and she left'"),
        ("Acme bought Initech.", "Acme was bought by Initech.", "passive"),
        ("Ann and Ann met.", "I met.", "missing from the answer: ann"),
        ("The sent note was sent.", "I sent.", "missing from the answer: note"),
        ("Tea was sent.", "I sent coffee.", "missing from the answer: tea"),
        ("Shipping is free.", "Shipping costs 5.", "missing from the answer: free"),
    ],
)
def test_what_could_change_the_meaning_is_a_doubt(expected: str, actual: str, doubt: str) -> None:
    assert any(doubt in each for each in doubts(expected, actual))


def test_the_narrowest_place_counts() -> None:
    assert doubts("Gate is open.", "A gate stands here. The gate is open.") == ()


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_two_texts_have_doubts_or_none(expected: str, actual: str) -> None:
    assert all(doubts(expected, actual))
