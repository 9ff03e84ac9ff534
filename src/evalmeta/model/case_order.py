"""Case results in order of case number, without holding all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.run import CaseResult


@runtime_checkable
class NumberedCases(Protocol):
    """Case results that are not in memory and can be read in order of number."""

    def by_number(self) -> Iterator[CaseResult]:
        """Yield the case results in order of number and iteration."""


def by_number(cases: Sequence[CaseResult]) -> Iterator[CaseResult]:
    """Yield case results in order of number and iteration."""
    if isinstance(cases, NumberedCases):
        return cases.by_number()
    return iter(sorted(cases, key=lambda case: (case.number, case.iteration)))
