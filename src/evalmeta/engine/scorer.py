"""The protocol of scorers: each judges one kind of expectation against one exchange."""

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
    """One turn of a case: the utterance, the agent's response, and the turns before it."""

    case: Case
    utterance: str
    generated: GeneratedData
    earlier: tuple[EarlierTurn, ...] = ()

    @property
    def history(self) -> tuple[HistoryMessage, ...]:
        """Return the conversation before the utterance: the case's history, then the earlier turns."""
        if not self.earlier:
            return self.case.history
        messages = (
            message
            for turn in self.earlier
            for message in (
                HistoryMessage("user", turn.utterance),
                HistoryMessage("agent", turn.generated.outcome, turn.generated.topic),
            )
        )
        return (*self.case.history, *messages)


class Scorer(Protocol):
    """Judges an expectation; a scorer that waits, for example for a model, returns an awaitable."""

    def __call__(self, expectation: Expectation, exchange: Exchange, /) -> TestResult | Awaitable[TestResult]:
        """Return the result; an exception becomes an ERROR result."""
        ...
