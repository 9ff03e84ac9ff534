from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from api.test_comparisons import keep, run
from evalmeta.model.run import RunStatus, Verdict
from evalmeta.package.project import find_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cli.conftest import Outcome

    Program = Callable[..., Outcome]
    Copy = Callable[..., Path]

FIRST, SECOND = "4KB000000000001GAA", "4KB000000000002GAA"


@pytest.fixture
def runs(evalmeta: Program, copy_samples: Copy) -> Path:
    """A project with two runs: between them case 2 was mended and case 1 was broken."""
    project = copy_samples("failing")
    agent = project / "returns_agent.py"
    evalmeta("deploy")
    evalmeta("test", "run", "--wait")
    mended = agent.read_text().replace('broken lamp.", "Complaints"', 'broken lamp.", "Returns"')
    agent.write_text(mended.replace("within 30 days", "within 14 days"))
    evalmeta("test", "run", "--wait")
    return project


@pytest.mark.usefixtures("runs")
def test_two_runs_are_compared_and_a_broken_case_exits_100(evalmeta: Program) -> None:
    worse, better = evalmeta("test", "compare", FIRST, SECOND), evalmeta("test", "compare", SECOND)
    assert worse == better
    assert worse.code == 100
    assert worse.out.splitlines() == [
        f"Returns_Desk_Checks: {SECOND} against {FIRST}",
        "  broken           1  1/1 -> 0/1       How long may I return what I bought?",
        "  fixed            2  0/1 -> 1/1       I want to return a lamp, it came broken",
        "  1 broken, 1 fixed, 2 still failing, 0 still passing",
        "  pass rate: 25 % before, 25 % now: could be noise (McNemar's exact test of 4 cases, p = 1)",
    ]
    assert evalmeta("test", "compare", FIRST, SECOND, "--fail-on", "significant").code == 0


@pytest.mark.usefixtures("runs")
def test_a_comparison_is_printed_as_json(evalmeta: Program) -> None:
    done = evalmeta("test", "compare", FIRST, SECOND, "--json")
    envelope = json.loads(done.out)
    [found] = envelope["result"]
    assert (done.code, envelope["status"], found["regression"]) == (100, 100, True)
    assert [each["standing"] for each in found["cases"]] == ["broken", "fixed", "still failing", "still failing"]


def test_runs_are_compared_with_a_baseline_file_of_earlier_runs(evalmeta: Program, runs: Path) -> None:
    written = evalmeta("test", "baseline", "-o", "baseline.json", FIRST)
    assert written.out == "Created baseline.json: 1 test, 4 cases, 3 of them failing\n"
    worse = evalmeta("test", "compare", "--baseline", "baseline.json")
    assert (worse.code, f"{SECOND} against baseline.json" in worse.out) == (100, True)
    saved = evalmeta("test", "baseline", "-o", "baseline.json", "--json")
    found = json.loads(saved.out)["result"]
    assert found["runs"] == [{"name": "Returns_Desk_Checks", "runId": SECOND}]
    assert (found["state"], found["failing"]) == ("Changed", 3)
    assert evalmeta("test", "compare", "--baseline", "baseline.json", SECOND).code == 0
    assert (runs / "baseline.json").read_text().count("\n") == 14


def test_a_baseline_without_the_test_has_nothing_to_compare(evalmeta: Program, runs: Path) -> None:
    (runs / "baseline.json").write_text('{"evalmeta": "baseline", "version": 1, "tests": {}}')
    done = evalmeta("test", "compare", "--baseline", "baseline.json")
    assert done.code == 2
    assert "Returns_Desk_Checks is not in baseline.json; `evalmeta test baseline` adds it" in done.err
    assert "there is no run of a test that is in baseline.json" in done.err


@pytest.mark.parametrize(
    "words",
    [[], [FIRST] * 3, [FIRST, SECOND, "--baseline", "b.json"], ["no id"], [FIRST], ["--baseline", "nowhere.json"]],
)
def test_runs_that_cannot_be_compared_are_a_usage_error(
    evalmeta: Program, copy_samples: Copy, words: list[str]
) -> None:
    copy_samples("failing")
    assert evalmeta("test", "compare", *words).code == 2


def test_an_incomplete_run_is_reported(evalmeta: Program, copy_samples: Copy) -> None:
    project = find_project(copy_samples("failing"))
    keep(project, run(1, Verdict.PASS), run(2, Verdict.PASS, status=RunStatus.TERMINATED, total=3))
    done = evalmeta("test", "compare", run(1).id, run(2).id)
    assert done.code == 0
    assert f"Warning: {run(2).id} is not complete, the run is TERMINATED with 1 of 3 case results\n" in done.err
