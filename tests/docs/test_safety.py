"""The page about what runs a project's code says of each command what it does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from evalmeta.cli.main import cli, main
from org.parts import definition

ROWS: Final = re.findall(
    r"^\| ([^|]+) \| ([^|]+) \|", (Path(__file__).parents[2] / "docs/safety.md").read_text(), re.MULTILINE
)
RUNS_CODE: Final = {name: says for names, says in ROWS for name in re.findall(r"`([\w-]+)`", names)}
DEFINITION: Final = "aiEvaluationDefinitions/A.aiEvaluationDefinition"
SPEC: Final = "subject: Desk\ntestCases:\n  - input: Hi\n    contains: Hello\n"
AGENT: Final = """
from pathlib import Path
with Path(__file__).with_name("imported").open("a") as file:
    file.write("x")
def answer(text):
    return "Hello"
def check(text):
    return True
"""
TRACES: Final = Path(__file__).parents[1] / "traces/recordings/langchain_openinference.jsonl"
# Calls that the page says run none of the project's code, by command.
HARMLESS: Final = {
    "completion": ["completion bash"],
    "convert": ["convert source --output-dir out", f"convert file {DEFINITION} --to testspec -o spec.yaml"],
    "coverage": ["coverage"],
    "deploy": ["deploy", "deploy validate", "deploy --dry-run"],
    "diff": ["diff"],
    "format": ["format --check", "format"],
    "generate": ["generate schema", f"generate spec --from-definition {DEFINITION} -o spec.yaml"],
    "init": ["init"],
    "manifest": ["manifest generate", "manifest generate --from-org -n org.xml"],
    "org": ["org status", "org list", "org token", "org token --list", "org default", "org reset --no-prompt"],
    "package": ["package build"],
    "rater": ["rater show"],
    "retrieve": ["retrieve", "retrieve -t backup --unzip"],
    "rule": ["rule", "rule name-duplicate"],
    "status": ["status"],
    "test": [
        "test list",
        "test history",
        "test results --use-most-recent",
        "test baseline -o baseline.json",
        "test marks",
    ],
    "trace": [f"trace import {TRACES} -o recorded.jsonl --to tests/proposed.yaml"],
    "validate": ["validate", f"validate {DEFINITION} tests"],
    "view": ["view --export pages"],
}
RUNNING: Final = {
    "coverage": ["coverage Desk"],
    "doctor": ["doctor", "doctor --no-questions"],
    "run": ["run tests"],
    "test": ["test run --wait", "test run tests --wait"],
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose agent and scorer tell that they were imported."""
    files = {
        "evalmeta.toml": '[subjects.Desk]\nadapter = "python"\ntarget = "desk:answer"\n',
        "desk.py": AGENT,
        "tests/a.yaml": SPEC,
        DEFINITION: definition("A").decode(),
    }
    for name, content in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words.split())
    assert ended.value.code in ({2} if words.startswith("coverage") else {0, 1, 100}), words


def test_every_command_has_a_row_and_is_called_here() -> None:
    assert {*RUNS_CODE} == {*cli.commands} == {*HARMLESS, *RUNNING} if cli.commands else {*HARMLESS, *RUNNING}
    assert {name for name, says in RUNS_CODE.items() if says == "no"} <= {*HARMLESS} - {*RUNNING}
    assert {name for name, says in RUNS_CODE.items() if says.startswith("yes")} == {*RUNNING} - {*HARMLESS}


@pytest.mark.slow
@pytest.mark.parametrize("command", HARMLESS)
def test_a_command_that_runs_no_code_imports_none(project: Path, command: str) -> None:
    if command in {"status", "diff", "retrieve", "test", "view"}:
        call("deploy")
    if command in {"test", "view"}:
        call("test run --wait")
        (project / "imported").unlink()
    for words in HARMLESS[command]:
        call(words)
    assert not (project / "imported").exists()


@pytest.mark.slow
@pytest.mark.parametrize("command", RUNNING)
def test_a_command_that_runs_code_says_so(project: Path, command: str) -> None:
    call("deploy")
    for words in RUNNING[command]:
        (project / "imported").unlink(missing_ok=True)
        call(words)
        assert (project / "imported").exists(), words
