"""What the gate decides in many simulated commands; `make thorough` prints the tables of docs/comparing.md."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from engine.gate_simulation import Commands, Decisions, decide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]
    Rates = Callable[[np.random.Generator, int, int], Numbers]

ITERATIONS: Final = (1, 3, 5, 10)
SIZES: Final = ((1, 10), (1, 30), (1, 200), (20, 30))
"""Tests of a command, and cases of each test."""


def constant(rate: float) -> Rates:
    return lambda _, commands, cases: np.full((commands, cases), rate)


def spread(rng: np.random.Generator, commands: int, cases: int) -> Numbers:
    return rng.beta(9.5, 0.5, (commands, cases))


def halves(_: np.random.Generator, commands: int, cases: int) -> Numbers:
    return np.tile(np.where(np.arange(cases) % 2 == 0, 1.0, 0.6), (commands, 1))


def borderline(_: np.random.Generator, commands: int, cases: int) -> Numbers:
    return np.tile(np.where(np.arange(cases) % 10 == 0, 0.5, 1.0), (commands, 1))


AGENTS: Final[dict[str, Rates]] = {
    "all cases 80 %": constant(0.8),
    "beta (9.5, 0.5)": spread,
    "half 100 %, half 60 %": halves,
    "1 case in 10 at 50 %": borderline,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the tables.

    Attributes:
        repeats: the number of simulated commands.
        runs: the number of runs of the baseline.
        is_alike: whether a run draws once for each case, and all its answers to the case are equal.
        fall: the pass rate of the cases of the first test now; None if they do not change.
        failing_runs: how many runs in a row a case was dead before this one.
    """

    rates: Rates
    tests: int
    cases: int
    iterations: int
    runs: int
    repeats: int
    is_alike: bool = False
    fall: float | None = None
    failing_runs: int = 0


def simulate(cell: Cell, *, has_dead: bool = False, confirm: bool = True) -> tuple[Decisions, NDArray[np.int64]]:
    """Return the decisions of a cell's commands, and the case of each that passes no more if `has_dead`."""
    rng = np.random.default_rng(13)
    rates = cell.rates(rng, cell.repeats, cell.tests * cell.cases)
    now, shape = rates.copy(), (cell.repeats, cell.runs, cell.tests * cell.cases)
    if cell.fall is not None:
        now[:, : cell.cases] = cell.fall
    draws, number = (1, cell.iterations) if cell.is_alike else (cell.iterations, 1)
    before = rng.binomial(draws, np.broadcast_to(rates[:, None], shape)) * number
    dead = np.array([rng.choice(np.flatnonzero(row > 0.3)) for row in rates])
    rows = np.arange(cell.repeats)
    if has_dead:
        now[rows, dead] = 0.0
        # It passed at least once in the baseline, or in each run of an agent whose answers are alike.
        never = before[rows, :, dead].sum(1) == 0
        before[rows[never], 0, dead[never]] = 1
        if cell.is_alike:
            before[rows, :, dead] = cell.iterations
    passed = rng.binomial(draws, now) * number
    again = rng.random((*now.shape, 20)) < now[:, :, None]
    if cell.is_alike:
        again = np.repeat((passed > 0)[:, :, None], 20, axis=2)
    failing = _failing_runs(rng, now, cell.failing_runs)
    commands = Commands(before, passed, again, cell.tests, cell.iterations, cell.iterations, failing)
    return decide(commands, confirm=confirm), dead


def _failing_runs(rng: np.random.Generator, now: Numbers, most: int) -> NDArray[np.int64]:
    counts, fails = np.zeros(now.shape, np.int64), np.ones(now.shape, bool)
    for _ in range(most):
        fails &= rng.random(now.shape) >= now
        counts += fails
    return counts


def cells(repeats: int) -> Iterator[tuple[str, Cell]]:
    for agent, rates in AGENTS.items():
        for tests, cases in SIZES:
            for iterations in ITERATIONS:
                for runs in (1, 10):
                    number = repeats if tests * cases < 600 else repeats // 3
                    label = f"{agent}, {tests} x {cases}, x{iterations}, {runs} runs"
                    yield label, Cell(rates, tests, cases, iterations, runs, number)


def show(capsys: pytest.CaptureFixture[str], lines: Sequence[str]) -> None:
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *lines, ""]))


def limit(cell: Cell) -> float:
    """Return 5 % and two standard errors."""
    return 0.05 + 2 * (0.05 * 0.95 / cell.repeats) ** 0.5


def test_an_unchanged_agent_is_rarely_red_and_a_dead_case_is_found() -> None:
    for agent, rates in AGENTS.items():
        cell = Cell(rates, 1, 30, 1, 1, 200)
        decisions, _ = simulate(cell)
        assert decisions.red.mean() <= limit(cell), agent
        found, dead = simulate(cell, has_dead=True)
        assert found.broken[np.arange(cell.repeats), dead].mean() >= 0.95, agent


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_cell_of_the_table_holds(capsys: pytest.CaptureFixture[str]) -> None:
    missed, lines = (
        [],
        ["agent, tests x cases, iterations, baseline | red | red, --confirm 0 | dead case found | asked"],
    )
    for label, cell in cells(600):
        unchanged, _ = simulate(cell)
        never_asked, _ = simulate(cell, confirm=False)
        found, dead = simulate(cell, has_dead=True)
        share = found.broken[np.arange(cell.repeats), dead].mean()
        red, silent = unchanged.red.mean(), never_asked.red.mean()
        lines.append(f"{label} | {red:.1%} | {silent:.1%} | {share:.1%} | {unchanged.asked.mean():.0f}")
        if red > limit(cell) or silent > limit(cell) or share < 0.95:
            missed.append(lines[-1])
    show(capsys, lines)
    assert missed == []


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_agents_that_are_alike_within_a_run_are_judged_over_several(capsys: pytest.CaptureFixture[str]) -> None:
    """With ten runs of the baseline, a dead case that passed in all of them is found after 2 to 5 failing runs."""
    missed, lines = [], ["alike within a run | red | dead case found after 1, 2 ... 6 failing runs"]
    for agent in ("all cases 80 %", "beta (9.5, 0.5)"):
        for tests, cases in SIZES:
            for iterations in (1, 5):
                repeats = 600 if tests == 1 else 200
                cell = Cell(AGENTS[agent], tests, cases, iterations, 10, repeats, is_alike=True, failing_runs=4)
                red = simulate(cell)[0].red.mean()
                found = [_found_after(cell, failing) for failing in range(6)]
                shares = ", ".join(f"{share:.0%}" for share in found)
                lines.append(f"{agent}, {tests} x {cases}, x{iterations} | {red:.1%} | {shares}")
                if red > limit(cell) or found[4] < 0.95:
                    missed.append(lines[-1])
    show(capsys, lines)
    assert missed == []


def _found_after(cell: Cell, failing: int) -> float:
    cell = Cell(
        cell.rates, cell.tests, cell.cases, cell.iterations, cell.runs, 100, is_alike=True, failing_runs=failing
    )
    found, dead = simulate(cell, has_dead=True)
    return float(found.broken[np.arange(cell.repeats), dead].mean())


FALLS: Final = [
    (Cell(constant(0.9), 1, 30, 1, 1, 2_000, fall=0.7), 0.52),
    (Cell(constant(0.9), 1, 30, 3, 1, 2_000, fall=0.7), 0.93),
    (Cell(constant(0.9), 1, 30, 5, 1, 2_000, fall=0.7), 0.99),
    (Cell(constant(0.9), 1, 30, 10, 1, 2_000, fall=0.7), 1.0),
    (Cell(constant(0.9), 1, 200, 1, 1, 2_000, fall=0.8), 0.85),
    (Cell(constant(0.9), 20, 30, 5, 1, 200, fall=0.7), 0.8),
    (Cell(constant(0.9), 20, 30, 5, 10, 200, fall=0.7), 0.8),
]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("confirm", [True, False])
def test_a_fall_of_all_cases_of_a_test_is_found(capsys: pytest.CaptureFixture[str], *, confirm: bool) -> None:
    shares = [simulate(cell, confirm=confirm)[0].red.mean() for cell, _ in FALLS]
    labels = [f"{cell.tests} x {cell.cases}, x{cell.iterations}, {cell.runs} runs, to {cell.fall}" for cell, _ in FALLS]
    show(capsys, [f"{label}: {share:.1%}" for label, share in zip(labels, shares, strict=True)])
    assert [share >= least for share, (_, least) in zip(shares, FALLS, strict=True)] == [True] * len(FALLS)
