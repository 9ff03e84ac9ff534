from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Outcome

    Program = Callable[..., Outcome]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_each_shell_gets_a_script_that_names_the_program(evalmeta: Program, shell: str) -> None:
    done = evalmeta("completion", shell)

    assert done.code == 0
    assert re.search(f'_EVALMETA_COMPLETE ?= ?"?{shell}_complete', done.out)


def test_another_shell_is_a_usage_error(evalmeta: Program) -> None:
    assert evalmeta("completion", "tcsh").code == 2


def test_the_program_answers_the_script(program: list[str]) -> None:
    asked = {**os.environ, "_EVALMETA_COMPLETE": "bash_complete", "COMP_WORDS": "evalmeta man"}
    done = subprocess.run(program, env=asked, capture_output=True, text=True, check=False, timeout=120)

    assert done.stdout == "plain,manifest\n"


def completed(program: list[str], line: str, folder: Path) -> list[str]:
    """Return what bash completes at the end of a line."""
    asked = {**os.environ, "_EVALMETA_COMPLETE": "bash_complete", "COMP_WORDS": line}
    done = subprocess.run(program, env=asked, cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    assert done.stderr == ""
    return [row.partition(",")[2] for row in done.stdout.splitlines()]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "aiEvaluationDefinitions"
    folder.mkdir()
    for name in ("Order_Desk", "Returns"):
        (folder / f"{name}.aiEvaluationDefinition").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("evalmeta test run -n Or", ["Order_Desk"]),
        ("evalmeta test results --job-id l", ["latest"]),
        ("evalmeta test compare p", ["previous"]),
        ("evalmeta deploy -m AiEvaluationDefinition:R", ["AiEvaluationDefinition:Returns"]),
        ("evalmeta test run -o emb", ["embedded"]),
    ],
)
def test_names_of_the_project_are_completed(program: list[str], project: Path, line: str, names: list[str]) -> None:
    assert completed(program, line, project) == names


def test_errors_of_a_project_do_not_disturb_the_line(program: list[str], project: Path) -> None:
    (project / "sfdx-project.json").write_text("[")
    assert not any(completed(program, "evalmeta test run -n Or", project))


@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("evalmeta retrieve -m AiEvaluationDefinition:R", ["Returns"]),
        ("evalmeta retrieve -m AiEvaluationDefinition:", ["Order_Desk", "Returns"]),
        ("evalmeta retrieve --metadata=AiEvaluationDefinition:R", ["Returns"]),
        ("evalmeta test run -n ", ["Order_Desk", "Returns"]),
        ("evalmeta man", ["manifest"]),
    ],
)
def test_bash_completes_words_with_colons(
    evalmeta: Program, program: list[str], project: Path, line: str, replies: list[str]
) -> None:
    script = f"""{evalmeta("completion", "bash").out}
evalmeta() {{ {shlex.join(program)}; }}
env() {{ ( export "${{@:1:$#-1}}"; "${{@: -1}}" ); }}
COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)}
_evalmeta_completion evalmeta
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    bash = shutil.which("bash") or "bash"
    done = subprocess.run([bash, "-c", script], cwd=project, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.splitlines() == replies, done.stderr


def test_powershell_gets_values_and_their_help(program: list[str], project: Path) -> None:
    words = {"COMP_WORDS": "evalmeta test run -n Or", "COMP_INCOMPLETE": "Or"}
    asked = {**os.environ, "_EVALMETA_COMPLETE": "powershell_complete", **words}
    done = subprocess.run(program, env=asked, cwd=project, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout == "plain\tOrder_Desk\t\n"
