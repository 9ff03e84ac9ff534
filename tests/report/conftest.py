"""Expected texts in files, and consoles that write into memory."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.fixture
def snapshot(request: pytest.FixtureRequest) -> str:
    """Gives the expected text of the test that asks: `snapshots/<its name>.txt`."""
    return (SNAPSHOTS / f"{request.node.name}.txt").read_text(encoding="utf-8")


@pytest.fixture
def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100, color_system="standard", _environ={})


@pytest.fixture
def pipe() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=100, _environ={})
