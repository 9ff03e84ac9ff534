from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalmeta.model.run import Verdict
from evalmeta.rules_rater.decisions import rate
from rules_rater.restatements import FRAMES, Restated, restated_facts


@pytest.mark.slow
@settings(max_examples=300)
@given(restated_facts(), st.sampled_from(FRAMES))
def test_a_replaced_fact_fails_whatever_the_question_says(fact: Restated, frame: tuple[str, str]) -> None:
    question, answer = frame
    for asked in (fact.value, fact.other, "this"):
        expected = answer.format(fact.sentence.format(fact.value))
        actual = answer.format(fact.sentence.format(fact.other))
        rating = rate(expected, actual, utterance=question.format(asked))
        assert rating.verdict is Verdict.FAILURE, (expected, actual, rating.explanation)


@pytest.mark.slow
@settings(max_examples=300)
@given(restated_facts(), st.sampled_from(FRAMES), st.data())
def test_a_fact_in_another_notation_never_fails(fact: Restated, frame: tuple[str, str], data: st.DataObject) -> None:
    question, answer = frame
    expected = answer.format(fact.sentence.format(fact.value))
    actual = answer.format(fact.sentence.format(data.draw(st.sampled_from(fact.notations))))
    for asked in (fact.value, "this"):
        rating = rate(expected, actual, utterance=question.format(asked))
        assert rating.verdict is not Verdict.FAILURE, (expected, actual, rating.explanation)


@pytest.mark.parametrize(
    ("utterance", "expected", "actual"),
    [
        ("Where is order 10045?", "Order 10045 was sent on Friday.", "Order 10046 was sent on Friday."),
        ("Do you open at 9 or at 10?", "We open at 9.", "We open at 10."),
        ("Is it open on Sunday?", "It is open on Sunday from 10 to 4.", "It is open on Saturday from 10 to 4."),
        ("When is the party?", "The party is on March 3.", "The party is in April."),
        ("When is the party?", "The party is in April.", "It is on 3 March."),
        ("Where?", "Go to https://example.com/help.", "Go to www.example.com/billing."),
        ("Wohin?", "Schreiben Sie an a@example.com.", "Schreiben Sie an b@example.com."),
        ("Is it fixed in 4.2.1?", "It is fixed in version 4.2.1.", "It is fixed in v4.2.2."),
        ("How hot?", "It is 20 °C.", "It is 70 °F."),
        ("How long?", "It takes less than 5 days.", "It takes less than 7 days."),
        ("When do I see Dr. Ann Hill?", "Dr. Ann Hill sees you at 9.", "You see Dr. Ann Park at 9."),
        ("Is it open on Friday?", "It is open on Friday.", "It is open on Sat."),
        ("Is table 4 free at 7 pm?", "Table 4 is free at 7 pm.", "At 8 pm table 4 is free."),
    ],
)
def test_a_fact_of_the_question_must_not_be_replaced(utterance: str, expected: str, actual: str) -> None:
    assert rate(expected, actual, utterance=utterance).verdict is Verdict.FAILURE


@pytest.mark.parametrize(
    ("utterance", "expected", "actual"),
    [
        ("When does my order of 1 May arrive?", "Your order of 1 May arrives in 2 days.", "It arrives in 2 days."),
        ("When?", "It arrives in 2 days.", "It was ordered on 3 May, arrives in 2 days."),
        ("My order of 1 May?", "Your order of 1 May arrives in 2 days.", "It was sent on 3 May, arrives in 2 days."),
        ("From 3 May to 5 May?", "Your flight was moved to 5 May.", "I moved your flight from 3 May."),
        ("Is it at 3 pm?", "Your appointment is at 4 pm.", "Your appointment is not at 3 pm."),
        ("When does order 1234 ship?", "Order 1234 ships in 2 days.", "It ships in 2 days by carrier 99."),
        ("Who is Maria Lopez?", "Maria Lopez is the head of sales.", "She is the head of sales and reports to Ann."),
        ("Who is Maria Lopez?", "Maria Lopez is the head of sales.", "The head of sales. Her boss: Tom Brown."),
        ("Where?", "Go to https://example.com/help.", "Go to example.com."),
        ("When?", "The party is in March.", "The party is on March 3."),
        ("When?", "The party is on March 3.", "The party is in March."),
        ("Which version?", "Use version 4.2.", "Use v4.2, which 30 people tested."),
        ("Which ticket?", "It is ticket ORD-1234.", "It is order 1234."),
        ("Which ticket?", "It is ticket ORD-1234.", "It is ord1234."),
        ("How hot?", "It is 20 °C.", "It is 68 °F."),
        ("Is it open on Friday?", "It is open on Friday.", "It is open on Fri. from 9 to 5."),
        ("When?", "The sale starts in September.", "It starts in Sep."),
        ("How big?", "The file is 1.5 GB.", "The file is 1500 MB."),
        ("When did the iPhone 15 come?", "The iPhone 15 came in May.", "In May, a year after the iPhone 14."),
        ("Capital?", "The capital of Australia is Canberra.", "Canberra, not Sydney."),
        ("It crashes", "Restart Outlook.", "Close Microsoft Outlook and open it again."),
    ],
)
def test_omitted_and_added_facts_are_not_replaced(utterance: str, expected: str, actual: str) -> None:
    assert rate(expected, actual, utterance=utterance).verdict is not Verdict.FAILURE


@pytest.mark.parametrize(
    ("utterance", "expected", "actual"),
    [
        ("Is it at 3 pm?", "No, your appointment is at 4 pm.", "Your appointment is at 3 pm."),
        ("Who is Maria Lopez?", "Maria Lopez is the head of sales.", "Mario Lopez is the head of sales."),
        ("Is Tom Reed my manager?", "No, your manager is Ada King.", "Tom Reed is your manager."),
        ("Send $50 to Ann.", "I have sent $50 to Ann.", "$60 has been sent to Ann."),
        ("Does BA 454 leave at 9?", "BA 454 leaves at 9:00.", "Your plane, BA455, departs at 9:00."),
        ("Summary of order 10045", "The agent explains the status of order 10045", "Order 10046 was sent."),
    ],
)
def test_a_replaced_fact_of_the_question_in_another_sentence_is_undecided(
    utterance: str, expected: str, actual: str
) -> None:
    assert rate(expected, actual, utterance=utterance).verdict is Verdict.UNDECIDED


@pytest.mark.parametrize(
    ("expected", "actual", "verdict"),
    [
        ("Use v4.2 of the app.", "Use v4.20 of the app.", Verdict.FAILURE),
        ("Use version 3.1.", "Use version 3.10.", Verdict.FAILURE),
        ("Use version 4.0 of the app.", "Use version 4 of the app.", Verdict.PASS),
        ("It costs 3.1 USD.", "It costs 3.10 USD.", Verdict.PASS),
    ],
)
def test_versions_are_not_amounts(expected: str, actual: str, verdict: Verdict) -> None:
    assert rate(expected, actual, utterance="").verdict is verdict
