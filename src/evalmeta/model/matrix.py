"""Several agents that were asked the same cases in one command, side by side, as values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.comparison import SIGNIFICANCE_LEVEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.generated_data import Tokens
    from evalmeta.model.spending import Spent
    from evalmeta.model.statistics import CaseCounts, Latency


# The first letters of the ids of all runs in an org, which tell its orgs apart.
_PREFIX_CHARS: Final = 3


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
class MatrixCase:
    """A case of several agents; `counts` are in the order of the cells, None if it did not run.

    Where a run has the case with another number, its counts have that number.
    """

    test: str
    number: int
    utterance: str
    counts: tuple[CaseCounts | None, ...]

    @property
    def differs(self) -> bool:
        """Return whether not all agents pass it equally often, or only some of them decided it."""
        return len({case.pass_rate for case in self.counts if case}) > 1

    @property
    def spread(self) -> float:
        """Return the difference of its pass rates, 0 to 1; a case that only some agents decided has the largest."""
        rates = [case.pass_rate for case in self.counts if case]
        known = [rate for rate in rates if rate is not None]
        if not known:
            return 0.0
        return 1.0 if len(known) < len(rates) else max(known) - min(known)


@dataclass(frozen=True)
class Matrix:
    """The agents of a command, each pair of them, and their cases."""

    cells: tuple[Cell, ...]
    pairs: tuple[PairOfCells, ...]
    cases: tuple[MatrixCase, ...]

    @cached_property
    def differing(self) -> tuple[MatrixCase, ...]:
        """Return the cases in which the agents differ."""
        return tuple(case for case in self.cases if case.differs)


class AgentRun(NamedTuple):
    """What tells the runs of a matrix apart: the command, the first letters of the id, the test, and the agent."""

    suite: str
    prefix: str
    test: str
    subject: str

    @classmethod
    def of(cls, suite: str, run_id: str, test: str, subject: str) -> AgentRun:
        """Return what tells a run with this id apart."""
        return cls(suite, run_id[:_PREFIX_CHARS], test, subject)


def labels_of(runs: Sequence[AgentRun]) -> list[str]:
    """Return for each run of a command the agent that tells it from others of its test; all empty without a matrix.

    A command runs each test once, unless it has a matrix of agents: then the runs of a test have different agents. If
    these only differ in their models (`NAME@MODEL`), the models are the labels.
    """
    agents: dict[tuple[str, str, str], list[str]] = {}
    for *test, subject in runs:
        agents.setdefault((test[0], test[1], test[2]), []).append(subject)
    several = [names for names in agents.values() if len(names) > 1]
    if not several or any(len(set(names)) < len(names) for names in several):
        return [""] * len(runs)
    are_models = all(len({name.partition("@")[0] for name in names}) == 1 for names in several)
    return [run.subject.partition("@")[2] if are_models else run.subject for run in runs]
