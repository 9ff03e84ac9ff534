"""The interfaces of the engine: subjects with their sessions, scorers, raters, and journals."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from evalmeta.model.definition import Expectation, HistoryMessage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from evalmeta.model.agent_scorer import PromptScorer
    from evalmeta.model.coverage import Inventory
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import Action, GeneratedData, Passage
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import CaseResult, EarlierTurn, TestResult, Verdict


_Given = TypeVar("_Given")


class Session(Protocol):
    """One conversation with an agent, with a case's history and context variables."""

    async def ask(self, utterance: str) -> GeneratedData:
        """Return the agent's answer in one turn; an exception makes the case ERROR, preferably `SubjectError`."""
        ...

    async def close(self) -> None:
        """End the conversation; called once, also after an error or a time-out."""
        ...


@runtime_checkable
class ValueSession(Protocol):
    """A session that also takes inputs that are not text, as sessions of Python objects do."""

    async def ask_value(self, inputs: JsonValue) -> GeneratedData:
        """Return the agent's answer in one turn; see `Session.ask`."""
        ...


class WrappedSession:
    """The base of sessions that ask another session; `ask_value` is there if that session has it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.checks_answers = getattr(session, "checks_answers", False)
        self.is_recorded = getattr(session, "is_recorded", False)
        if isinstance(session, ValueSession):
            self.ask_value = partial(self._ask, session.ask_value)

    async def ask(self, utterance: str) -> GeneratedData:
        """Return the agent's answer in one turn; see `Session.ask`."""
        return await self._ask(self._session.ask, utterance)

    async def _ask(self, ask: Callable[[_Given], Awaitable[GeneratedData]], given: _Given) -> GeneratedData:
        return await ask(given)

    async def close(self) -> None:
        """End the conversation."""
        await self._session.close()


class Subject(Protocol):
    """An agent under test; its sessions are independent, and many are open at the same time."""

    async def open(self, case: Case) -> Session:
        """Start a conversation with the case's history and context variables."""
        ...

    async def close(self) -> None:
        """Release resources; called once, after the last session."""
        ...


@runtime_checkable
class PreparedSubject(Protocol):
    """A subject of which all cases need something that only its system can say, such as whether its draft is valid."""

    async def prepare(self) -> None:
        """Check it before the first case; an exception ends the run with its text, and no case is run.

        SubjectBusy, SubjectUnreachable and the time limit of a case end no run. Other processes that ask cases of the
        run do not call this: what is wrong is then an error of each case.
        """
        ...

    async def close(self) -> None:
        """Release resources."""
        ...


class Description(NamedTuple):
    """What an agent offers, in words, and inputs of first tests."""

    text: str
    inputs: tuple[JsonObject, ...] = ()


@runtime_checkable
class DescribedSubject(Protocol):
    """A subject that cannot answer any question, but says what it can be asked."""

    async def describe(self) -> Description:
        """Return what the agent offers; raise SubjectError if it cannot be asked."""
        ...


@runtime_checkable
class ListedSubject(Protocol):
    """A subject that lists its topics and tools, which tests can cover."""

    async def inventory(self) -> Inventory:
        """Return its parts; raise SubjectError if they cannot be read, and NotFound if its kind does not list them."""
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
    """The rate and the back-off of one agent or rater that several processes share."""

    def reserve(self, *, interval: float, amount: float = 1.0) -> float:
        """Reserve the next `amount` of what is limited, `interval` seconds for 1; return the seconds until then."""
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


class SimpleSubject:
    """A subject for which a function makes the session of a case; `close` releases what the sessions share."""

    def __init__(
        self, session_of: Callable[[Case], Session], *, close: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._session_of = session_of
        self._close = close

    async def open(self, case: Case) -> Session:
        """Start a conversation."""
        return self._session_of(case)

    async def close(self) -> None:
        """Release what the sessions share."""
        if self._close:
            await self._close()


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


Scored: TypeAlias = "TestResult | Awaitable[TestResult | list[TestResult]]"
"""What a scorer returns: a result, or an awaitable of one or several."""


class Scorer(Protocol):
    """Judges an expectation; a scorer that waits, for example for a model, returns an awaitable of its results."""

    def __call__(self, expectation: Expectation, exchange: Exchange, /) -> Scored:
        """Return the result; an exception becomes an ERROR result."""
        ...


class Journal(Protocol):
    """Keeps the results of one run; only called from the event loop's thread.

    For one whose attribute `keeps_nothing` is true, workers do not wait.
    """

    def finished(self) -> frozenset[tuple[int, int]]:
        """Return (iteration, case number) of every result that is kept already."""
        ...

    def append(self, results: Sequence[CaseResult]) -> None:
        """Keep results: either all of them are committed to disk when it returns, or none.

        Raise StoreLocked if that may succeed soon.
        """
        ...


@dataclass(frozen=True, slots=True)
class Rubric:
    """What to rate, and by what.

    Attributes:
        metric: The expectation's canonical name, such as `bot_response_rating`, `coherence` or
            `response/llm_judged/safety/rating`.
        utterance: The user's question.
        actual: The agent's answer.
        expected: A model answer, or a description of one; empty if the definition has none.
        history: The conversation before the utterance.
        actions: The agent's actions for the answer, whose outputs are facts; None if the agent does not report them.
        threshold: The minimum rating, 0 to 5, of an answer that passes.
        passages: The passages that were retrieved for the answer, or the one to judge.
        facts: What a correct answer must say; if there are facts, `expected` is empty.
        guidelines: The rules that must all hold, or the one to judge.
        samples: The number of samples that a sampling rater requests; None leaves it to the rater.
        is_pooled: Whether all samples are requested and count: a majority does not end them early, and
            unreadable ones are ignored.
        instructions: The expectation's own instructions for a language model.
        scorer: The custom scorer whose prompt is carried out; its name is the metric.
        session: The conversation up to the answer, as custom scorers read it.
    """

    metric: str
    utterance: str
    actual: str
    expected: str = ""
    history: tuple[HistoryMessage, ...] = ()
    actions: tuple[Action, ...] | None = ()
    threshold: float = 3.0
    passages: tuple[Passage, ...] = ()
    facts: tuple[str, ...] = ()
    guidelines: tuple[str, ...] = ()
    samples: int | None = None
    is_pooled: bool = False
    instructions: str = ""
    scorer: PromptScorer | None = None
    session: JsonObject = field(default_factory=dict)


BEST_RATING: Final = 5.0


@dataclass(frozen=True, slots=True)
class Rating:
    """How well an answer meets the expectation.

    Attributes:
        score: 0 to 5, or a custom scorer's number; None if the rater did not decide.
        explanation: The reason and its evidence.
        rater: The name of the rater.
        rule: The rule that decided, if the rater has rules.
        share: The share of pooled samples that pass, 0 to 1.
        output: The label, number or text that a custom scorer gives.
    """

    score: float | None
    verdict: Verdict
    explanation: str
    rater: str
    rule: str = ""
    share: float | None = None
    output: str = ""


class Rater(Protocol):
    """Rates answers; a rater that waits, for example for a model, returns an awaitable.

    Raises:
        RaterError: The rater cannot rate now; the result becomes ERROR.
    """

    def __call__(self, rubric: Rubric, /) -> Rating | Awaitable[Rating] | None:
        """Rate an answer; return None if the rater cannot judge the metric at all."""
        ...

    async def close(self) -> None:
        """Release the rater's resources; called once, after the last rating."""
        ...


@runtime_checkable
class LazyRater(Protocol):
    """A rater that loads what it needs when it rates the first answer, or earlier on request."""

    def load_for(self, metrics: Iterable[str]) -> None:
        """Load what the metrics with these canonical names need."""
        ...


class RatingCache(Protocol):
    """Stores texts by a key that covers everything that a text depends on."""

    def find(self, key: str) -> str | None:
        """Return the text that is stored for a key; None if there is none."""
        ...

    def keep(self, key: str, body: str) -> None:
        """Store a text for a key, and replace an older one."""
        ...
