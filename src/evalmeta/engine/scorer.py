"""Scorers: each judges one kind of expectation against one exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from evalmeta.model.definition import HistoryMessage

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from evalmeta.model.definition import Expectation
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.run import EarlierTurn, TestResult


class Exchange(NamedTuple):
    """One turn: what was asked, in which case, what came back, and the turns before it."""

    case: Case
    utterance: str
    generated: GeneratedData
    earlier: tuple[EarlierTurn, ...] = ()

    @property
    def history(self) -> tuple[HistoryMessage, ...]:
        """Gives what was said before the question: the case's history, and the turns since."""
        if not self.earlier:
            return self.case.history
        said = (
            message
            for turn in self.earlier
            for message in (
                HistoryMessage("user", turn.utterance),
                HistoryMessage("agent", turn.generated.outcome, turn.generated.topic),
            )
        )
        return (*self.case.history, *said)


class Scorer(Protocol):
    """Judges an expectation; a scorer that has to wait (for a model) gives an awaitable."""

    def __call__(self, expectation: Expectation, exchange: Exchange, /) -> TestResult | Awaitable[TestResult]:
        """Gives the result; whatever it raises becomes an ERROR result."""
        ...


"""Our own scorers with the default settings."""
