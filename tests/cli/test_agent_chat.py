"""`evalmeta agent chat` talks to an agent, shows its steps, and saves the conversation as a test case."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from systems.agent_script.projects import write_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Evalmeta = Callable[..., Outcome]

RULES = """\
rules:
  - {subagent: reception, call: to_repairs}
  - {utterance: "*7*", call: look_up, with: {number: "7"}}
  - {utterance: "*5*", call: look_up, with: {number: "5"}}
  - {answer: "It costs {!@variables.price}."}
"""
CHAT = ("agent", "chat", "Bike_Shop", "--context", "customer_id=C1")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path, rules=RULES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    return lambda text: monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


@pytest.mark.usefixtures("project")
def test_steps_and_answers_are_printed_and_the_conversation_becomes_a_test(
    evalmeta: Evalmeta, says: Callable[[str], None]
) -> None:
    says("Repair 7\nThanks\n\nnever asked\n")
    chat = evalmeta(*CHAT, "--to", "chat.yaml")

    assert (chat.code, "It costs 120." in chat.out) == (0, True), chat
    assert "tool find_ticket(" in chat.out
    assert "chat.yaml: 1 test case with 2 turns" in chat.err
    assert evalmeta("validate", "chat.yaml").code == 0
    run = evalmeta("run", "chat.yaml")
    assert "0 passed, 0 failed, 0 errors, 1 undecided" in run.out, run


def test_the_saved_test_turns_red_when_the_agent_does_something_else(
    project: Path, evalmeta: Evalmeta, says: Callable[[str], None]
) -> None:
    says("Repair 7\n")
    assert evalmeta(*CHAT, "--to", "chat.yaml").code == 0
    reviewed = (project / "chat.yaml").read_text().replace("review: true", "review: false")
    (project / "chat.yaml").write_text(reviewed)
    assert evalmeta("run", "chat.yaml").code == 0
    rules = project / "rules/Bike_Shop.yaml"
    rules.write_text(rules.read_text().replace("call: look_up", "call: keep").replace("number:", "ticket:"))
    assert evalmeta("run", "chat.yaml").code == 100


def test_control_characters_of_an_answer_do_not_reach_the_terminal(
    project: Path, evalmeta: Evalmeta, says: Callable[[str], None]
) -> None:
    (project / "rules/Bike_Shop.yaml").write_text("rules:\n  - answer: 'You said {!@system_variables.user_input}'\n")
    says("A\x1b]0;title\x07B\n")
    chat = evalmeta(*CHAT)
    assert (chat.code, r"You said A\x1b]0;title\x07B" in chat.out, "\x07" in chat.out) == (0, True, False), chat


@pytest.mark.usefixtures("project")
def test_turns_before_an_error_are_saved(evalmeta: Evalmeta, says: Callable[[str], None]) -> None:
    says("Repair 7\nRepair 5\n")
    chat = evalmeta(*CHAT, "--to", "chat.yaml")
    assert (chat.code, "no double answers the action find_ticket" in chat.err) == (1, True)
    assert "chat.yaml: 1 test case with 1 turn" in chat.err


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("agent", "chat", "Nobody"), "no adapter is bound to the agent 'Nobody'"),
        ((*CHAT, "--context", "member"), "'member' is not NAME=VALUE"),
        ((*CHAT, "--force"), "--force needs --to"),
        ((*CHAT, "--to", "chat.txt"), "chat.txt is not a name of a test spec"),
    ],
)
def test_what_cannot_work_is_refused_before_the_first_turn(
    evalmeta: Evalmeta, arguments: tuple[str, ...], fault: str
) -> None:
    refused = evalmeta(*arguments)
    assert (refused.code, fault in refused.err) == (2, True), refused
