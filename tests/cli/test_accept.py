"""`evalmeta test accept`, from a run to the changed file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = "def answer(utterance):\n    return {'topic': 'Orders', 'outcome': 'On Friday.'}\n"
SPEC = "subject: desk:answer\ncases:\n- input: Where is it?  # often\n  topic: Returns\n  equals: On Friday.\n"


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Program) -> Path:
    """Gives a test spec whose topic is wrong, and which has been run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalmeta.toml").touch()
    (tmp_path / "desk.py").write_text(AGENT)
    file = tmp_path / "orders.yaml"
    file.write_text(SPEC)
    assert evalmeta("run", "orders.yaml").code == 100
    return file


def test_the_change_is_shown_and_needs_a_yes(spec: Path, evalmeta: Program) -> None:
    refused = evalmeta("test", "accept", "--job-id", "latest", "--case", "1")
    assert refused.code == 2
    assert "-  topic: Returns\n+  topic: Orders\n" in refused.out
    assert "the change must be confirmed in a terminal; nothing was written" in refused.err
    assert evalmeta("test", "accept", "--job-id", "latest", "--case", "1", "--dry-run").code == 0
    assert spec.read_text() == SPEC


def test_an_accepted_answer_passes_the_next_run(spec: Path, evalmeta: Program) -> None:
    accepted = evalmeta("test", "accept", "--use-most-recent", "--case", "1", "--expectation", "topic", "--yes")
    assert accepted.out.endswith("Changed orders.yaml.\n")
    assert spec.read_text() == SPEC.replace("Returns", "Orders")
    assert evalmeta("run", "orders.yaml").code == 0
    again = evalmeta("test", "accept", "--job-id", "previous", "--case", "1")
    assert (again.code, "orders.yaml already expects this" in again.err) == (2, True)


def test_the_envelope_has_the_file_and_the_change(spec: Path, evalmeta: Program) -> None:
    result = json.loads(evalmeta("test", "accept", "-i", "latest", "--case", "1", "--yes", "--json").out)["result"]
    assert (result["file"], result["written"]) == (spec.name, True)
    assert "+  topic: Orders\n" in result["diff"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[{name: Find, input: {id: 1}}]", '[{name: Find, input: {id: 2}}, {name: Send, input: {to: "ann b"}}]'),
        (
            "[{name: Find, input: {id: {at_least: 2}}}]",
            '[{name: Find, input: {id: {at_least: 2}}}, {name: Send, input: {to: "ann b"}}]',
        ),
        (
            "\n  - name: Send\n    input:\n      to: {matches: b$}\n  - Find\n  # last",
            "\n  - Find\n  - name: Send\n    input:\n      to: {matches: b$}\n  # last",
        ),
        ("{name: Find, input: {id: 2}}", '[{name: Find, input: {id: 2}}, {name: Send, input: {to: "ann b"}}]'),
    ],
    ids=["other", "matcher", "block", "single"],
)
def test_the_calls_that_were_made_become_the_expected_actions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Program, before: str, after: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalmeta.toml").touch()
    made = [{"name": "Find", "input": {"id": 2, "key": "x"}}, {"name": "Send", "input": {"to": "ann b"}}]
    (tmp_path / "desk.py").write_text(f"def answer(utterance):\n    return {{'outcome': 'Hi', 'actions': {made}}}\n")
    head, foot = "subject: desk:answer\ncases:\n- input: Where is it?\n  actions: ", "\n  contains: Hi\n"
    head = head.rstrip() if before.startswith("\n") else head
    (tmp_path / "orders.yaml").write_text(head + before + foot)
    assert evalmeta("run", "orders.yaml").code == 100
    accepted = evalmeta("test", "accept", "--job-id", "latest", "--case", "1", "--yes")
    assert (accepted.code, (tmp_path / "orders.yaml").read_text()) == (0, head + after + foot)
    assert evalmeta("run", "orders.yaml").code == 0
    again = evalmeta("test", "accept", "--job-id", "previous", "--case", "1")
    assert (again.code, "orders.yaml already expects this" in again.err) == (2, True)


def test_a_hidden_secret_does_not_become_an_expected_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Program
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalmeta.toml").write_text('[redact]\npatterns = ["PIN-[0-9]+"]\n')
    answer = "{'outcome': 'Hi', 'actions': [{'name': 'Pay', 'input': {'pin': 'PIN-1234', 'sum': 5}}]}"
    (tmp_path / "desk.py").write_text(f"def answer(utterance):\n    return {answer}\n")
    file = tmp_path / "orders.yaml"
    file.write_text("subject: desk:answer\ncases:\n- input: Pay\n  actions: [{name: Ask, input: {id: 1}}]\n")
    assert evalmeta("run", "orders.yaml").code == 100
    accepted = evalmeta("test", "accept", "--job-id", "latest", "--case", "1", "--yes")
    assert "the argument pin of Pay has a hidden secret and is not expected" in accepted.out
    assert file.read_text().endswith("actions: [{name: Pay, input: {sum: 5}}]\n")
    assert "1234" not in accepted.out + accepted.err + file.read_text()
    assert evalmeta("run", "orders.yaml").code == 0


def test_actions_that_another_test_expects_now_are_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Program
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalmeta.toml").touch()
    (tmp_path / "desk.py").write_text(
        "def answer(utterance):\n    return {'outcome': 'Hi', 'actions': [{'name': 'Find', 'input': {'id': 2}}]}\n"
    )
    spec = "subject: desk:answer\ncases:\n- input: Where is it?\n  actions: [{name: Find, input: {id: 1}}]\n"
    (tmp_path / "orders.yaml").write_text(spec)
    assert evalmeta("run", "orders.yaml").code == 100
    (tmp_path / "orders.yaml").write_text(spec.replace("id: 1", "id: 3"))
    refused = evalmeta("test", "accept", "--job-id", "latest", "--case", "1", "--yes")
    assert (refused.code, "expects something else" in refused.err) == (2, True)
    assert "id: 3" in (tmp_path / "orders.yaml").read_text()
