from __future__ import annotations

import html
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta.model.expectations import is_action_list, parse_actions, render_actions

names = st.lists(st.text(max_size=12).map(str.strip))


@pytest.mark.parametrize(
    ("text", "actions"),
    [
        ("[]", ()),
        (" [ \n] ", ()),
        ("['A']", ("A",)),
        ('["A"]', ("A",)),
        ("['A', 'B']", ("A", "B")),
        ("['A','B']", ("A", "B")),
        ("['A', \"B\"]", ("A", "B")),
        ("\n  [\n 'A' ,\n\t'B'\n ]\n", ("A", "B")),
        ("['A', 'B',]", ("A", "B")),
        ("[' A ']", ("A",)),
        ("['A', 'A']", ("A", "A")),
        ("['']", ("",)),
        ("['it\\'s', 'a\\\\b']", ("it's", "a\\b")),
        ('["it\'s"]', ("it's",)),
        ("['a, b', '[c]']", ("a, b", "[c]")),
        ("[&#39;A&#39;, &#39;B&#39;]", ("A", "B")),
        ("[&quot;A&quot;]", ("A",)),
        ("['a &amp; b']", ("a &amp; b",)),
    ],
)
def test_every_spelling_is_read(text: str, actions: tuple[str, ...]) -> None:
    assert parse_actions(text) == actions


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "A",
        "[A]",
        "['A'",
        "'A']",
        "['A' 'B']",
        "['A',,'B']",
        "[,]",
        "['A'] x",
        "[['A']]",
        "('A')",
        "{}",
        "['A\\']",
    ],
)
def test_any_other_text_is_not_a_list(text: str) -> None:
    assert parse_actions(text) is None


@given(names)
def test_what_is_rendered_is_read_back(actions: list[str]) -> None:
    assert parse_actions(render_actions(actions)) == tuple(actions)


@given(names)
def test_results_escape_what_is_rendered_and_it_is_still_read(actions: list[str]) -> None:
    assert parse_actions(html.escape(render_actions(actions))) == tuple(actions)


def test_lists_are_rendered_as_the_reference_writes_them() -> None:
    assert render_actions(["A", "it's"]) == "['A', 'it\\'s']"
    assert render_actions([]) == "[]"


@given(st.text(st.sampled_from("[]'\",\\ \nA&#39;")))
def test_any_text_is_a_list_or_none(text: str) -> None:
    actions = parse_actions(text)
    assert actions is None or parse_actions(render_actions(actions)) == actions
    assert is_action_list(text) is (actions is not None)


@pytest.mark.parametrize(
    "text", ["['A'" + " " * 1_000_000, "[" + "'" * 1_000_000, "[" + "'A' , " * 200_000, "[" * 1_000_000]
)
def test_a_long_invalid_list_is_parsed_in_linear_time(text: str) -> None:
    assert parse_actions(text) is None


@given(st.lists(st.text().map(str.strip)))
def test_a_list_written_by_json_or_python_is_read_back(names: list[str]) -> None:
    for text in (json.dumps(names), json.dumps(names, ensure_ascii=False), repr(names), ascii(names)):
        assert parse_actions(text) == tuple(names)


def test_escaped_names_match_themselves() -> None:
    assert parse_actions(json.dumps(["Prüfen"])) == parse_actions("['Prüfen']") == ("Prüfen",)
