from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalmeta.formats.diagnostics import foreign_character
from evalmeta.formats.expectation_edits import ExpectationPlace, is_only_change, replace_calls, replace_expected
from evalmeta.formats.testspec import read_spec
from evalmeta.model.definition import Expectation
from evalmeta.model.expectations import render_actions

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.json_value import JsonValue

TEXTS = st.text(st.characters(codec="utf-8"), min_size=1).filter(
    lambda text: text.strip() and not foreign_character(text)
)
ACTIONS = "action_sequence_match"


def replaced(content: str, name: str, value: str, *, number: int = 1) -> str:
    old = Expectation(name, "Old")
    data = content.encode()
    return replace_expected(data, label="x.yaml", number=number, turn=0, expectation=old, place=0, value=value).decode()


@given(TEXTS, st.sampled_from(("Old", '"Old"', "'Old'", "|\n    Old", ">-\n    Old", "Old  # why", "'Old'\n\n  # why")))
@example("yes", "Old")
@example("a: b # c", "Old")
@example("\U0001f600\u2028\x85\ufeff", "'Old'")
def test_any_text_replaces_only_the_one_scalar(answer: str, old: str) -> None:
    content = (
        f"\ufefftestCases:\n# first\n- input: Hi\n  equals: {old}\n  tags: [a] # last\n- input: Ho\n  topic: Two\n"
    )
    before = read_spec(content.encode(), label="x.yaml")
    after = replaced(content, "equals", answer)
    assert after.startswith(content.partition(old)[0])
    assert after.endswith(content.partition(old.split("  #", maxsplit=1)[0].rstrip())[2])
    spec = read_spec(after.encode(), label="x.yaml")
    assert spec.cases[0].turns[0].expectations[0].expected_value == answer
    assert spec.cases[1] == before.cases[1]


@pytest.mark.parametrize(
    ("old", "names", "new"),
    [
        ("actions: A # why", ["B"], "actions: B # why"),
        ("actions: A", ["B", "C d"], "actions: [B, C d]"),
        ("actions: [A, 'B'] # why", ["a: b"], 'actions: ["a: b"] # why'),
        ("actions:\n  - A\n  - B\n  # why", ["C", "D", "E"], "actions:\n  - C\n  - D\n  - E\n  # why"),
        ("actions:\n  - A", [], "actions: []"),
        ("expectedActions:", ["A"], "expectedActions: [A]"),
    ],
)
def test_a_list_of_actions_keeps_its_form(old: str, names: list[str], new: str) -> None:
    content = "cases:\n- input: Hi\n  {}\n  tags: a\n"
    assert replaced(content.format(old), ACTIONS, render_actions(names)) == content.format(new)


@pytest.mark.parametrize(
    ("old", "calls", "new"),
    [
        (
            '{"cases": [{"input": "Hi", "actions": [{"name": "A", "input": {"n": 1}}]}]}',
            [({"name": "A", "input": {"n": 2, "t": True, "l": ["a:"]}}, None), ("C", None)],
            '{"cases": [{"input": "Hi", "actions": [{"name": "A", "input": {"n": 2, "t": true, "l": ["a:"]}}, "C"]}]}',
        ),
        (
            "cases:\n- turns:\n  - input: Hi\n    actions:\n    - {name: A, input: {n: 1}}\n    - B\n    # why\n",
            [("B", 1), ({"name": "C", "input": {"a,": "no"}}, None)],
            'cases:\n- turns:\n  - input: Hi\n    actions:\n    - B\n    - {name: C, input: {"a,": "no"}}\n    # why\n',
        ),
        (
            "cases:\n- input: Hi\n  actions:\n    name: A\n    input: {n: 1}\n  tags: a\n",
            [],
            "cases:\n- input: Hi\n  actions:\n    []\n  tags: a\n",
        ),
    ],
    ids=["json", "turn", "single"],
)
def test_calls_replace_only_the_list_of_actions(
    tmp_path: Path, old: str, calls: list[tuple[JsonValue, int | None]], new: str
) -> None:
    path = tmp_path / "x.yaml"
    before = read_spec(old.encode(), label="x.yaml").document("x").evaluation
    [case] = before.cases
    place = ExpectationPlace(case, 0, 0)
    after = replace_calls(path, old.encode(), place, calls)
    assert after.decode() == new
    now = read_spec(after, label="x.yaml").document("x").evaluation
    assert is_only_change(before, now, place, "", calls=[call for call, _ in calls])
    assert not is_only_change(before, now, place, "", calls=["Other"])


def test_a_spec_in_json_stays_json() -> None:
    content = '{"cases": [{"input": "Hi", "actions": ["A"], "equals": "Old"}]}'
    assert replaced(content, "equals", 'It is "5"') == content.replace('"Old"', '"It is \\"5\\""')
    assert replaced(content, ACTIONS, "['B']") == content.replace('"A"', '"B"')
