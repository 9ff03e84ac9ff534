from __future__ import annotations

import pytest

from evalmeta.model.matrix import AgentRun, MatrixCase, labels_of
from evalmeta.model.statistics import CaseCounts


def run(test: str, agent: str, *, suite: str = "s-1") -> AgentRun:
    return AgentRun(suite, "4KB", test, agent)


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


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((CaseCounts(1, "", 1), CaseCounts(1, "", 0, 1)), (True, 1.0)),
        ((CaseCounts(1, "", 3, 1), CaseCounts(1, "", 1, 1), None), (True, 0.25)),
        ((CaseCounts(1, "", 1), CaseCounts(1, "", errors=1)), (True, 1.0)),
        ((CaseCounts(1, "", errors=1), CaseCounts(1, "", undecided=1)), (False, 0.0)),
        ((CaseCounts(1, "", 1), None), (False, 0.0)),
    ],
)
def test_a_case_differs_by_its_pass_rates(counts: tuple[CaseCounts | None, ...], expected: tuple[bool, float]) -> None:
    case = MatrixCase("Desk", 1, "Where?", counts)
    assert (case.differs, case.spread) == expected
