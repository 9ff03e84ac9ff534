"""The traceback of an agent's own error, from the run to the reports."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = """
def answer(utterance):
    return look_up({})

def look_up(stock):
    return stock["lamp"]
"""
SPEC = """\
name: Orders
subjectType: AGENT
subjectName: Order_Desk
testCases:
  - utterance: Where is my order?
    expectedTopic: Orders
"""
RUN = ("test", "run", "orders.yaml", "--agent", "desk:answer", "--wait")
FIRST = '  File "desk.py", line 3, in answer'
LAST = "KeyError: 'lamp'"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plain folder with an agent that raises an exception."""
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "orders.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_human_report_shows_the_traceback_with_v_and_says_so_without(evalmeta: Program) -> None:
    short, long = evalmeta(*RUN).out, evalmeta(*RUN, "-v").out

    assert "Add -v to see the traceback of each error." in short
    assert FIRST.strip() not in short
    assert FIRST.strip() in long
    assert LAST in long
    assert "Add -v" not in long


@pytest.mark.parametrize("name", ["json", "jsonl", "junit", "ctrf", "html"])
def test_reports_for_programs_and_pages_have_the_traceback(evalmeta: Program, name: str) -> None:
    report = evalmeta(*RUN, "--result-format", name).out
    assert "in look_up" in report


def test_stored_results_and_rescored_runs_keep_the_traceback(evalmeta: Program) -> None:
    evalmeta(*RUN)
    for command in (("results", "-r"), ("rescore", "4KB000000000001GAA")):
        [run] = json.loads(evalmeta("test", *command, "--json").out)["result"]
        [case] = run["testCases"]
        assert case["traceback"].splitlines()[1] == FIRST
        assert case["traceback"].splitlines()[-1] == LAST


def test_a_traceback_cannot_control_a_terminal(evalmeta: Program, folder: Path) -> None:
    (folder / "desk.py").write_text("def answer(utterance):\n    raise OSError('\\x1b[2J ::error::x')\n")
    assert "\x1b" not in evalmeta(*RUN, "-v").out


def test_a_traceback_cannot_add_elements_to_a_page(evalmeta: Program, folder: Path) -> None:
    (folder / "desk.py").write_text("def answer(utterance):\n    raise OSError('<img src=x>')\n")
    assert "<img" not in evalmeta(*RUN, "--result-format", "html").out
