from __future__ import annotations

import pytest

from evalmeta.model.matrix import labels_of
from evalmeta.model.run import Run, RunStatus
from evalmeta.model.run_options import Origin, RunOptions


def run(test: str, agent: str, *, suite: str = "s-1") -> Run:
    options = RunOptions(origin=Origin(suite=suite))
    return Run("4KB000000000001GAA", test, agent, RunStatus.COMPLETED, 0.0, 1, options=options)


@pytest.mark.parametrize(
    ("runs", "labels"),
    [
        ([("one", "a"), ("one", "b"), ("two", "a"), ("two", "b")], ["a", "b", "a", "b"]),
        ([("one", "a@x"), ("one", "a@y")], ["x", "y"]),
        ([("one", "a@x"), ("one", "a@y"), ("two", "b@x"), ("two", "b@y")], ["x", "y", "x", "y"]),
        ([("one", "a@x"), ("one", "b@x")], ["a@x", "b@x"]),
        ([("one", "a"), ("two", "b")], ["", ""]),
        ([("one", "a"), ("one", "a")], ["", ""]),
        ([("one", "a")], [""]),
        ([], []),
    ],
)
def test_runs_of_a_test_with_different_agents_are_a_matrix(runs: list[tuple[str, str]], labels: list[str]) -> None:
    assert labels_of([run(*one) for one in runs]) == labels


def test_runs_of_different_commands_are_no_matrix() -> None:
    assert labels_of([run("one", "a"), run("one", "b", suite="s-2")]) == ["", ""]
