from __future__ import annotations

from evalmeta.model.difference import Change, ChangeKind, Difference
from evalmeta.report.comparison import difference_json, difference_lines

CHANGED = Change(ChangeKind.CHANGED, 3, ("expectation coherence", "label"), "one\ntwo", "three")


def text(difference: Difference) -> str:
    return "\n".join(line.text for line in difference_lines(difference))


def test_changes_are_listed_under_their_case() -> None:
    own = Change(ChangeKind.CHANGED, None, ("description",), "a", "b")

    assert text(Difference("A", "the org", "A.xml", (own, CHANGED, CHANGED))) == (
        "A (- the org, + A.xml)\n"
        "  description\n    - a\n    + b\n"
        "  test case 3\n"
        "    expectation coherence, label\n      - one\n        two\n      + three\n"
        "    expectation coherence, label\n      - one\n        two\n      + three"
    )


def test_an_addition_without_text_is_one_line() -> None:
    added = Change(ChangeKind.ADDED, 1, ("expectation coherence",), None, None)

    assert text(Difference("A", "the org", "A.xml", (added,))).endswith(
        "  test case 1\n    expectation coherence: added"
    )


def test_an_empty_text_can_be_seen() -> None:
    change = Change(ChangeKind.CHANGED, None, ("description",), "", "b ")

    assert text(Difference("", "a", "b", (change,))) == '- a, + b\n  description\n    - ""\n    + "b "'


def test_names_cannot_break_a_line() -> None:
    change = Change(ChangeKind.ADDED, None, ("contextVariable a\n  test case 1\x1b[2J",), None, "x")

    assert text(Difference("A", "a", "b", (change,))).splitlines()[1] == (
        "  contextVariable a test case 1\\x1b[2J: added"
    )


def test_a_difference_as_json_has_every_field() -> None:
    assert difference_json(Difference("A", "the org", "A.xml", (CHANGED,))) == {
        "fullName": "A",
        "before": "the org",
        "after": "A.xml",
        "formOnly": False,
        "changes": [
            {
                "kind": "changed",
                "testCase": 3,
                "what": ["expectation coherence", "label"],
                "before": "one\ntwo",
                "after": "three",
            }
        ],
    }
