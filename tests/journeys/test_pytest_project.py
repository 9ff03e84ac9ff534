"""Tests as Ballerina's proposal and the pages on pytest teach them: green, and red if the agent becomes worse."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PROJECT = Path(__file__).parent / "projects/pytest"
RED = {
    "ballerina/test_trajectory.py": "0 % (0 of 4); at least 80 % must pass",
    "ballerina/test_relevance.py": "AssertionError: Relevance score 0.0 below threshold 0.7",
    "ballerina/test_threads.py": "mail: AssertionError: expected a call of 'sendEmail', got one of 'bookCalendar'",
    "ballerina/sessions.evalset.json": "bot_response_rating",
    "pytest/test_rates.py": "66.66 % (6 of 9); at least 80 % must pass",
    "pytest/test_evaluate.py": "not passed: 3 cases failed",
    "pytest/test_tool.py": "expected a call of 'sendEmail', got one of 'bookCalendar'",
    "pytest/desk.yaml": 'the answer does not contain "nine"',
}
"""The scripts and files, and what pytest says of each if the agent is careless."""


@pytest.mark.slow
def test_each_script_passes_and_turns_red_if_the_agent_becomes_worse(tmp_path: Path) -> None:
    project = shutil.copytree(PROJECT, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    assert {str(path.relative_to(project)) for path in project.glob("*/*")} - {"ballerina/tool_calls.json"} == {*RED}

    for desk in ("good", "careless"):
        environment = {**os.environ, "DESK": desk, "PYTEST_ADDOPTS": ""}
        command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "-p", "no:xdist"]
        done = subprocess.run(
            command, cwd=project, env=environment, capture_output=True, text=True, timeout=170, check=False
        )
        outcomes = re.findall(r"^(PASSED|FAILED|ERROR) ([^: ]+)::", done.stdout, re.MULTILINE)
        passed, failed = ({file for word, file in outcomes if word == status} for status in ("PASSED", "FAILED"))
        assert not any(word == "ERROR" for word, _ in outcomes), done.stdout
        if desk == "good":
            assert (done.returncode, passed, failed) == (0, {*RED}, set()), done.stdout
        else:
            assert (done.returncode, failed) == (1, {*RED}), done.stdout
            assert [text for text in RED.values() if text not in done.stdout] == []


@pytest.mark.parametrize("desk", ["good", "careless"])
def test_the_trajectory_of_ballerinas_proposal_is_judged_by_its_pass_rate(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, desk: str
) -> None:
    for name in ("desk.py", "ballerina/test_trajectory.py", "ballerina/tool_calls.json"):
        shutil.copy(PROJECT / name, pytester.path)
    monkeypatch.setenv("DESK", desk)
    # Another test of this process may have imported its own module of that name.
    monkeypatch.delitem(sys.modules, "desk", raising=False)

    done = pytester.runpytest_inprocess("-p", "no:xdist", "-o", "pythonpath=.")

    is_good = desk == "good"
    assert done.ret == (0 if is_good else 1)
    rate = "100 % (4 of 4)" if is_good else "0 % (0 of 4)"
    done.stdout.fnmatch_lines([f"*test_evaluate_tool_call_order: {rate}; at least 80 % must pass"])
