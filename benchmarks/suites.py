"""Many tests together: the time of a suite, how many questions are in flight, and the rate limit of a served org."""

from __future__ import annotations

import statistics
import sys
from itertools import pairwise

from projects import FOLDER, PASSED_OR_FAILED, Asked, Project, open_project
from rows import Goal, Result, Row
from timing import of_process

EVALUATE = """
import pathlib, sys, evalmeta
for finished in evalmeta.evaluate([pathlib.Path(sys.argv[1])]):
    assert finished.summary.errors == 0, finished.report()
"""


def measure_run(*, rounds: int, definitions: int, cases: int, seconds: float, concurrency: int) -> Result:
    with open_project(definitions=definitions, cases=cases, seconds=seconds) as project:
        _set_concurrency(project, concurrency)
        taken = statistics.median(
            project.run("test", "run", FOLDER, "--wait", codes=PASSED_OR_FAILED).wall for _ in range(rounds)
        )
    return _against_ideal(taken, definitions * cases * seconds / concurrency)


def measure_evaluate(*, rounds: int, definitions: int, cases: int, seconds: float, concurrency: int) -> Result:
    with open_project(definitions=definitions, cases=cases, seconds=seconds) as project:
        _set_concurrency(project, concurrency)
        taken = statistics.median(_evaluate(project) for _ in range(rounds))
    return _against_ideal(taken, definitions * cases * seconds / concurrency)


def measure_in_flight(*, definitions: int, cases: int, seconds: float, concurrency: int) -> Result:
    """Return the greatest number of questions in flight in either way, as the agent counts them."""
    with open_project(definitions=definitions, cases=cases, seconds=seconds, logged=True) as project:
        _set_concurrency(project, concurrency)
        project.run("test", "run", FOLDER, "--wait", codes=PASSED_OR_FAILED)
        by_command = max(each.in_flight for each in project.asked())
        _evaluate(project)
        by_call = max(each.in_flight for each in project.asked())
    worse = max(by_command, by_call, key=lambda count: abs(count - concurrency))
    return Result(f"{by_command} and {by_call}", str(concurrency), worse / concurrency)


def measure_rate(*, definitions: int, cases: int, limit: float) -> Result:
    """Return the rate of a served org, whose runs have a worker process each."""
    with open_project(definitions=definitions, cases=cases, logged=True) as project:
        project.run("org", "start", "--detach", "--port", "0")
        try:
            project.run("deploy")
            project.run("test", "run", "--wait", "--rate-limit", str(limit), codes=PASSED_OR_FAILED)
        finally:
            project.run("org", "stop")
        asked = sorted(project.asked())
    assert len(asked) == definitions * cases
    rate = (len(asked) - 1) / (asked[-1].time - asked[0].time)
    note = f"{len({each.process for each in asked})} processes, closest questions {_closest(asked) * 1000:.0f} ms apart"
    return Result(f"{rate:.2f} a second", f"{limit:.2f} a second", rate / limit, note)


def _closest(asked: list[Asked]) -> float:
    return min(later.time - earlier.time for earlier, later in pairwise(asked))


def _evaluate(project: Project) -> float:
    command = (sys.executable, "-c", EVALUATE, FOLDER)
    return of_process(*command, cwd=project.root, env=project.environment()).wall


def _set_concurrency(project: Project, concurrency: int) -> None:
    with (project.root / "evalmeta.toml").open("a") as settings:
        settings.write(f"[run]\nconcurrency = {concurrency}\n")


def _against_ideal(taken: float, ideal: float) -> Result:
    return Result(f"{taken:.2f} s", f"{ideal:.2f} s", taken / ideal)


SUITE = {"definitions": 20, "cases": 3, "seconds": 1, "concurrency": 10}
TINY = {"definitions": 2, "cases": 2, "seconds": 0.05, "concurrency": 2}
SIZES = "{definitions} definitions x {cases} cases, agent takes {seconds} s, concurrency {concurrency}"

ROWS = (
    Row(
        "suite-run",
        f"`evalmeta test run --wait` of {SIZES}",
        "the agent alone",
        measure_run,
        {**SUITE, "rounds": 3},
        {**TINY, "rounds": 1},
        Goal("at most", 1.2),
    ),
    Row(
        "suite-evaluate",
        "Python program with `evaluate([folder])`, the same suite",
        "the agent alone",
        measure_evaluate,
        {**SUITE, "rounds": 3},
        {**TINY, "rounds": 1},
        Goal("at most", 1.2),
    ),
    Row(
        "suite-in-flight",
        "greatest number of questions in flight, in each of the two",
        "concurrency",
        measure_in_flight,
        SUITE,
        TINY,
        Goal("exactly", 1),
        clock="-",
    ),
    Row(
        "suite-rate",
        "questions that a served org asks: {definitions} runs x {cases} cases, `--rate-limit {limit}`",
        "the limit",
        measure_rate,
        {"definitions": 6, "cases": 10, "limit": 10},
        {"definitions": 2, "cases": 3, "limit": 10},
        Goal("at most", 1.1),
    ),
)
