from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], str]:
    """Makes a project with `evalmeta init --agent desk:thing`, runs its tests, and returns their report."""

    def make(source: str) -> str:
        (tmp_path / "desk.py").write_text(source)
        # The source uses what these tests define.
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent), "EVALMETA_HOME": str(tmp_path / "home")}
        outputs = []
        for call in (["init", "--agent", "desk:thing"], ["run", "tests", "--json"]):
            program = [sys.executable, "-m", "evalmeta", *call]
            done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
            outputs.append(done.stdout + done.stderr)
            assert done.returncode in {0, 100}, outputs
        assert '"outcome"' in outputs[1]
        return outputs[1]

    return make


@pytest.fixture
def coverage(tmp_path: Path) -> Callable[..., Mapping[str, bool]]:
    """Makes a project with `thing` of a source as its agent and these test cases; returns which parts are covered.

    They are those that `evalmeta coverage` names: `name` of topics, `topic.name` of actions.
    """

    def measure(source: str, cases: str, *, adapter: str = "python", target: str = "desk:thing") -> Mapping[str, bool]:
        (tmp_path / "desk.py").write_text(source)
        (tmp_path / "evalmeta.toml").write_text(f'[subjects.desk]\nadapter = "{adapter}"\ntarget = "{target}"\n')
        (tmp_path / "desk.yaml").write_text(f"subject: desk\ntestCases:\n{cases}")
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent), "EVALMETA_HOME": str(tmp_path / "home")}
        program = [sys.executable, "-m", "evalmeta", "coverage", "desk", "--result-format", "json"]
        done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        (agent,) = json.loads(done.stdout)["agents"]
        return {
            f"{part['topic']}.{part['name']}" if part["topic"] else part["name"]: part["covered"]
            for part in agent["parts"]
        }

    return measure
