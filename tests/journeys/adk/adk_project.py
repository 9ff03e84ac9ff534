"""A project of google-adk, which the programs of its environment test in a copy."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]
ENVIRONMENT = ROOT / ".venv/adk"
PROJECT = Path(__file__).with_name("project")
ORIGINAL = "from google.adk.evaluation.agent_evaluator import AgentEvaluator"
OURS = "from evalmeta.adk import AgentEvaluator"


def copy_project(folder: Path) -> Path:
    """Return a copy of the project."""
    return shutil.copytree(PROJECT, folder / "project", ignore=shutil.ignore_patterns("__pycache__"))


def run_in(folder: Path, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment in a folder."""
    assert (ENVIRONMENT / "ready").exists(), "Install google-adk: make .venv/adk/ready"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [str(ENVIRONMENT / "bin" / program), *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=170, check=False
    )
