from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalmeta import limits
from evalmeta.engine.references import resolve
from evalmeta.model.generated_data import Action, GeneratedData, reference_root
from evalmeta.model.jsonpath import Descendants, Everything, Length, Names, Positions, Range, why_unreachable
from evalmeta.model.jsonpath_parser import parse_reference, read_reference


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
        ("$.a[?(@.b in @.c)]", "uses `in` without a list"),
        ("$.a[?(@.b contains 'x')]", "uses `contains` in a filter"),
        ("$.a[?(@.b empty true)]", "uses `empty` in a filter"),
        ("$.a[?(!(@.b == 1))]", "negates a group"),
        ("$.a.max()", "uses the function `.max()`"),
        ("$.a[?length(@.b) == 1]", "uses the function `length()`"),
        ("$.a.length().b", "`.length()` must be the last step"),
        (r"$['\ud83d']", "half a surrogate pair"),
        ("$['a', 1]", "is not a supported JSONPath near 1"),
        ("$.a['é' 'b']", "is not a supported JSONPath near 'b'"),
        ("$.€", "unexpected character €"),
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
        ("$.a[?(@.b == {x})]", "is not a supported JSONPath"),
        ("$.a[", "is not a supported JSONPath"),
        ("$." + "a" * limits.MAX_REFERENCE_CHARS, "characters long"),
        ("$[?" + "(" * 30 + "@.a" + ")" * 30 + "]", "parentheses"),
    ],
)
def test_what_cannot_be_followed_is_refused_with_the_reason(text: str, complaint: str) -> None:
    found = read_reference(text)
    assert isinstance(found, str)
    assert complaint in found


def test_escapes_descendants_and_lengths_are_read() -> None:
    assert parse_reference(r"$['\u00e9\ud83d\ude00\'']..b.length()").steps == (
        Names(("é😀'",)),
        Descendants(),
        Names(("b",)),
        Length(),
    )
    assert parse_reference("$.straße.名前").steps == (Names(("straße",)), Names(("名前",)))


@pytest.mark.parametrize("text", ["$.a[?(@.b == 'a..b =~ `x` & y')]", '$["a|b"]', "$.a[?(@.b == true && @.c != null)]"])
def test_quoted_text_may_hold_anything(text: str) -> None:
    assert not isinstance(read_reference(text), str)


@given(st.text(alphabet="$.@[]()?*'\"=<>!&|,:0123ab \n\\`/{}-", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    found = read_reference("$" + text)
    assert not isinstance(found, str) or found.startswith("the reference")


DATA = "$.generatedData"
CALLS = f"{DATA}.invokedActions"
MEMBERS = "type, topic, actionsSequence, invokedActions, outcome, generatedResponse, sessionId"
ROOT = reference_root(
    GeneratedData('{"a": 1}', "T", (Action("A", {"x": [{"y": 1}]}, {"z": 2}, 3.0), Action("B")), session_id="s")
)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("$.outcome", "$ has no member outcome; it has generatedData"),
        (f"{DATA}.latencyMs", f"{DATA} has no member latencyMs; it has {MEMBERS}"),
        (f"{DATA}.Outcome", f"{DATA} has no member Outcome; did you mean outcome?"),
        (f"{DATA}[0]", f"{DATA} is an object, not a list"),
        (f"{DATA}.topic.name", f"{DATA}.topic is a single value without members"),
        (f"{CALLS}[0].function", f"{CALLS}[0] is a list; add [*] or [0] after it"),
        (f"{CALLS}[1][0]", f"{CALLS} has at most one item; write [0] or [*]"),
        (f"{CALLS}[*][*].function.result", f"{CALLS}[*][*].function has no member result; it has name, input, output"),
        (f"{CALLS}[?(@.function.name == 'A')]", f"{CALLS}[*] is a list; add [*] or [0] after it"),
        (f"{CALLS}[*][?(@.name == 'A')]", f"{CALLS}[*][*] has no member name; it has function, executionLatency"),
        (f"{CALLS}[*][?(@.nme || @.name in ['A'])]", f"{CALLS}[*][*] has no member nme"),
    ],
)
def test_a_reference_to_anything_else_than_recorded_values_is_unreachable(text: str, reason: str) -> None:
    assert (why_unreachable(parse_reference(text)) or "").startswith(reason)


REACHABLE = (
    f"{DATA}.outcome",
    f"{DATA}.outcome.a",
    f"{DATA}.*",
    f"{DATA}['topic','nothing']",
    f"{DATA}.actionsSequence[-1]",
    f"{DATA}.actionsSequence.length()",
    f"{CALLS}[-1][0:1].function.input.x[0].y",
    f"{CALLS}[*][?(@.function.name == 'A')].function.output.z",
    f"{CALLS}[*][?(@.function.name == 'A' || @.name == 'A')].executionLatency",
    f"{CALLS}[*][?(@.nothing != 1 && $.generatedData.topic == 'T')]",
    f"{CALLS}..name",
    f"{DATA}[?(@.topic == 'T')].sessionId",
    "$..*",
)


@pytest.mark.parametrize("text", REACHABLE)
def test_a_reference_that_matches_something_is_reachable(text: str) -> None:
    reference = parse_reference(text)
    assert resolve(reference, ROOT)
    assert why_unreachable(reference) is None
