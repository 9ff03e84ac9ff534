"""What a format cannot hold of a definition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.definition import TestCase

__all__ = ["Loss", "Written", "number_losses", "place_of"]


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that was not written.

    Attributes:
        where: the part of the definition, such as `test case 3`.
        what: what is missing or different in the written file, one sentence.
    """

    where: str
    what: str

    def __str__(self) -> str:
        """Gives the loss on one line."""
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True)
class Written:
    """A definition in another format, and everything that the format could not hold of it.

    Attributes:
        config: what ADK's test_config.json beside it has to say; None where ADK's defaults will do.
    """

    content: bytes
    losses: tuple[Loss, ...] = ()
    config: bytes | None = None


def place_of(case: TestCase, place: int) -> str:
    """Names a test case by its number, or by its place in the file, from 1."""
    return f"test case {place if case.number is None else case.number}"


def number_losses(case: TestCase, place: int) -> Iterator[Loss]:
    """Yields the loss of a number that is not the test case's place, for formats that count cases."""
    if case.number not in {None, place}:
        yield Loss(place_of(case, place), f"the number {case.number}; by its place the test case gets {place}")
