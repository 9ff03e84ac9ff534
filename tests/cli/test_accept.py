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


def test_actions_with_arguments_are_not_replaced_by_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalmeta: Program
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evalmeta.toml").touch()
    answer = "{'outcome': 'Hi', 'actions': [{'name': 'Find', 'input': {'id': 2}}]}"
    (tmp_path / "desk.py").write_text(f"def answer(utterance):\n    return {answer}\n")
    spec = "subject: desk:answer\ncases:\n- input: Where is it?\n  actions: [{name: Find, input: {id: 1}}]\n"
    (tmp_path / "orders.yaml").write_text(spec)
    assert evalmeta("run", "orders.yaml").code == 100
    refused = evalmeta("test", "accept", "--job-id", "latest", "--case", "1", "--yes")
    assert (refused.code, (tmp_path / "orders.yaml").read_text()) == (2, spec)
    assert "the actions of case 1 of orders.yaml have arguments, which an answer cannot replace" in refused.err
