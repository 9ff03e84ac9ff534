"""How references differ from RFC 9535, the standard of JSONPath, on purpose.

`python benchmarks/jsonpath_compliance.py cts.json` compares them with the public compliance suite of the standard.
"""

from __future__ import annotations

import pytest

from evalmeta.engine.references import resolve
from evalmeta.model.jsonpath_parser import parse_reference, read_reference


@pytest.mark.parametrize(
    ("reference", "document", "standard", "found"),
    [
        pytest.param("$[?@.a == '1']", [{"a": 1}], [], [{"a": 1}], id="a number equals numeric text, as in Jayway"),
        pytest.param("$[?@.a == 1]", {"a": 1}, [], [{"a": 1}], id="a filter tests an object itself, as in Jayway"),
        pytest.param("$.a.b", {"a": '{"b": 1}'}, [], [1], id="JSON in text is read, as in Jayway"),
        pytest.param("$[?@.a == @.b]", [{"c": 1}], [{"c": 1}], [], id="two missing values are not equal"),
        pytest.param("$[0,0]", [7], [7, 7], [7], id="a value is matched once"),
        pytest.param("$[?@.a in [1]]", [{"a": 1}], None, [{"a": 1}], id="in, as in Jayway"),
        pytest.param("$.length()", [7], None, [1], id="length() after a path, as in Jayway"),
        pytest.param("$[?@[*] == 1]", [[2, 1]], None, [[2, 1]], id="a comparison holds if one of several values does"),
        pytest.param(" $[01] ", [1, 2], None, [2], id="blanks around and leading zeros"),
        pytest.param("$['\\q']", {"q": 1}, None, [1], id="a backslash before any character"),
    ],
)
def test_what_differs_on_purpose(reference: str, document: object, standard: object, found: list[object]) -> None:
    assert list(resolve(parse_reference(reference), document)) == found != standard


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("$[?match(@.a, 'x.*')]", "the function `match()`"),
        ("$[?search(@.a, 'x')]", "the function `search()`"),
        ("$[?count(@.*) > 1]", "the function `count()`"),
        ("$[?value(@.a) == 1]", "the function `value()`"),
        ("$[?length(@.a) > 1]", "only `.length()` after a path"),
        ("$[?@[?@.b]]", "a filter inside a filter"),
        ("$[?!(@.a == 1)]", "negate each comparison"),
        ("$['a', 0]", "not a supported JSONPath near 0"),
        ("$[*, 0]", "not a supported JSONPath near ,"),
        ("$[?@.a, ?@.b]", "not a supported JSONPath near ?"),
        ("$[1, 5:7]", "not a supported JSONPath near :"),
        ("$.\u263a", "unexpected character \u263a"),
    ],
)
def test_what_the_standard_allows_and_references_refuse(reference: str, reason: str) -> None:
    found = read_reference(reference)
    assert isinstance(found, str)
    assert reason in found
