"""The names by which people choose one of the results of a case."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.model.expectations import canonical_name, expectation_kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.run import CaseResult, TestResult


class NamedResult(NamedTuple):
    """A result of a case.

    Attributes:
        name: the name of its expectation; `NAME#1`, `NAME#2` and so on if several results of its turn have that name.
        place: its place among the results of its turn, from 0.
    """

    name: str
    result: TestResult
    place: int

    @property
    def position(self) -> tuple[int, int]:
        """Return its turn and its place in the turn, which the same result has in all iterations."""
        return self.result.turn, self.place

    @property
    def turn(self) -> int:
        """Return the judged turn, as `TestResult.turn`."""
        return self.result.turn


def named_results(case: CaseResult) -> list[NamedResult]:
    """Return the results of a case with names; no two results of a turn have the same name."""
    totals = Counter((result.turn, result.name) for result in case.results)
    places: Counter[int] = Counter()
    seen: Counter[tuple[int, str]] = Counter()
    named = []
    for result in case.results:
        key = result.turn, result.name
        seen[key] += 1
        named.append(
            NamedResult(f"{result.name}#{seen[key]}" if totals[key] > 1 else result.name, result, places[result.turn])
        )
        places[result.turn] += 1
    return named


def results_called(results: Iterable[NamedResult], text: str) -> list[NamedResult]:
    """Return the results with this name; if there are none, those with this label, alias or name of an expectation."""
    candidates = list(results)
    return [named_result for named_result in candidates if named_result.name == text] or [
        named_result for named_result in candidates if _is_called(named_result.result, text)
    ]


def shown_names(results: Iterable[NamedResult]) -> str:
    """Return the names of results for a message: the label of a result if no other result of its turn has it."""
    distinct = {result.position: result for result in results}.values()
    labels = Counter((named_result.turn, named_result.result.label) for named_result in distinct)
    return ", ".join(
        dict.fromkeys(
            _shown(named_result, labels[named_result.turn, named_result.result.label]) for named_result in distinct
        )
    )


def _shown(named: NamedResult, times: int) -> str:
    label = named.result.label
    if label is None:
        return named.name
    return label if times == 1 else f"{named.name} ({label})"


def _is_called(result: TestResult, text: str) -> bool:
    kind = expectation_kind(result.name)
    names = {result.name, canonical_name(result.name), result.label or result.name, kind.label if kind else ""}
    return text.casefold() in map(str.casefold, names) or canonical_name(text) == canonical_name(result.name)
