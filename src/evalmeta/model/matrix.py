"""Several agents that were asked the same cases in one command, side by side, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalmeta.model.comparison import SIGNIFICANCE_LEVEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.generated_data import Tokens
    from evalmeta.model.run import Run
    from evalmeta.model.spending import Spent
    from evalmeta.model.statistics import CaseCounts, Latency


@dataclass(frozen=True, slots=True)
class Cell:
    """The results of one agent over all its tests."""

    label: str  # the agent, or only its model if all have the same agent
    runs: int
    passed: int  # case results, as everywhere
    failed: int
    errors: int
    undecided: int
    pass_rate: float | None  # of the decided ones, 0 to 1; None if there are none
    latency: Latency | None
    first_token: Latency | None
    tokens: Tokens | None
    spent: tuple[Spent, ...]


@dataclass(frozen=True, slots=True)
class PairOfCells:
    """Two agents on the cases that both of them decided."""

    labels: tuple[str, str]
    cases: int
    rates: tuple[float, float] | None = None  # the mean pass rates of these cases, 0 to 1; None if there are none
    p_value: float | None = None  # two-sided, corrected for the number of pairs

    @property
    def is_significant(self) -> bool:
        """Return whether the difference is more than chance explains."""
        return self.p_value is not None and self.p_value < SIGNIFICANCE_LEVEL


@dataclass(frozen=True, slots=True)
class DifferingCase:
    """A case that not all agents pass equally often; `counts` are in the order of the cells, None if it did not run."""

    test: str
    number: int
    utterance: str
    counts: tuple[CaseCounts | None, ...]


@dataclass(frozen=True, slots=True)
class Matrix:
    """The agents of a command, each pair of them, and the cases in which they differ."""

    cells: tuple[Cell, ...]
    pairs: tuple[PairOfCells, ...]
    differing: tuple[DifferingCase, ...]


def labels_of(runs: Sequence[Run]) -> list[str]:
    """Return for each run of a command the agent that tells it from others of its test; all empty without a matrix.

    A command runs each test once, unless it has a matrix of agents: then the runs of a test have different agents. If
    these only differ in their models (`NAME@MODEL`), the models are the labels.
    """
    agents: dict[tuple[str, str, str], list[str]] = {}
    for run in runs:
        agents.setdefault(_test(run), []).append(run.subject_name)
    several = [names for names in agents.values() if len(names) > 1]
    if not several or any(len(set(names)) < len(names) for names in several):
        return [""] * len(runs)
    are_models = all(len({name.partition("@")[0] for name in names}) == 1 for names in several)
    return [run.subject_name.partition("@")[2] if are_models else run.subject_name for run in runs]


def _test(run: Run) -> tuple[str, str, str]:
    return run.options.origin.suite, run.id[:3], run.definition
