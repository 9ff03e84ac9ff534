"""Test cases of other tools as those of test specs: what is read, and what is left out with a note."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalmeta import limits
from evalmeta.errors import FormatError
from evalmeta.formats.translation import (
    TranslatedCase,
    Translation,
    ask_inputs,
    ask_messages,
    kept_metadata,
    message_text,
    rows_of,
)

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.model.json_value import JsonValue


def test_all_cases_that_cannot_be_run_are_reported_with_their_lines() -> None:
    cases = [
        TranslatedCase({"input": "x"}, 1),
        TranslatedCase({}, 4),
        TranslatedCase({"input": "y", "matches": "("}, 7),
    ]
    with pytest.raises(FormatError) as caught:
        Translation("tests.json", cases).document("tests")
    assert [(problem.location.line, problem.message[:12]) for problem in caught.value.problems] == [
        (4, "test case 2:"),
        (7, "test case 3:"),
    ]


def test_a_check_that_evalmeta_cannot_make_marks_its_case_for_review_and_is_a_loss_of_the_spec() -> None:
    case = TranslatedCase({"input": "x", "metadata": {"team": "shop"}}, 1, ("the assertion cost",), ("the weight",))
    written = Translation("tests.json", [case], left_out=("providers",)).spec(subject="desk")
    assert b"review: true" in written.content
    assert b"not_judged: the assertion cost" in written.content
    assert [(loss.where, loss.what) for loss in written.losses] == [
        ("the file", "providers"),
        ("test case 1", "the weight"),
        ("test case 1", "the assertion cost; the case is marked review: true"),
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '[{"q": "x"},\n {"q": "y"}]'),
        ("a.json", '{"rows": [{"q": "x"},\n {"q": "y"}]}'),
        ("a.jsonl", '{"q": "x"}\n{"q": "y"}\n\n'),
        ("a.csv", "q, empty\nx,\ny,\n"),
    ],
)
def test_rows_are_read_from_lists_lines_and_tables_with_their_lines(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    first = 2 if name == "a.csv" else 1
    assert rows_of(tmp_path / name, label=name, key="rows") == [(first, {"q": "x"}), (first + 1, {"q": "y"})]


@pytest.mark.parametrize(
    ("key", "way_out"),
    [("rows", "Write them as a list under 'rows', or as a list alone."), ("", "Write them as a list.")],
)
def test_a_file_without_a_list_says_where_the_list_belongs(tmp_path: Path, key: str, way_out: str) -> None:
    (tmp_path / "a.json").write_text('{"tests": {}}')
    with pytest.raises(FormatError, match=r"a\.json has no list of test cases") as caught:
        rows_of(tmp_path / "a.json", label="a.json", key=key)
    assert caught.value.actions == (way_out,)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("x", "x"),
        (["x", {"type": "text", "text": "y"}], "x\ny"),
        ([{"type": "image"}, "x"], None),
        (None, None),
        ({"text": "x"}, None),
    ],
)
def test_a_message_with_other_parts_than_texts_has_no_text(content: JsonValue, text: str | None) -> None:
    assert message_text(content) == text


def test_messages_are_a_question_with_its_history_only_if_a_user_asks_last() -> None:
    asked = {"role": "human", "content": "Hi"}
    answered = {"type": "ai", "content": "Hello"}
    assert ask_messages([asked, answered, {"role": "user", "content": "Open?"}]) == {
        "input": "Open?",
        "conversationHistory": [{"role": "user", "message": "Hi"}, {"role": "agent", "message": "Hello"}],
    }
    assert ask_messages([asked]) == {"input": "Hi"}
    for others in ([], [asked, answered], ["Hi"], [{"role": "tool", "content": "x"}], [{"role": "user"}]):
        assert ask_messages(others) is None


def test_values_beside_messages_are_context_and_other_inputs_one_value() -> None:
    messages: JsonValue = [{"role": "user", "content": "Hi"}]
    assert ask_inputs({"messages": messages, "user": {"id": 7}}) == {"input": "Hi", "context": {"user": '{"id": 7}'}}
    assert ask_inputs({"messages": messages}) == {"input": "Hi"}
    assert ask_inputs({"question": "Hi"}) == {"input": "Hi"}
    assert ask_inputs({"messages": [3], "user": "a"}) == {"input": {"messages": [3], "user": "a"}}
    assert ask_inputs({"number": 7}) == {"input": {"number": 7}}


def test_the_longest_metadata_are_left_out_and_named_and_empty_ones_vanish() -> None:
    metadata: dict[str, JsonValue] = {"team": "shop", "empty": "", "log": "x" * limits.MAX_METADATA_BYTES}
    kept, left_out = kept_metadata(metadata)
    assert kept == {"metadata": {"team": "shop"}}
    assert left_out == ("'log', which is too long for metadata",)
    many, dropped = kept_metadata({f"n{number}": number for number in range(limits.MAX_METADATA_VALUES + 2)})
    assert len(json.loads(json.dumps(many))["metadata"]) == limits.MAX_METADATA_VALUES
    assert len(dropped) == 2
    assert kept_metadata({"empty": None}) == ({}, ())
