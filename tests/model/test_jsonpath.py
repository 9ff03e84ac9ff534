from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.model.jsonpath import Everything, Names, Positions, Range
from evalmeta.model.jsonpath_parser import check_reference, parse_reference


def test_a_reference_is_read_into_steps() -> None:
    steps = parse_reference("$.generatedData['a b'][0][*][1:2]").steps
    assert steps == (Names(("generatedData",)), Names(("a b",)), Positions((0,)), Everything(), Range(1, 2, None))


def test_blanks_and_line_breaks_between_the_parts_do_not_matter() -> None:
    plain = parse_reference("$.a[?(@.b == 'x  y')].c")
    assert parse_reference("\n$.a\r\n [ ?( @.b=='x  y' ) ]\n  .c ").steps == plain.steps


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a.b", "does not start with `$`"),
        ("$..a", "uses `..`"),
        ("$.a[?(@.b =~ '(a+)+$')]", "regular expression"),
        ("$.a.`sub(/(a+)+/, x)`", "function"),
        ("$.a.`split(a, 0, -1)`", "function"),
        ("$.a.`len`", "function"),
        ("$.a[/b]", "sorting"),
        ("$.a + $.b", "arithmetic"),
        ("$.a[?(@.b == X)]", "without quotes"),
        ("$.a[?(@.b = 'x')]", "write `==`"),
        ("$.a | $.b", "write `||`"),
        ("$.a & $.b", "write `&&`"),
        ("$.a where $.b", "`where`"),
        ("$.a[?(@[?(@.b)])]", "filter inside a filter"),
        ("$.a[?(b == 1)]", "does not start with `@`"),
        ("$.a.$.b", "`$` inside the path"),
        ("$.a[?(@.b == {x})]", "is not a valid JSONPath"),
        ("$.a[", "is not a valid JSONPath"),
        ("$." + "a" * limits.MAX_REFERENCE_CHARS, "characters long"),
        ("$[?" + "(" * 30 + "@.a" + ")" * 30 + "]", "parentheses"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_the_reason(text: str, complaint: str) -> None:
    assert complaint in (check_reference(text) or "")


@pytest.mark.parametrize("text", ["$.a[?(@.b == 'a..b =~ `x` & y')]", '$["a|b"]', "$.a[?(@.b == true && @.c != null)]"])
def test_quoted_text_may_hold_anything(text: str) -> None:
    assert check_reference(text) is None


@given(st.text(alphabet="$.@[]()?*'\"=<>!&|,:0123ab \n\\`/{}-", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    complaint = check_reference("$" + text)
    assert complaint is None or complaint.startswith("the reference")
