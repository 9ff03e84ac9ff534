"""Journals: where results are kept before anyone is told about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.run import CaseResult


class Journal(Protocol):
    """Keeps the results of one run; the runner calls it from the thread of its event loop only."""

    def finished(self) -> frozenset[tuple[int, int]]:
        """Gives (iteration, case number) of every result that need not be asked for again."""
        ...

    def append(self, results: Sequence[CaseResult]) -> None:
        """Keeps results: they are committed to disk before it returns, all of them or none."""
        ...


class MemoryJournal:
    """A journal for library use: results live as long as the object does."""

    def __init__(self) -> None:
        self.results: list[CaseResult] = []

    def finished(self) -> frozenset[tuple[int, int]]:
        """Gives (iteration, case number) of every result so far."""
        return frozenset((result.iteration, result.number) for result in self.results)

    def append(self, results: Sequence[CaseResult]) -> None:
        """Keeps results in the order they came."""
        self.results.extend(results)
