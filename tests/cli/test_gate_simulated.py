"""The gate as commands apply it, compared with its simulation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from engine.gate_simulation import Commands, decide
from evalmeta.formats.baseline import write_baseline
from evalmeta.model.comparison import KnownTest
from evalmeta.model.statistics import CaseCounts, RunCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from cli.conftest import Outcome

    Counts = NDArray[np.int64]

AGENT = """
import json
from collections import Counter
from pathlib import Path

PLAN = json.loads(Path(__file__).with_name("plan.json").read_text())
ASKED = Path(__file__).with_name("asked.jsonl")


def answer(utterance):
    with ASKED.open("a+") as asked:
        asked.seek(0)
        place = Counter(map(json.loads, asked))[utterance]
        print(json.dumps(utterance), file=asked)
    return "right" if PLAN[utterance][place] else "wrong"
"""


def utterance(case: int) -> str:
    return f"Question {case}"


def write_project(folder: Path, plan: Mapping[str, list[bool]], tests: int) -> None:
    """Write tests with the same number of cases, and an agent whose answers to each utterance follow a plan."""
    (folder / "tests").mkdir(parents=True)
    (folder / "agent.py").write_text(AGENT)
    (folder / "plan.json").write_text(json.dumps(plan))
    settings = '[subjects.Shop]\nadapter = "python"\ntarget = "agent:answer"\n'
    (folder / "evalmeta.toml").write_text(settings)
    questions, size = list(plan), len(plan) // tests
    for test in range(tests):
        cases = "".join(f"- input: {text}\n  equals: right\n" for text in questions[test * size : (test + 1) * size])
        (folder / "tests" / f"t{test}.yaml").write_text(f"subjectName: Shop\ntestCases:\n{cases}")


def write_known(path: Path, before: Counts, tests: int, iterations: int) -> None:
    """Write a baseline; `before` has the passed answers of each run to each case."""
    size, known = before.shape[1] // tests, {}
    for test in range(tests):
        cases = []
        for number, case in enumerate(range(test * size, (test + 1) * size), 1):
            runs = tuple(RunCounts(int(passed), iterations - int(passed)) for passed in before[:, case])
            cases.append(CaseCounts.of_runs(number, utterance(case), runs))
        known[f"tests/t{test}.yaml"] = KnownTest(tuple(cases))
    write_baseline(path, known)


def drawn(rng: np.random.Generator) -> tuple[Commands, str]:
    """Draw a command: of an unchanged agent or one with dead cases, whose answers may be alike within a run."""
    tests, size = int(rng.integers(1, 4)), int(rng.integers(1, 7))
    iterations, runs = int(rng.choice([1, 1, 2, 3])), int(rng.choice([1, 2, 3, 10]))
    cases = tests * size
    rates = rng.choice([1.0, 1.0, 0.9, 0.7, 0.4], cases)
    now = np.where(rng.random(cases) < rng.choice([0.0, 0.2, 0.5]), 0.0, rates)
    is_alike = rng.random() < 0.3
    draws, factor = (1, iterations) if is_alike else (iterations, 1)
    before = rng.binomial(draws, np.broadcast_to(rates, (runs, cases))) * factor
    passed = rng.binomial(draws, now) * factor
    again = rng.random((cases, 20)) < now[:, None]
    if is_alike:
        again = np.repeat((passed > 0)[:, None], 20, axis=1)
    commands = Commands(
        before[None], passed[None], again[None], tests, iterations, iterations, np.zeros((1, cases), np.int64)
    )
    return commands, f"{tests} x {size}, x{iterations}, {runs} runs, alike {is_alike}"


def check(evalmeta: Callable[..., Outcome], folder: Path, commands: Commands, label: str, *, confirm: bool) -> None:
    """Run a command in a folder, and compare its exit code and the number of its questions with the simulation."""
    cases, first = commands.now.shape[1], commands.iterations
    answers = [
        [bool(place < commands.now[0, case]) for place in range(first)] + list(map(bool, commands.again[0, case])) * 9
        for case in range(cases)
    ]
    write_project(folder, {utterance(case): answers[case] for case in range(cases)}, commands.tests)
    write_known(folder / "known.json", commands.before[0], commands.tests, commands.iterations_before)
    words = (
        "--concurrency",
        "1",
        "--iterations",
        str(first),
        "--baseline",
        "known.json",
        *(() if confirm else ("--confirm", "0")),
    )
    done = evalmeta("run", "tests", *words)
    decisions = decide(commands, confirm=confirm)
    assert done.code in {0, 100}, done.err
    asked = len((folder / "asked.jsonl").read_text().splitlines()) - first * cases
    assert (done.code, asked) == (100 if decisions.red[0] else 0, decisions.asked[0]), (
        f"{label}\n{done.out}\n{done.err}"
    )


@pytest.mark.slow
@pytest.mark.parametrize("confirm", [True, False])
def test_a_command_decides_as_the_simulation_does(
    evalmeta: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, confirm: bool
) -> None:
    commands, label = drawn(np.random.default_rng(3))
    (tmp_path / "one").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    check(evalmeta, tmp_path / "one", commands, label, confirm=confirm)


@pytest.mark.slow
def test_cases_that_rarely_pass_cannot_make_a_command_ask_without_end(
    evalmeta: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases, bound = 24, 2 * 24 + 200
    monkeypatch.chdir(tmp_path)
    write_project(tmp_path, {utterance(case): [False] * 12 + [True] for case in range(cases)}, 1)
    write_known(tmp_path / "known.json", np.ones((1, cases), np.int64), 1, 1)
    done = evalmeta("run", "tests", "--concurrency", "1", "--baseline", "known.json")
    asked = len((tmp_path / "asked.jsonl").read_text().splitlines()) - cases
    assert (done.code, bound <= asked <= bound + 80) == (100, True)
    assert f"Asked {asked} further questions, which is the maximum: some cases are still suspect." in done.err


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_hundred_commands_decide_as_the_simulation_does(
    evalmeta: Callable[..., Outcome], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(29)
    for number in range(200):
        commands, label = drawn(rng)
        folder = tmp_path / f"{number}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        check(evalmeta, folder, commands, f"command {number}: {label}", confirm=number % 4 > 0)
