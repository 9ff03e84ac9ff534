from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.run import Verdict
from evalmeta.rules_rater.decisions import rate
from evalmeta.rules_rater.finding import replaced_names
from evalmeta.rules_rater.text import Texts


def replaced(expected: str, actual: str, utterance: str = "") -> tuple[list[str], list[str]]:
    return replaced_names(Texts(expected, actual, utterance, described=False))


@pytest.mark.parametrize(
    ("expected", "actual", "names"),
    [
        ("It is Maria Lopez.", "It is Mario Lopez.", (["Maria Lopez"], ["Mario Lopez"])),
        ("Your manager is Anders Holm.", "Your manager is Sofia Berg.", (["Anders Holm"], ["Sofia Berg"])),
        ("You see Dr. Patel.", "You see Dr. Garcia.", (["Patel"], ["Garcia"])),
        ("Ihr Ansprechpartner ist Herr Krause.", "Zuständig ist Herr Kramer.", (["Krause"], ["Kramer"])),
        ("The parcel is in Denver.", "Your parcel is in Dallas now.", (["Denver"], ["Dallas"])),
    ],
)
def test_a_name_in_the_place_of_another_replaces_it(
    expected: str, actual: str, names: tuple[list[str], list[str]]
) -> None:
    assert replaced(expected, actual) == names


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ("It is Anders Holm.", "It is Anders."),
        ("It is in the United States.", "It is in the US."),
        ("It is in New York.", "It is in NYC."),
        ("It is free in the EU.", "It is free in the European Union."),
        ("It is in Memphis, Tennessee.", "It is in Memphis, TN."),
        ("The store is at 5 Main Street.", "It is at 5 Main St."),
        ("Restart Outlook.", "Close Microsoft Outlook and open it again."),
        ("Go to Settings > Billing.", "Open your Account and tap Payment Methods."),
        ("She is a VP at Acme.", "She is Acme's VP."),
        ("Die Bestellung ist da", "Das Paket ist da"),
        ("It is in Rome.", "It is open, says Tom Reed."),
    ],
)
def test_other_words_and_abbreviations_replace_no_name(expected: str, actual: str) -> None:
    assert replaced(expected, actual) == ([], [])


def test_a_name_of_the_question_is_replaced_only_between_the_same_words() -> None:
    question = "When does the train to Munich leave?"
    assert replaced("The train to Munich leaves at 8.", "The train to Paris leaves at 8.", question)[1] == ["Paris"]
    assert replaced("The train to Munich leaves at 8.", "It leaves for Paris at 8.", question) == ([], [])


def test_another_name_fails_with_both_names_as_evidence() -> None:
    rating = rate("Your account manager is Priya Raman.", "Your account manager is Tom Reed.", utterance="Who?")
    assert (rating.verdict, rating.rule) == (Verdict.FAILURE, "names")
    assert rating.explanation == "names differ: expected Priya Raman, got Tom Reed"


@given(st.text(), st.text())
def test_any_texts_have_replaced_names_or_none(expected: str, actual: str) -> None:
    missing, extra = replaced(expected, actual)
    assert len(missing) == len(extra) <= 1
