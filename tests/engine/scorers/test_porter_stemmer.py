from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk.stem.porter import PorterStemmer

from evalmeta.engine.scorers.porter_stemmer import stem

ENDINGS = (
    "", "al", "alism", "aliti", "alize", "alli", "ance", "ation", "ational", "bli", "ed", "eed", "eli", "ement",
    "ence", "ful", "fulli", "fulness", "ible", "icate", "ied", "ies", "ing", "ion", "iviti", "ization", "ll", "logi",
    "ly", "ness", "ousli", "s", "sses", "tional", "y", "yy", "e",
)  # fmt: skip


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("ties", "tie"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("hopping", "hop"),
        ("filing", "file"),
        ("died", "die"),
        ("spied", "spi"),
        ("enjoy", "enjoy"),
        ("happy", "happi"),
        ("relational", "relat"),
        ("rationally", "ration"),
        ("geologi", "geolog"),
        ("adoption", "adopt"),
        ("probate", "probat"),
        ("controlling", "control"),
        ("skies", "sky"),
        ("is", "is"),
        ("2nd", "2nd"),
    ],
)
def test_words_have_their_known_stems(word: str, expected: str) -> None:
    assert stem(word) == expected


@pytest.mark.parametrize("words", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_random_words_have_the_stems_of_nltk(words: int) -> None:
    draw, theirs = random.Random(1980), PorterStemmer()  # noqa: S311 - the same words every time
    for _ in range(words):
        letters = "".join(draw.choices("aeiouyybcdlnstzwx9", k=draw.randint(1, 6)))
        word = letters + "".join(draw.choices(ENDINGS, k=draw.randint(0, 3)))
        assert stem(word) == theirs.stem(word), word


@given(st.text("aeiouybcdlst0", min_size=1, max_size=60))
def test_no_word_loses_all_of_its_letters(word: str) -> None:
    assert 0 < len(stem(word)) <= len(word) + 1
