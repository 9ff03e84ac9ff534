"""Runs whose results cannot all be judged, as the command line reports them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]

AGENT = """
def answer(utterance):
    return "It will arrive on Friday."
"""
SPEC = """\
name: Orders
subjectType: AGENT
subjectName: Order_Desk
testCases:
  - utterance: Where is my order?
    expectedOutcome: The agent tells the customer about the state of the order.
    metrics:
      - output_latency_milliseconds
"""
RUN = ("test", "run", "orders.yaml", "--subject", "desk:answer", "--wait")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plain folder with an agent that returns text."""
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "orders.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_case_with_only_undecided_and_measured_results_has_not_passed(evalmeta: Program) -> None:
    done = evalmeta(*RUN)
    assert done.code == 100
    assert "undecided 1 orders.yaml" in done.out
    assert "1 case: 0 passed, 0 failed, 0 errors, 1 undecided" in done.out
