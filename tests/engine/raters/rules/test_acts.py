from __future__ import annotations

import pytest

from evalmeta.engine.raters.rules.acts import does_act
from evalmeta.engine.raters.rules.decisions import rate
from evalmeta.model.run import Verdict


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("Greets the user", "Hello! How can I help?"),
        ("The agent should greet the customer politely", "Good morning, and welcome to Acme Bank!"),
        ("The agent apologizes for the delay", "We are sorry."),
        ("The agent apologizes for the delay", "I'm so sorry about that delay."),
        ("The agent apologizes for the inconvenience", "We apologize for any trouble this caused."),
        ("The agent thanks the user", "Thank you very much for your help."),
        ("The agent thanks the user for the feedback", "Thanks a lot for the feedback!"),
    ],
)
def test_sincere_greetings_thanks_and_apologies_are_acts(expected: str, answer: str) -> None:
    assert does_act(expected, answer)


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("The agent greets the user by name", "Hello!"),
        ("Greets the user", "What is it?"),
        ("The agent greets the user", "Hello? Sorry, who are you?"),
        ("The agent greets the user", "Hi, go away."),
        ("The agent thanks the user", "Thank you for nothing."),
        ("The agent thanks the user", "Thanks for wasting my time."),
        ("The agent thanks the user", "No, thanks."),
        ("The agent thanks the user", "Thank God that is over."),
        ("The agent apologizes for the delay", "Sorry, who are you?"),
        ("The agent apologizes for the delay", "Sorry, not sorry."),
        ("The agent apologizes for the delay", "You should apologize."),
        ("The agent apologizes for the delay", "We apologize for the noise."),
    ],
)
def test_sarcasm_and_discourse_words_are_no_acts(expected: str, answer: str) -> None:
    assert not does_act(expected, answer)
    assert rate(expected, answer, utterance="").verdict is not Verdict.PASS
