"""The state of an agent's session in test specs, as a user writes and runs them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import evalmeta as library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = """
class Agent:
    def open(self, history, context):
        return Conversation()


class Conversation:
    def __init__(self):
        self.cart = []

    def ask(self, utterance):
        if utterance.startswith("Add "):
            self.cart.append({"sku": utterance[4:], "count": 1})
        state = {"cart": {"items": self.cart}, "user:name": "Ada"}
        return {"outcome": "Done.", "actions": [], "state": state, "handoffs": ["Cart"]}


def silent(utterance):
    return {"outcome": "Done.", "actions": []}
"""
SPEC = """\
subject: agents:Agent
defaults: {contains: Done}
testCases:
- turns:
  - input: Hello
    state: {cart.items: [], user:name: Ada}
  - input: Add A-7
    state:
      cart.items[0]: {sku: {matches: ^A-}}
      $.cart.items[-1].count: {at_least: 1, at_most: 1}
    handoffs: [Cart]
"""
FAILING = 'cart.items[0].sku: expected "B-1", got "A-7"'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plain folder with an agent that has a session."""
    (tmp_path / "agents.py").write_text(AGENT)
    (tmp_path / "cart.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_state_after_each_turn_is_compared(evalmeta: Program, folder: Path) -> None:
    assert evalmeta("validate", "cart.yaml").code == 0
    done = evalmeta("run", "cart.yaml", "--undecided", "fail")
    assert (done.code, "1 case: 1 passed" in done.out) == (0, True), done.out

    (folder / "cart.yaml").write_text(SPEC.replace("{matches: ^A-}", "B-1"))
    failed = evalmeta("run", "cart.yaml")
    assert failed.code == 100
    assert 'state cart.items[0] {"sku": "B-1"}: FAILURE' in failed.out.replace(" in turn 2", "")
    assert f"why       {FAILING}" in failed.out


def test_an_agent_that_reports_no_state_never_passes(evalmeta: Program, folder: Path) -> None:
    (folder / "cart.yaml").write_text(SPEC.replace("    handoffs: [Cart]\n", ""))
    done = evalmeta("run", "cart.yaml", "--agent", "agents:silent")
    assert (done.code, "1 case: 0 passed" in done.out) == (100, True), done.out
    assert "the agent does not report the state of its session" in done.out


def test_results_have_the_state_after_each_turn(evalmeta: Program, folder: Path) -> None:
    done = evalmeta("test", "run", "cart.yaml", "--wait", "--report", "run.jsonl")
    assert done.code == 0, done.err
    line = json.loads((folder / "run.jsonl").read_text())
    state = {"cart": {"items": [{"sku": "A-7", "count": 1}]}, "user:name": "Ada"}
    assert (line["state"], line["earlier"][0]["state"]["cart"], line["handoffs"]) == (state, {"items": []}, ["Cart"])
    shown = json.loads(evalmeta("test", "results", "--job-id", "latest", "--result-format", "json").out)
    generated = shown["testCases"][0]["generatedData"]
    assert (generated["sessionState"], generated["handoffs"]) == (state, ["Cart"])


@pytest.mark.slow
def test_a_stored_state_is_judged_again_by_a_rescored_run_and_by_a_replayed_one(
    evalmeta: Program, folder: Path
) -> None:
    evalmeta("run", "cart.yaml", "--report", "run.jsonl")
    assert evalmeta("test", "rescore", "latest", "--undecided", "fail").code == 0
    (folder / "evalmeta.toml").write_text('[subjects.Old]\nadapter = "replay"\nfile = "run.jsonl"\n')
    replayed = evalmeta("test", "run", "cart.yaml", "--agent", "Old", "--wait", "--undecided", "fail")
    assert (replayed.code, "1 case: 1 passed" in replayed.out) == (0, True), replayed.out
    (folder / "cart.yaml").write_text(SPEC.replace("{matches: ^A-}", "B-1"))
    failed = evalmeta("test", "run", "cart.yaml", "--agent", "Old", "--wait")
    assert (failed.code, FAILING in failed.out) == (100, True)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("q.csv", 'input,state\nAdd A-7,"{""cart.items[0].sku"": ""B-1""}"\n'),
        ("q.jsonl", '{"input": "Add A-7", "state": {"cart.items[0].sku": "B-1"}}\n'),
    ],
)
def test_tables_and_json_lines_have_states(evalmeta: Program, folder: Path, file: str, content: str) -> None:
    (folder / file).write_text(content)
    assert FAILING in evalmeta("run", file, "--agent", "agents:Agent").out


def test_cases_in_python_have_states() -> None:
    def agent(utterance: str) -> dict[str, object]:
        return {"outcome": "Done.", "state": {"total": 30.0, "user": {"name": utterance}}}

    wanted = {"total": 30, "user": {"name": {"type": "string"}}}
    run = library.evaluate([{"input": "Ada", "state": wanted}, {"input": "Ada", "state": {"total": 31}}], agent)
    assert [case.verdict for case in run.run.cases] == ["PASS", "FAILURE"]


def test_a_mistake_in_a_path_is_found_before_the_run(evalmeta: Program, folder: Path) -> None:
    (folder / "cart.yaml").write_text(SPEC.replace("cart.items[0]:", "'cart.items[':"))
    for command in (("validate", "cart.yaml"), ("run", "cart.yaml")):
        done = evalmeta(*command)
        assert done.code in {1, 2}
        assert "the path 'cart.items[' cannot be used" in done.out + done.err


def test_a_definition_cannot_hold_a_state_and_the_loss_is_named(evalmeta: Program) -> None:
    done = evalmeta("convert", "cart.yaml", "--to", "definition", "--subject-name", "Cart", "--json")
    losses = [loss["what"] for loss in json.loads(done.out)["result"]["losses"]]
    assert "the check 'state cart.items []', for which definitions have no expectation" in losses
    assert evalmeta("convert", "cart.yaml", "--to", "definition", "--subject-name", "Cart", "--strict").code != 0


CONVERSATION = """\
subject: agents:Agent
defaults: {expectedOutcome: Done.}
testCases:
- turns:
  - {input: Hello, state: {user:name: Ada}}
  - {input: Add A-7, state: {user:name: Ada}}
"""


def test_an_eval_set_of_adk_has_the_state_after_the_last_turn(evalmeta: Program, folder: Path) -> None:
    (folder / "cart.yaml").write_text(CONVERSATION)
    done = evalmeta("convert", "cart.yaml", "--to", "adk", "-o", "cart.evalset.json")
    assert done.code == 0
    assert "the state that is expected; ADK has only that at the end of a case" in done.err
    [case] = json.loads((folder / "cart.evalset.json").read_text())["eval_cases"]
    assert (len(case["conversation"]), case["final_session_state"]) == (2, {"user:name": "Ada"})

    passed = evalmeta("run", "cart.evalset.json", "--agent", "agents:Agent")
    assert (passed.code, "3 of 5 results were judged" in passed.out) == (0, True), passed.out
    case["final_session_state"] = {"user:name": "Grace"}
    (folder / "cart.evalset.json").write_text(json.dumps({"eval_set_id": "cart", "eval_cases": [case]}))
    failed = evalmeta("run", "cart.evalset.json", "--agent", "agents:Agent")
    assert (failed.code, 'user:name: expected "Grace", got "Ada"' in failed.out) == (100, True)
    back = evalmeta("convert", "cart.evalset.json", "--to", "adk", "--dialect", "typescript")
    assert '"finalSessionState": {\n        "user:name": "Grace"' in back.out
