from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.statistics import CaseCounts
from evalmeta.report.text import (
    LINE_CHARS,
    aligned,
    attributes_json,
    clean,
    escape_unsafe,
    one_line,
    quote,
    shorten,
    wrap,
)
from report_runs import texts

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J", r"\x1b[2J"),
        ("\x1b]8;;http://evil\x07", r"\x1b]8;;http://evil\x07"),
        ("\x9b31m", r"\x9b31m"),
        ("a\u202eb", r"a\u202eb"),
        ("\ud800", r"\ud800"),
        ("one\rtwo\r\nthree", "one\ntwo\nthree"),
        ("Möbel\tサクラ 👩\u200d🔧", "Möbel\tサクラ 👩\u200d🔧"),
    ],
)
def test_what_could_act_on_a_terminal_is_shown_and_the_rest_is_kept(text: str, shown: str) -> None:
    assert clean(text) == shown


@given(texts)
def test_clean_text_holds_no_control_but_line_feed_and_tab(text: str) -> None:
    held = set(clean(text)) - {"\n", "\t"}
    assert all(char.isprintable() or char.isspace() or char == "\xad" or ord(char) > 0xFF for char in held)
    assert not held & set(BIDI)


@given(texts)
def test_cleaning_twice_changes_nothing(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@given(texts | st.text(min_size=LINE_CHARS))
def test_one_line_is_one_short_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1
    assert len(one_line(text)) <= LINE_CHARS


def test_a_long_line_ends_with_an_ellipsis() -> None:
    assert one_line("word " * 100, chars=12) == "word word w…"
    assert one_line(" " * 5_000 + "word").endswith("…")


def test_a_very_long_text_says_how_much_is_left_out() -> None:
    assert shorten("x" * 1_000_000).endswith("x… (996,000 more characters)")


def test_wrapped_text_hangs_under_its_first_line() -> None:
    assert wrap("one\ntwo", first="said ", indent="     ") == "said one\n     two"
    assert all(len(line) <= LINE_CHARS for line in wrap("word " * 99, first="", indent="  ").split("\n"))


@given(st.text())
def test_a_quoted_text_reads_back_as_json(text: str) -> None:
    assert json.loads(quote(text)) == text
    assert quote(text) == clean(quote(text))


@given(st.lists(st.text()))
def test_an_escaped_document_says_the_same(values: list[str]) -> None:
    document = json.dumps(values, ensure_ascii=False)
    assert json.loads(escape_unsafe(document)) == values


def test_attributes_have_camel_case_keys_in_the_order_of_their_names() -> None:
    counts = CaseCounts(7, "hello", passed=2, partly_judged=1)
    found = attributes_json(counts, "partly_judged", "number", "utterance")
    assert list(found.items()) == [("partlyJudged", 1), ("number", 7), ("utterance", "hello")]


def test_columns_are_as_wide_as_their_longest_cell_and_lines_have_no_blanks_at_their_end() -> None:
    assert aligned([("a", "bb", ""), ("ccc", "d", "e")]) == ["a    bb", "ccc  d   e"]
