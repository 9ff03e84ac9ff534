from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from evalmeta.errors import FormatError
from evalmeta.formats.files import kind_of_file
from evalmeta.systems.test_tools.datasets import translate_deepeval

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Judge = Callable[..., dict[str, str]]
    Asked = Callable[..., list[str]]

SAVED = {"actual_output": None, "additional_metadata": None}


@pytest.mark.parametrize(
    ("name", "content", "passes", "fails"),
    [
        ("a.jsonl", '{"input": "2+2", "ideal": ["4", "four"]}\n', "It is four.", "It is five."),
        ("a.jsonl", '{"input": "2+2", "target": "Four"}\n', "four", "five"),
        ("a.csv", "input,target\n2+2,Four\n", "It is FOUR", "five"),
        ("a.json", [{"input": "2+2", "target": ["a.b", "c"]}], "xA.Bx", "axb"),
        (
            "a.json",
            [{"input": "i", "expected_tools": [{"name": "find", "input_parameters": {"a": 1}}], **SAVED}],
            {"response": "x", "actions": [{"name": "find", "input": {"a": 1, "b": 2}}, "mail"]},
            {"response": "x", "actions": [{"name": "find", "input": {"a": 2}}]},
        ),
        (
            "a.csv",
            "input,actual_output,expected_output,expected_tools\ni,,,find;mail\n",
            {"response": "x", "actions": ["mail", "find"]},
            {"response": "x", "actions": ["find"]},
        ),
    ],
)
def test_a_dataset_judges_answers(verdicts: Judge, name: str, content: object, passes: object, fails: object) -> None:
    assert set(verdicts(name, content, passes).values()) == {"PASS"}
    assert "FAILURE" in verdicts(name, content, fails).values()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"input": "x", "ideal": []}\n'),
        ("a.json", [{"input": "x", "target": "A", "choices": ["a", "b"]}]),
        ("a.json", [{"input": "x", "target": ""}]),
        ("a.jsonl", '{"dataset_id": "d", "inputs": {"q": "x"}, "outputs": {"a": "1", "b": "2"}}\n'),
        ("a.json", [{"scenario": "s", "turns": [{"role": "user", "content": "x"}], "expected_outcome": None}]),
        ("a.json", [{"scenario": "s", "turns": [{"role": "user", "content": "x"}], "expected_outcome": ["A"]}]),
    ],
)
def test_what_no_check_can_judge_is_undecided(verdicts: Judge, name: str, content: object) -> None:
    assert list(verdicts(name, content, "A").values()) == ["UNDECIDED"]


def test_an_expected_output_that_is_not_a_text_does_not_vanish_beside_expected_tools(verdicts: Judge) -> None:
    content = [{"input": "x", "expected_output": {"total": 42}, "expected_tools": [{"name": "find"}], **SAVED}]
    answer = {"response": "x", "actions": ["find"]}
    assert sorted(verdicts("a.json", content, answer).values()) == ["PASS", "UNDECIDED"]


def test_files_of_a_sample_make_it_undecided_beside_its_target(verdicts: Judge) -> None:
    content = [{"input": "x", "target": "A", "files": {"a": "b"}}]
    assert sorted(verdicts("a.json", content, "A").values()) == ["PASS", "UNDECIDED"]


@pytest.mark.parametrize(
    ("name", "content", "utterances"),
    [
        ("a.jsonl", '{"input": [{"role": "user", "content": [{"type": "text", "text": "x"}]}], "ideal": "y"}\n', ["x"]),
        ("a.jsonl", '{"split": "base", "inputs": {"question": "x"}, "outputs": {"answer": "y"}}\n', ["x"]),
        (
            "a.json",
            {
                "examples": [
                    {
                        "created_at": "2026",
                        "inputs": {"messages": [{"type": "human", "content": "x"}]},
                        "outputs": {"messages": [{"type": "ai", "content": "y"}]},
                    }
                ]
            },
            ["x"],
        ),
        (
            "a.json",
            [
                {
                    "scenario": "s",
                    "expected_outcome": "polite",
                    "turns": [
                        {"role": "user", "content": "x"},
                        {"role": "assistant", "content": "y"},
                        {"role": "user", "content": "z"},
                    ],
                }
            ],
            ["x", "z"],
        ),
    ],
)
def test_what_the_user_says_is_asked(asked: Asked, name: str, content: object, utterances: list[str]) -> None:
    assert asked(name, content) == utterances


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", [{"scenario": "s", "turns": None, "expected_outcome": "o"}], "needs a simulated user"),
        ("a.jsonl", '{"input": 3, "ideal": "y"}\n', "the input is not a text"),
        ("a.jsonl", '{"input": [{"role": "user", "content": [{"type": "image"}]}], "ideal": "y"}\n', "is not a text"),
        ("a.jsonl", '{"input": "x", "ideal": "y"}\n3\n', "a.jsonl:2: a test case is not an object"),
        ("a.jsonl", '{"split": "s", "inputs": {}, "outputs": {}}\n', "an example has no inputs"),
    ],
)
def test_a_dataset_that_cannot_be_read_says_where_and_why(
    asked: Asked, name: str, content: object, reason: str
) -> None:
    with pytest.raises(FormatError, match=reason):
        asked(name, content)


@pytest.mark.parametrize(
    ("content", "known"),
    [
        ('{"input": "x", "ideal": "y", "contains": "z"}\n', "testspec"),
        ('{"input": "x", "ideal": "y"}\n', "openai-evals"),
        ('{"inputs": {"q": "x"}, "outputs": "y", "split": "a", "expectations": {}}\n', "databricks"),
        ('{"inputs": {"q": "x"}, "outputs": "y"}\n', "databricks"),
        ('{"inputs": {"q": "x"}, "outputs": {"a": "y"}, "split": "a"}\n', "langsmith"),
    ],
)
def test_the_keys_of_a_row_tell_the_formats_apart(tmp_path: Path, content: str, known: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(content)
    kind = kind_of_file(path)
    assert kind is not None
    assert kind.format == known


def test_what_a_golden_has_beside_its_checks_is_named(tmp_path: Path) -> None:
    golden = {
        "input": "x",
        "expected_tools": "find; mail",
        "tools_called": ["find"],
        "actual_output": "y",
        "context": ["c"],
        "retrieval_context": ["r"],
        "comments": "from Ada",
    }
    (tmp_path / "a.json").write_text(json.dumps({"goldens": [golden]}))
    [case] = translate_deepeval(tmp_path / "a.json", label="a.json").cases
    assert (case.values["actions"], case.values["action_match"]) == (
        *([{"name": "find"}, {"name": "mail"}], "superset"),
    )
    assert case.values["metadata"] == {"comments": "from Ada"}
    assert [text.partition(",")[0] for text in case.left_out] == [
        *("actual_output", "tools_called", "context", "retrieval_context")
    ]


def test_expected_tools_may_be_names_and_other_things_are_undecided(verdicts: Judge) -> None:
    named = [{"input": "x", "expected_tools": ["find"], **SAVED}]
    assert set(verdicts("a.json", named, {"response": "x", "actions": []}).values()) == {"FAILURE"}
    assert set(verdicts("a.json", named, {"response": "x", "actions": ["find"]}).values()) == {"PASS"}
    numbered = [{"input": "x", "expected_tools": {"find": 1}, **SAVED}]
    assert verdicts("a.json", numbered, {"response": "x", "actions": []}) == {"the expected tools": "UNDECIDED"}


@pytest.mark.parametrize(
    ("content", "reason"), [("[]", "a.json has no test cases"), ('{"golden": []}', "a.json has no list of test cases")]
)
def test_a_dataset_without_test_cases_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(FormatError, match=reason):
        translate_deepeval(tmp_path / "a.json", label="a.json")
