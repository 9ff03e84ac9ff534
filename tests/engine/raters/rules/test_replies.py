from __future__ import annotations

import pytest

from evalmeta.engine.raters.rules.facts import with_plain_numbers
from evalmeta.engine.raters.rules.ratings import Texts
from evalmeta.engine.raters.rules.replies import fills_in, is_yes_or_no, left_uncounted
from evalmeta.engine.raters.rules.words import content_words


def fills(utterance: str, expected: str, actual: str) -> bool:
    wanted, said = (content_words(with_plain_numbers(text)) for text in (expected, actual))
    return fills_in(Texts(expected, actual, utterance, described=False), wanted, said)


@pytest.mark.parametrize(
    ("utterance", "expected", "actual"),
    [
        ("What is the capital of France?", "Paris", "The capital of France is Paris."),
        ("What is my balance?", "Your balance is $1,250.00.", "You currently have 1250 USD in your account."),
    ],
)
def test_the_question_vouches_for_its_own_words(utterance: str, expected: str, actual: str) -> None:
    assert fills(utterance, expected, actual)


@pytest.mark.parametrize(
    ("utterance", "expected", "actual"),
    [
        ("Who bought Initech?", "Acme", "Initech bought Acme."),
        ("Which firm bought Initech?", "Acme", "Initech bought firm Acme."),
        ("Was my payment late?", "It was received.", "It was received late."),
        ("Who does Maria report to?", "Maria reports to Peter.", "Peter reports to Maria."),
        ("Which is open or closed?", "The shop is open.", "The shop is open, closed."),
        ("When does it arrive?", "It arrives in 3 days.", "It does not arrive in 3 days."),
        ("When does it arrive?", "It arrives in 3 days.", "Does it arrive in 3 days?"),
        ("When does it arrive?", "It arrives in 3 days.", "It arrives in the evening."),
        ("When does it arrive?", "It arrives in 3 days.", "It may arrive in 3 days."),
        ("What is the price?", "It is 5 EUR.", "It is 5 EUR without tax."),
        ("", "Paris", "It is Paris."),
        ("What is it?", "", "It is."),
    ],
)
def test_it_vouches_for_nothing_that_changes_the_answer(utterance: str, expected: str, actual: str) -> None:
    assert not fills(utterance, expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual", "is_met"),
    [
        ("Yes", "Yes, you can bring a bag.", True),
        ("No.", "No, pets are not allowed.", True),
        ("Yes", "Yes, but only on Mondays.", False),
        ("Yes", "Yes, it is not included.", False),
        ("Yes", "Yes, right?", False),
        ("Yes", "Yes, for $500.", False),
        ("No", "No, wait, yes, you can.", False),
        ("Yes, you can.", "Yes, you can.", False),
        ("Tea", "Tea", False),
    ],
)
def test_a_bare_yes_or_no_matches_an_answer_that_starts_with_it(expected: str, actual: str, *, is_met: bool) -> None:
    assert is_yes_or_no(expected, actual) is is_met


@pytest.mark.parametrize(
    ("expected", "actual", "number"),
    [
        ("You used 12 GB.", "You used a fair amount.", ""),
        ("You used 12 GB.", "That depends on your plan.", "12 GB"),
        ("You have 2 bags.", "That depends on your plan.", ""),
        ("You have bags.", "That depends on your plan.", ""),
        ("It ends on 3 May.", "That depends on your plan.", ""),
        ("You used 12 GB.", "You used 13 GB.", ""),
    ],
)
def test_how_much_wants_a_number(expected: str, actual: str, number: str) -> None:
    assert left_uncounted(Texts(expected, actual, "How much did I use?", described=False)) == number
    assert left_uncounted(Texts(expected, actual, "What did I use?", described=False)) == ""
