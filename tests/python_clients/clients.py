"""The virtual environment of clients that were written elsewhere in Python, and how to run a script in it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

__all__ = ["PYTHON_CLIENTS", "run_client"]

PYTHON_CLIENTS = Path(__file__).parents[2] / ".venv" / "python-clients"
_DEADLINE_SECONDS = 120


def run_client(script: str, *words: str, **environment: str) -> dict[str, Any]:
    """Run a script of this folder in the clients' environment, and return the JSON in its last line."""
    python = PYTHON_CLIENTS / "bin" / "python"
    assert (PYTHON_CLIENTS / "ready").exists(), "Install the clients: make .venv/python-clients/ready"
    done = subprocess.run(
        [python, Path(__file__).with_name(script), *words],
        check=False,
        capture_output=True,
        text=True,
        timeout=_DEADLINE_SECONDS,
        env={"PATH": os.environ["PATH"], "HOME": str(PYTHON_CLIENTS), **environment},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
