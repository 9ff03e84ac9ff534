"""Compare several agents on the same cases: each pair of them, and the cases in which they differ.

No agent was before another, so the tests are two-sided: twice the smaller p-value of the permutation tests in both
directions (`significance`). They are corrected for the number of pairs in steps (Holm).
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING

from evalmeta.engine.comparison import ComparedTest, match, tables_of
from evalmeta.engine.significance import Table, permutation_worse, weighted_holm
from evalmeta.model.matrix import DifferingCase, PairOfCells

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalmeta.model.statistics import CaseCounts

    Tests = Mapping[str, Sequence[CaseCounts]]


def pairs_of(cells: Mapping[str, Tests]) -> list[PairOfCells]:
    """Return each pair of agents on the cases that both decided; `cells` has the cases of each test by agent."""
    tables = {pair: _tables(pair, *(cells[label] for label in pair)) for pair in combinations(cells, 2)}
    tested = {pair: _two_sided(decided) for pair, decided in tables.items() if decided}
    shares = [1 / len(tested) for _ in tested]
    corrected = dict(zip(tested, weighted_holm([*tested.values()], shares), strict=True))
    return [
        PairOfCells(pair, len(decided), _rates(decided), min(1.0, corrected[pair])) if decided else PairOfCells(pair, 0)
        for pair, decided in tables.items()
    ]


def differing_cases(cells: Mapping[str, Tests]) -> list[DifferingCase]:
    """Return the cases that not all agents pass equally often, or that only some of them decided."""
    found: dict[tuple[str, int], dict[str, CaseCounts]] = {}
    for label, tests in cells.items():
        for name, cases in tests.items():
            for case in cases:
                found.setdefault((name, case.number), {})[label] = case
    return [
        DifferingCase(name, number, next(iter(counts.values())).utterance, tuple(map(counts.get, cells)))
        for (name, number), counts in sorted(found.items())
        if len({case.pass_rate for case in counts.values()}) > 1
    ]


def _tables(labels: tuple[str, str], one: Tests, other: Tests) -> list[Table]:
    return [table for name in one if name in other for table in _of_test(labels, name, one[name], other[name])]


def _of_test(
    labels: tuple[str, str], name: str, one: Sequence[CaseCounts], other: Sequence[CaseCounts]
) -> Iterator[Table]:
    return (table for table in tables_of(match(ComparedTest(name, labels, one, other))) if table)


def _two_sided(tables: Sequence[Table]) -> float:
    worse, better = permutation_worse(tables), permutation_worse([table.mirrored for table in tables])
    return min(1.0, 2 * min(worse, better))


def _rates(tables: Sequence[Table]) -> tuple[float, float]:
    one = math.fsum(table.passed_before / (table.passed_before + table.failed_before) for table in tables)
    other = math.fsum(table.passed / (table.passed + table.failed) for table in tables)
    return one / len(tables), other / len(tables)
