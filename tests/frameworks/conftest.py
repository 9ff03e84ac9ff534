from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


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
