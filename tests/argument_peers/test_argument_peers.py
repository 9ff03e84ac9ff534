"""Verdicts on arguments are those of promptfoo and pydantic-evals, which run here as their users run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from argument_peers.arguments import TOOL, ArgumentCase, argument_cases
from evalmeta import evaluate
from evalmeta.model.run import Verdict

HERE = Path(__file__).parent
ENVIRONMENTS = Path(sys.prefix)
CASES = argument_cases(200, seed=31)


def peer_verdicts(home: Path, *command: str | Path) -> list[bool]:
    """Return what a program says of the cases; it keeps its files in `home`, and sends nothing."""
    silent = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "HOME": f"{home}"}
    done = subprocess.run(
        command,
        input=json.dumps([TOOL, CASES]),
        env=os.environ | silent,
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    verdicts: list[bool] = json.loads(done.stdout)
    return verdicts


def own_verdicts() -> list[bool]:
    calls = {f"case {number}": case["calls"] for number, case in enumerate(CASES)}

    def answer(question: str) -> dict[str, object]:
        return {"outcome": "Done.", "actions": [{**call, "output": "ok"} for call in calls[question]]}

    def specified(question: str, case: ArgumentCase) -> dict[str, object]:
        item = {"name": TOOL, "input": case["expected"], "exact": case["exact"]}
        return {"input": question, "action_match": "superset", "actions": [item]}

    cases = [specified(f"case {number}", case) for number, case in enumerate(CASES)]
    verdicts = [result.verdict for result in evaluate(cases, answer, name="arguments").run.cases]
    assert {*verdicts} == {Verdict.PASS, Verdict.FAILURE}
    return [verdict is Verdict.PASS for verdict in verdicts]


def differing(own: list[bool], peer: list[bool]) -> list[ArgumentCase]:
    return [case for case, one, other in zip(CASES, own, peer, strict=True) if one is not other]


def test_about_half_of_the_cases_pass() -> None:
    assert 60 <= sum(own_verdicts()) <= 140


@pytest.mark.slow
def test_verdicts_on_arguments_are_those_of_pydantic_evals(tmp_path: Path) -> None:
    python = ENVIRONMENTS / "peers/bin/python"
    assert differing(own_verdicts(), peer_verdicts(tmp_path, python, HERE / "pydantic_evals_verdicts.py")) == []


@pytest.mark.slow
@pytest.mark.npm
def test_verdicts_on_arguments_are_those_of_promptfoo(tmp_path: Path) -> None:
    program = HERE / "promptfoo_verdicts.mjs"
    assert differing(own_verdicts(), peer_verdicts(tmp_path, "node", program, ENVIRONMENTS / "promptfoo")) == []
