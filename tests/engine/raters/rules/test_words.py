from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.engine.raters.rules.words import (
    content_words,
    cosine,
    is_english,
    language,
    missing_words,
    negations,
    recall,
    share_roots,
    words,
)


def test_words_come_in_lower_case_without_plural_or_possessive() -> None:
    assert words("The Agent's orders: e-mail, 3.5!") == ["the", "agent", "order", "e-mail", "3.5"]


def test_words_that_reverse_a_meaning_are_content_words() -> None:
    assert content_words("The item is out of stock") == ["item", "out", "stock"]


def test_a_text_of_function_words_keeps_them() -> None:
    assert content_words("It is so") == ["it", "is", "so"]


def test_recall_is_the_share_of_expected_words() -> None:
    assert recall(["a", "b", "b", "c"], ["b", "a", "x"]) == 0.5
    assert recall([], ["a"]) == 0.0


def test_missing_words_must_come_in_order() -> None:
    assert missing_words(["a", "b", "c"], ["a", "x", "c"]) == ["b"]
    assert missing_words(["a", "b"], ["b", "a"]) == ["b"]


@pytest.mark.parametrize(
    ("text", "count"), [("It is not here", 1), ("I can't and won't", 2), ("Never without none", 3), ("Now", 0)]
)
def test_negations_are_counted(text: str, count: int) -> None:
    assert negations(text) == count


@pytest.mark.parametrize(
    ("text", "name"),
    [("Das Paket ist da", "de"), ("El precio es de 30", "es"), ("Le prix est de 30", "fr"), ("ok", "")],
)
def test_languages_are_detected_by_function_words(text: str, name: str) -> None:
    assert language(text) == name


def test_words_share_a_root_by_their_first_letters() -> None:
    assert share_roots(["delivery"], ["delivered"])
    assert not share_roots(["delivery"], ["delay"])


def test_synonyms_are_one_word() -> None:
    assert content_words("The shop ships parcels") == content_words("The store delivers packages")


def test_english_is_detected() -> None:
    assert is_english("Your order is late")
    assert not is_english("Die Bestellung wurde geliefert")


@given(st.text(max_size=50), st.text(max_size=50))
def test_cosine_is_symmetric_and_between_0_and_1(left: str, right: str) -> None:
    assert 0 <= cosine(left, right) <= 1 + 1e-9
    assert cosine(left, right) == pytest.approx(cosine(right, left))


@given(st.text(alphabet="abc ", min_size=1).filter(str.strip))
def test_a_text_is_like_itself(text: str) -> None:
    assert cosine(text, text) == pytest.approx(1)
