"""Tests of the words of texts, and of where they are in a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.model.generated_data import GeneratedData
from evalmeta.model.run import CaseResult, EarlierTurn, Verdict
from evalmeta.store.searched_texts import excerpt, words_of, words_of_case


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Where's my order_no 10-045?", ["where", "s", "my", "order", "no", "10", "045"]),
        ("CAFÉ Straße ﬁn", ["cafe", "strasse", "fin"]),
        ("注文は どこ", ["注", "文", "は", "と", "こ"]),
        ("Где заказ?", ["где", "заказ"]),
        ("a\0b \ud800 '\"*", ["a", "b"]),
        ("x" * 100, ["x" * 64]),
        ("", []),
    ],
)
def test_words_are_compared_without_case_and_accents(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@given(st.text())
def test_words_have_nothing_that_a_search_language_reads(text: str) -> None:
    assert all(word.isalnum() and word.encode() for word in words_of(text))


def test_the_words_around_the_first_match_are_shown_and_all_matches_marked() -> None:
    text = "x " * 100 + "The Café is open, the cafe is closed. " + "y " * 400
    pieces = excerpt(text, ["cafe"], is_prefix=False, chars=200)
    assert [piece.text for piece in pieces if piece.is_match] == ["Café", "cafe"]
    assert pieces[0].text == pieces[-1].text == "…"
    assert "".join(piece.text for piece in pieces[1:-1]) in text
    assert excerpt(text, ["caf"], is_prefix=False, chars=200) == []
    assert excerpt("open", ["op"], is_prefix=True, chars=9) == [("open", True)]
    assert excerpt("closed now open", ["closed", "open"], is_prefix=False, chars=10) == [
        ("closed", True), (" now", False), ("…", False),
    ]  # fmt: skip


def test_a_case_has_the_words_of_all_turns_once_and_not_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = (EarlierTurn("first question", GeneratedData("first answer")),)
    case = CaseResult(1, 1, "second question", Verdict.ERROR, 1.0, 2.0, earlier=turns)
    assert words_of_case(case) == ["first", "question", "answer", "second"]
    monkeypatch.setattr(limits, "MAX_SEARCHED_WORDS", 1)
    assert words_of_case(case) == ["first"]
