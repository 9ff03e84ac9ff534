"""`evalmeta trace import --to`: test cases from traces, which a person must review."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

RECORDINGS = Path(__file__).parents[1] / "traces/recordings"
LANGCHAIN = RECORDINGS / "langchain_openinference.jsonl"
PYDANTIC_AI = RECORDINGS / "pydantic_ai_5.jsonl"
AGENTS = RECORDINGS / "openai_agents.jsonl"
TRACE = "23b92b43e6d3333968a1618fccb13d1c"
SUBJECT = '[subjects.recorded]\nadapter = "replay"\nfile = "recordings.jsonl"\n'
CALL = [{"name": "get_order", "input": {"id": "10045"}}]
SECRET = "sk-ant-api03-Qx7ZpLmN4tRsVwYb-AbCdEfGhIj"  # noqa: S105 - it is made up


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def cases(folder: Path, name: str = "t.yaml") -> list[dict[str, object]]:
    found: list[dict[str, object]] = yaml.safe_load((folder / name).read_text())["testCases"]
    return found


def test_proposed_tests_are_undecided_until_they_are_reviewed(folder: Path, evalmeta: Program) -> None:
    (folder / "evalmeta.toml").write_text(SUBJECT)
    done = evalmeta(
        "trace", "import", str(LANGCHAIN), "-o", "recordings.jsonl", "--to", "t.yaml", "--agent", "recorded"
    )
    assert done.code == 0, done.err
    before = evalmeta("run", "t.yaml")
    text = (folder / "t.yaml").read_text()
    (folder / "t.yaml").write_text(text.replace("    review: true\n", ""))
    after = evalmeta("run", "t.yaml")
    (folder / "t.yaml").write_text(text.replace("    review: true\n", "").replace('"10045"', '"10046"', 1))
    other = evalmeta("run", "t.yaml")
    assert (other.code, "1 failed" in other.out) == (100, True), other.out
    assert (before.code, ": 0 passed, 0 failed, 0 errors, 1 undecided" in before.out) == (100, True), before.out
    assert (after.code, ": 1 passed, 0 failed" in after.out) == (0, True), after.out


def test_a_conversation_is_one_case_with_turns(folder: Path, evalmeta: Program) -> None:
    evalmeta("trace", "import", str(LANGCHAIN), "--to", "tests/t.yaml")
    assert cases(folder, "tests/t.yaml") == [
        {
            "turns": [
                {"input": "Where is order 10045?", "topic": "order_desk", "actions": CALL},
                {"input": "Thanks", "topic": "order_desk", "actions": []},
            ],
            "metadata": {"trace": "cf8005ccf56a56c8bbd5636c4d81b79b"},
            "review": True,
        }
    ]


@pytest.mark.parametrize("name", ["adk_1", "adk_2_content", "langchain_openllmetry", "mlflow", "strands", "sdk"])
def test_proposed_tests_are_valid_but_for_the_review(folder: Path, evalmeta: Program, name: str) -> None:
    done = evalmeta("trace", "import", str(RECORDINGS / f"{name}.jsonl"), "--to", "t.yaml")
    if name == "sdk":
        assert (done.code, (folder / "t.yaml").exists()) == (2, False)
        return
    checked = json.loads(evalmeta("validate", "t.yaml", "--json").out)
    assert {problem["code"] for problem in checked["result"]["problems"]} == {"review-pending"}


@pytest.mark.parametrize(
    ("options", "inputs"),
    [
        (("--turn", "1"), ["Where is order 10045?"]),
        (("--text", "THANKS"), ["Where is order 10045?", "Thanks"]),
        (("--last", "1"), ["Where is order 10045?", "Thanks"]),
        (("--trace", "cf8005ccf56a56c8bbd5636c4d81b79b"), ["Where is order 10045?"]),
    ],
)
def test_a_chosen_turn_comes_with_the_turns_before_it(
    folder: Path, evalmeta: Program, options: tuple[str, ...], inputs: list[str]
) -> None:
    evalmeta("trace", "import", str(LANGCHAIN), "--to", "t.yaml", *options)
    [case] = cases(folder)
    turns = case.get("turns", [case])
    assert isinstance(turns, list)
    assert [turn["input"] for turn in turns] == inputs


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--turn", "3"), "there is no turn 3"),
        (("--turn", "x"), "not a valid list"),
        (("--trace", "abc"), "no turn has the trace abc"),
        (("--text", "refund"), "none of the 2 turns is chosen"),
    ],
)
def test_a_choice_without_turns_is_an_error(
    folder: Path, evalmeta: Program, options: tuple[str, ...], message: str
) -> None:
    done = evalmeta("trace", "import", str(LANGCHAIN), "--to", "t.yaml", *options)
    assert (done.code, message in done.err) == (2, True), done.err
    assert not (folder / "t.yaml").exists()


def test_a_turn_that_ended_in_an_error_is_named_and_left_out(folder: Path, evalmeta: Program) -> None:
    done = evalmeta("trace", "import", str(PYDANTIC_AI), "--to", "t.yaml")
    assert [case["input"] for case in cases(folder)] == ["Where is order 10045?"]
    left_out = "trace a7e7294547f47afcc593d0b77dd3ed49 is not in the tests: it ended in an error: ValueError"
    assert left_out in done.err


def test_traces_without_content_become_no_test(folder: Path, evalmeta: Program) -> None:
    done = evalmeta("trace", "import", str(RECORDINGS / "adk_2.jsonl"), "--to", "t.yaml")
    assert (done.code, "no trace can become a test: its utterance is unknown" in done.err) == (2, True)
    assert not (folder / "t.yaml").exists()


def test_the_same_case_is_written_once_and_counted(folder: Path, evalmeta: Program) -> None:
    (folder / "again.jsonl").write_text(AGENTS.read_text().replace(TRACE, "a" * 32))
    done = evalmeta("trace", "import", str(AGENTS), "again.jsonl", "--to", "t.yaml", "--json")
    [case] = cases(folder)
    assert case["metadata"] == {"trace": TRACE, "times": 2}
    tests = json.loads(done.out)["result"]["tests"]
    assert tests == {"cases": 1, "turns": 1, "repeated": 1, "noted": [], "leftOut": []}


def test_secrets_are_hidden_and_not_expected(folder: Path, evalmeta: Program) -> None:
    text = AGENTS.read_text().replace("Where is order 10045?", f"My key is {SECRET}").replace("10045", SECRET)
    (folder / "t.jsonl").write_text(text)
    done = evalmeta("trace", "import", "t.jsonl", "--to", "t.yaml")
    written = (folder / "t.yaml").read_text()
    assert SECRET not in written + done.out + done.err
    [case] = cases(folder)
    assert (case["input"], case["actions"]) == ("My key is [secret]", ["get_order"])
    assert "the input has a hidden secret; the argument id of get_order has a hidden secret" in str(case["metadata"])
    assert "case 1 lacks a value; the note in its metadata says which" in done.err


def test_what_the_project_redacts_is_hidden_too(folder: Path, evalmeta: Program) -> None:
    (folder / "evalmeta.toml").write_text("[redact]\npatterns = ['order \\d+']\n")
    evalmeta("trace", "import", str(AGENTS), "--to", "t.yaml")
    assert cases(folder)[0]["input"] == "Where is [secret]?"


def test_another_file_is_only_overwritten_with_force(folder: Path, evalmeta: Program) -> None:
    (folder / "t.yaml").write_text("mine\n")
    refused = evalmeta("trace", "import", str(AGENTS), "-o", "r.jsonl", "--to", "t.yaml")
    assert (refused.code, "--force" in refused.err, (folder / "t.yaml").read_text()) == (2, True, "mine\n")
    assert not (folder / "r.jsonl").exists()
    assert evalmeta("trace", "import", str(AGENTS), "--to", "t.yaml", "--force").code == 0
    assert evalmeta("trace", "import", str(AGENTS), "--to", "t.json").code == 2
    assert evalmeta("trace", "import", str(AGENTS), "--agent", "A").code == 2
