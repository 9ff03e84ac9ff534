"""`evalmeta test run --bound`: tests whose agent is not bound are left out and named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.team import DEFINITION

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Outcome

    Program = Callable[..., Outcome]

FOLDER = Path("aiEvaluationDefinitions")
BOUND = '[subjects.Desk]\nadapter = "python"\ntarget = "desk:answer"\n'


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin in a project with one test of an agent that is bound, and two of one that is not."""
    monkeypatch.chdir(tmp_path)
    FOLDER.mkdir()
    Path("desk.py").write_text("def answer(utterance):\n    return {'outcome': 'Hi', 'topic': 'Orders'}\n")
    Path("evalmeta.toml").write_text(BOUND)
    for name, agent in (("A", "Desk"), ("B", "Shop"), ("C", "Shop")):
        content = DEFINITION.format(name=name, utterance="Hi").replace("Desk", agent)
        (FOLDER / f"{name}.aiEvaluationDefinition").write_text(content)


def test_tests_whose_agent_is_not_bound_do_not_stop_the_others(evalmeta: Program) -> None:
    evalmeta("deploy")
    assert evalmeta("test", "run", "--wait").code == 2

    done = evalmeta("test", "run", "--wait", "--bound")

    assert done.code == 0, done.err
    assert "Warning: B, C are left out: no adapter is bound to the agent 'Shop'" in done.err
    assert "A: subject Desk" in done.out
    assert "Shop" not in done.out


def test_tests_in_files_are_left_out_as_well(evalmeta: Program) -> None:
    done = evalmeta("test", "run", str(FOLDER), "--wait", "--bound")

    assert done.code == 0, done.err
    assert "B is left out" in done.err
    assert "C is left out" in done.err


def test_a_test_that_only_the_org_has_is_said_to_be_so(evalmeta: Program) -> None:
    evalmeta("deploy")
    (FOLDER / "C.aiEvaluationDefinition").unlink()

    done = evalmeta("test", "run", "--wait", "--bound")

    assert done.code == 0, done.err
    assert "only the org has C, the project has no file of it" in done.err


def test_a_call_that_would_run_nothing_is_an_error(evalmeta: Program) -> None:
    evalmeta("deploy")

    done = evalmeta("test", "run", "-n", "B", "-n", "C", "--wait", "--bound")

    assert done.code == 2
    assert "no adapter is bound to the agent 'Shop'" in done.err
    assert "[subjects.Shop]" in done.err


def test_another_reason_still_stops_the_run(evalmeta: Program) -> None:
    evalmeta("deploy")
    Path("desk.py").unlink()

    done = evalmeta("test", "run", "--wait", "--bound")

    assert (done.code, "desk" in done.err) == (2, True)


def test_a_dry_run_leaves_them_out(evalmeta: Program) -> None:
    evalmeta("deploy")

    done = evalmeta("test", "run", "--dry-run", "--bound")

    assert done.code == 0, done.err
    assert "B, C are left out" in done.err
    assert "Shop" not in done.out


def test_an_extended_run_takes_no_selection(evalmeta: Program) -> None:
    done = evalmeta("test", "run", "--extend", "4KB000000000001GAA", "--iterations", "2", "--bound")
    assert (done.code, "--extend runs the same cases" in done.err) == (2, True)
