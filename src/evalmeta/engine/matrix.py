"""Compare several agents on the same cases: each pair of them, and the cases in which they differ.

No agent was before another, so the tests are two-sided: twice the smaller p-value of the permutation tests in both
directions (`significance`). They are corrected for the number of pairs in steps (Holm).
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from evalmeta.engine.comparison import ComparedTest, match, pair_cases, tables_of
from evalmeta.engine.significance import Table, permutation_worse, weighted_holm
from evalmeta.model.matrix import MatrixCase, PairOfCells

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


def matrix_cases(cells: Mapping[str, Tests]) -> list[MatrixCase]:
    """Return the cases of all agents by test and number; a case that asks something else is another case."""
    names = sorted({name for tests in cells.values() for name in tests})
    return [case for name in names for case in _cases_of(name, {label: cells[label].get(name, ()) for label in cells})]


def _cases_of(name: str, cells: Mapping[str, Sequence[CaseCounts]]) -> list[MatrixCase]:
    # By number, as the first agent has it that asks them; no two cases have the same.
    first: dict[int, CaseCounts] = {}
    found: dict[int, dict[str, CaseCounts]] = {}
    for label, cases in cells.items():
        for old, new in [*pair_cases(first.values(), cases)]:
            if new is None:
                continue
            number = old.number if old else new.number
            if old is None and number in first:
                number = 1 + max(*first, *(case.number for case in cases))
            first.setdefault(number, new if new.number == number else replace(new, number=number))
            found.setdefault(number, {})[label] = new
    return [
        MatrixCase(name, number, first[number].utterance, tuple(map(counts.get, cells)))
        for number, counts in sorted(found.items())
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
