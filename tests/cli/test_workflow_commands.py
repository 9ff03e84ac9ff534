"""With GITHUB_ACTIONS set, an agent's text adds no command to the log of a CI system, whatever evalmeta prints."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from evalmeta.report import FORMATS
from report.test_workflow_commands import commands_in

if TYPE_CHECKING:
    from pathlib import Path

AGENT = r"""
TEXT = "\n".join(["::error::forged", "  ::stop-commands::x", "##[error]forged", "##vso[task.complete]x", "a::b"])

def answer(utterance, *, history, context):
    print(TEXT)
    print(TEXT, end="")
    if "fail" in utterance:
        raise ValueError(TEXT)
    return {"topic": TEXT, "actions": [TEXT], "outcome": TEXT}
"""
SPEC = r"""
name: Forged
subjectType: AGENT
subjectName: desk
testCases:
- utterance: "::error::forged\n##[error]forged"
  expectedTopic: "::error::forged"
  expectedOutcome: "::error::forged"
- utterance: "fail ##[error]forged"
  expectedTopic: Orders
"""
OWN = r"::(error|warning|notice) (?!.*##\w*\[)"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    (folder / "forger.py").write_text(AGENT)
    (folder / "forged.yaml").write_text(SPEC)
    return folder


def printed(project: Path, *words: str) -> str:
    command = [sys.executable, "-m", "evalmeta", "test", *words]
    environment = {**os.environ, "GITHUB_ACTIONS": "true", "FORCE_COLOR": "1", "COLUMNS": "60", "HOME": str(project)}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    both = subprocess.run(command, cwd=project, env=environment, check=False, timeout=120, **streams)
    return both.stdout.decode()


@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("-v",), ("--json",), ("--result-format", "github")], ids=" ".join)
def test_a_run_prints_no_command_of_an_answer_an_error_or_a_print(project: Path, words: tuple[str, ...]) -> None:
    log = printed(project, "run", "forged.yaml", "--agent", "forger:answer", "--wait", *words)
    assert "forged" in log
    assert commands_in(log, own=OWN if "github" in words else "(?!)") == []


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_stored_results_print_no_command_in_any_format(project: Path, name: str) -> None:
    printed(project, "run", "forged.yaml", "--agent", "forger:answer", "--wait")
    log = printed(project, "results", "--job-id", "latest", "--result-format", name)
    assert "forged" in log
    assert commands_in(log, own=OWN if name == "github" else "(?!)") == []
