"""Answers that the evaluation's own file has already: nobody is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.errors import SubjectError

if TYPE_CHECKING:
    from evalmeta.engine.subject import Session, Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated import GeneratedData

__all__ = ["bind_recorded"]


def bind_recorded() -> Subject:
    """Makes a subject that answers every turn with what its file has recorded for it."""
    return _Recorded()


class _Recorded:
    async def open(self, case: Case) -> Session:
        return _RecordedSession(case)

    async def close(self) -> None:
        """Has nothing to let go of."""


class _RecordedSession:
    """Goes through the turns of its case; what is asked does not matter."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._turns = iter(case.turns)

    async def ask(self, utterance: str) -> GeneratedData:
        turn = next(self._turns, None)
        if turn is None or turn.recorded is None:
            raise SubjectError(f"case {self._case.number} has no recorded answer to {utterance[:100]!r}")
        return turn.recorded

    async def close(self) -> None:
        """Has nothing to let go of."""
