"""The interfaces of the engine: subjects with their sessions, scorers, and journals."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from evalmeta.model.definition import HistoryMessage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from evalmeta.model.definition import Expectation
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.run import CaseResult, EarlierTurn, TestResult


class Session(Protocol):
    """One conversation with an agent, with a case's history and context variables."""

    async def ask(self, utterance: str) -> GeneratedData:
        """Return the agent's answer in one turn; an exception makes the case ERROR, preferably `SubjectError`."""
        ...

    async def close(self) -> None:
        """End the conversation; called once, also after an error or a time-out."""
        ...


class Subject(Protocol):
    """An agent under test; its sessions are independent, and many are open at the same time."""

    async def open(self, case: Case) -> Session:
        """Start a conversation with the case's history and context variables."""
        ...

    async def close(self) -> None:
        """Release resources; called once, after the last session."""
        ...


class SharedPlaces(Protocol):
    """The places of one run for cases that ask its agent at the same time, if several processes share them."""

    def take(self, wanted: int, *, size: int) -> int:
        """Take up to `wanted` places, of `size` for all runs of the agent, and return how many.

        Raise StoreLocked if that may succeed soon, and StoreError if not.
        """
        ...

    def leave(self, count: int) -> None:
        """Give places back, and want no more."""
        ...


class SharedPace(Protocol):
    """The rate of one agent that several processes share."""

    def reserve(self, *, interval: float) -> float:
        """Reserve the next slot, `interval` seconds after the one before; return the seconds until then."""
        ...

    def pause(self, seconds: float) -> None:
        """Let no process send requests for some seconds."""
        ...

    def pause_left(self) -> float:
        """Return the seconds until requests may be sent again; 0 without a pause."""
        ...


class NothingToClose:
    """The base of sessions and subjects without resources."""

    async def close(self) -> None:
        """Do nothing."""


class SimpleSubject(NothingToClose):
    """A subject without resources; a function makes the session of a case."""

    def __init__(self, session_of: Callable[[Case], Session]) -> None:
        self._session_of = session_of

    async def open(self, case: Case) -> Session:
        """Start a conversation."""
        return self._session_of(case)


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
        messages = list(self.case.history)
        for turn in self.earlier:
            messages.append(HistoryMessage("user", turn.utterance))
            messages.append(HistoryMessage("agent", turn.generated.outcome, turn.generated.topic))
        return tuple(messages)


class Scorer(Protocol):
    """Judges an expectation; a scorer that waits, for example for a model, returns an awaitable."""

    def __call__(self, expectation: Expectation, exchange: Exchange, /) -> TestResult | Awaitable[TestResult]:
        """Return the result; an exception becomes an ERROR result."""
        ...


class Journal(Protocol):
    """Keeps the results of one run; only called from the event loop's thread."""

    def finished(self) -> frozenset[tuple[int, int]]:
        """Return (iteration, case number) of every result that is kept already."""
        ...

    def append(self, results: Sequence[CaseResult]) -> None:
        """Keep results: either all of them are committed to disk when it returns, or none.

        Raise StoreLocked if that may succeed soon.
        """
        ...


class MemoryJournal:
    """A journal that keeps results in memory."""

    def __init__(self) -> None:
        self.results: list[CaseResult] = []

    def finished(self) -> frozenset[tuple[int, int]]:
        """Return (iteration, case number) of every result so far."""
        return frozenset((result.iteration, result.number) for result in self.results)

    def append(self, results: Sequence[CaseResult]) -> None:
        """Append results in their order."""
        self.results.extend(results)
