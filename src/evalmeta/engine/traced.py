"""Answers that traces complete: each turn has a trace of its own, which says what the agent's answer does not.

What the agent reports itself counts. What only the trace says is unknown until the whole trace has arrived.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol, TypeVar
from weakref import WeakValueDictionary

from evalmeta import limits
from evalmeta.engine.answers import generated_data
from evalmeta.engine.interfaces import WrappedSession
from evalmeta.engine.trace_context import TURN, TurnContext
from evalmeta.errors import SubjectBusy, SubjectError, SubjectRefused
from evalmeta.traces.spans import Telemetry, traces_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from evalmeta.engine.interfaces import Session, Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.traces.spans import LogEvent, Span, Trace
    from evalmeta.traces.turns import TracedTurn


_Given = TypeVar("_Given")
TOO_LARGE: Final = "the trace of the turn is larger than evalmeta keeps; let the agent record less"
_NOT_SENT: Final = (
    "no span of the turn arrived; let the agent export its traces to evalmeta, and continue the trace of `traceparent`"
)


@dataclass(eq=False, slots=True, weakref_slot=True)
class ExpectedTrace:
    """The trace of one turn, as far as it has arrived."""

    trace_id: str
    parent_id: str
    answered: float = 0.0
    arrived: float = 0.0
    size: float = 0.0
    spans: dict[str, Span] = field(default_factory=dict)
    logs: list[LogEvent] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def traceparent(self) -> str:
        """Return the header of W3C Trace Context for the agent."""
        return f"00-{self.trace_id}-{self.parent_id}-01"

    @property
    def has_root(self) -> bool:
        """Return whether a span that the turn itself called has ended."""
        return any(span.parent_id == self.parent_id for span in self.spans.values())

    @property
    def is_whole(self) -> bool:
        """Return whether the root and all spans that others name as their parents have arrived."""
        known = {*self.spans, self.parent_id}
        return self.has_root and all(span.parent_id in known for span in self.spans.values())

    @property
    def last_event(self) -> float:
        """Return when the agent answered, or when the last span arrived if that was later."""
        return max(self.answered, self.arrived)

    @property
    def is_too_large(self) -> bool:
        """Return whether the trace has more than is kept of one."""
        return self.size > limits.MAX_TRACE_BYTES or len(self.spans) > limits.MAX_TRACE_SPANS

    def drop(self) -> None:
        """Forget what has arrived, because it is too large."""
        self.size = 2.0 * limits.MAX_TRACE_BYTES
        self.spans.clear()
        self.logs.clear()

    def trace(self) -> Trace | None:
        """Return what is known."""
        return next(iter(traces_of([Telemetry(tuple(self.spans.values()), tuple(self.logs))])), None)


class TraceStore:
    """The traces of the turns under way; other traces are counted and forgotten.

    A trace is kept as long as its session has it: that of an attempt that is retried is gone with the attempt.
    """

    trace_type: ClassVar[type[ExpectedTrace]] = ExpectedTrace

    def __init__(self) -> None:
        self._expected: WeakValueDictionary[str, ExpectedTrace] = WeakValueDictionary()
        self.other_spans = 0
        self.refused = 0
        self._why_refused = ""

    def expect(self) -> ExpectedTrace:
        """Return the trace of a new turn."""
        expected = self.trace_type(secrets.token_hex(16), secrets.token_hex(8))
        self._expected[expected.trace_id] = expected
        return expected

    def add(self, telemetry: Telemetry, *, size: int) -> None:
        """Add what an exporter sent in some bytes; repeated spans count once."""
        now = time.monotonic()
        share = size / max(1, len(telemetry.spans) + len(telemetry.logs))
        for span in telemetry.spans:
            expected = self._expected.get(span.trace_id)
            if expected is None:
                self.other_spans += 1
            else:
                if self._has_room(expected, share):
                    expected.spans[span.span_id] = span
                    expected.arrived = now
                expected.changed.set()
        for log in telemetry.logs:
            expected = self._expected.get(log.trace_id)
            if expected is not None:
                if self._has_room(expected, share):
                    expected.logs.append(log)
                expected.changed.set()

    def refuse(self, why: str) -> None:
        """Note that a request of an exporter was refused."""
        self.refused += 1
        self._why_refused = why

    def _has_room(self, expected: ExpectedTrace, share: float) -> bool:
        if expected.is_too_large or sum(trace.size for trace in self._expected.values()) > limits.MAX_HELD_TRACE_BYTES:
            expected.drop()
            return False
        expected.size += share
        return True

    async def fault_of(self, expected: ExpectedTrace, *, seconds: float) -> str:
        """Wait until a trace is whole; return why it cannot be used, empty if it can.

        Spans that ended before the answer may be in exports of several programs, so the trace is not read before the
        next ones.
        """
        until = expected.answered + seconds
        while not (expected.is_whole or expected.is_too_large):
            expected.changed.clear()
            try:
                async with asyncio.timeout(until - time.monotonic()):
                    await expected.changed.wait()
            except TimeoutError:
                return self._missing(expected, seconds)
        while (left := expected.last_event + limits.TRACE_EXPORT_SECONDS - time.monotonic()) > 0:
            await asyncio.sleep(left)
        if expected.is_too_large:
            return TOO_LARGE
        return ""

    def _missing(self, expected: ExpectedTrace, seconds: float) -> str:
        if expected.has_root:
            return f"spans above those that arrived are missing after {seconds:g} s; export all services' spans"
        if expected.spans:
            return f"the root span of the turn has not ended within {seconds:g} s, although other spans of it arrived"
        others = [f"{self.other_spans} spans of other traces arrived"] if self.other_spans else []
        others += [f"{self.refused} requests were refused, the last because {self._why_refused}"] * bool(self.refused)
        return f"{_NOT_SENT} ({'; '.join(others)})" if others else _NOT_SENT


class TraceSource(Protocol):
    """Where traces arrive."""

    @property
    def store(self) -> TraceStore:
        """Return the traces under way."""
        ...

    @property
    def environment(self) -> Mapping[str, str]:
        """Return what programs need to send their traces there; known after `open`."""
        ...

    async def open(self) -> None:
        """Begin to receive; called before each case."""
        ...

    async def close(self) -> None:
        """End; called once."""
        ...


class CompletedAnswer(NamedTuple):
    """An answer with what its trace says, and what its results must say of the trace.

    Without a trace, only undecided results say why.
    """

    answer: GeneratedData
    note: str = ""
    lacks_trace: bool = False


class TracedSubject:
    """A subject whose answers traces complete."""

    def __init__(self, subject: Subject, source: TraceSource, *, seconds: float) -> None:
        self._subject = subject
        self._source = source
        self._seconds = seconds

    async def open(self, case: Case) -> Session:
        """Start a conversation, for which traces can arrive."""
        await self._source.open()
        return _TracedSession(await self._subject.open(case), self._source, self._seconds)

    async def close(self) -> None:
        """Close the subject, then what receives its traces."""
        try:
            await self._subject.close()
        finally:
            await self._source.close()


class _TracedSession(WrappedSession):
    def __init__(self, session: Session, source: TraceSource, seconds: float) -> None:
        super().__init__(session)
        self._source = source
        self._seconds = seconds
        self._traces: list[ExpectedTrace] = []

    async def _ask(self, ask: Callable[[_Given], Awaitable[GeneratedData]], given: _Given) -> GeneratedData:
        expected = self._source.store.expect()
        self._traces.append(expected)
        token = TURN.set(TurnContext(expected.traceparent, self._source.environment))
        try:
            return await ask(given)
        except (SubjectBusy, SubjectRefused):
            # The turn has not begun. It is asked again, or there is nothing to tell.
            self._traces.remove(expected)
            raise
        finally:
            TURN.reset(token)
            expected.answered = time.monotonic()

    async def complete(self, answers: Sequence[GeneratedData]) -> list[CompletedAnswer]:
        """Return the answers with what their traces say, when these have arrived.

        If a turn ended without a valid answer, what its trace says of it by then comes last.
        """
        store, seconds = self._source.store, self._seconds
        answered, others = self._traces[: len(answers)], self._traces[len(answers) :]
        given = [replace(answer, traceparent=own.traceparent) for answer, own in zip(answers, answered, strict=True)]
        waiting = [store.fault_of(expected, seconds=seconds) for expected in answered]
        waiting += [store.fault_of(expected, seconds=min(seconds, limits.TRACE_ERROR_SECONDS)) for expected in others]
        faults = await asyncio.gather(*waiting)
        completed_answers = [
            _without_trace(answer, fault) if fault else completed(answer, trace)
            for answer, fault, trace in zip(given, faults, answered, strict=False)
        ]
        unanswered = [known for expected in others if (known := _unanswered(expected)) is not None]
        return [*completed_answers, *map(CompletedAnswer, unanswered)]


def _without_trace(answer: GeneratedData, why: str) -> CompletedAnswer:
    return CompletedAnswer(answer, f"the trace of the turn says nothing either: {why}", lacks_trace=True)


def completed(answer: GeneratedData, expected: ExpectedTrace) -> CompletedAnswer:
    """Return an answer with what its trace says and the agent did not report, and the findings of the trace."""
    from evalmeta.traces.turns import read_turn

    turn = read_turn(trace) if (trace := expected.trace()) else None
    if turn is None:
        why = "it has no span of an agent or a model; instrument the agent's framework"
        return _without_trace(answer, why)
    try:
        # What the trace says is checked as what an agent returns.
        traced = generated_data(replace(turn.generated(), outcome=answer.outcome, session_id=None, state=None))
    except SubjectError as error:
        return _without_trace(answer, f"it cannot be read as an answer: {error}")
    actions = traced.actions if answer.actions is None or _has_more(answer, traced) else answer.actions
    tokens = answer.tokens or traced.tokens
    if tokens and not tokens.model and traced.tokens:
        tokens = replace(tokens, model=traced.tokens.model)
    merged = replace(
        answer,
        topic=traced.topic if answer.topic is None else answer.topic,
        actions=actions,
        tokens=tokens,
        retrieved=traced.retrieved if answer.retrieved is None else answer.retrieved,
        trace=traced.trace if answer.trace is None else answer.trace,
    )
    return CompletedAnswer(merged, "; ".join(_findings(answer, traced, turn)))


def _unanswered(expected: ExpectedTrace) -> GeneratedData | None:
    """Return what is known of a turn without an answer, also if spans are missing; None if that is nothing."""
    from evalmeta.traces.turns import read_turn

    turn = read_turn(trace) if (trace := expected.trace()) else None
    if turn is None:
        return None
    try:
        known = generated_data(replace(turn.generated(), outcome="", session_id=None, latency_ms=None))
    except SubjectError:
        return None
    return replace(known, traceparent=expected.traceparent)


def _has_more(answer: GeneratedData, traced: GeneratedData) -> bool:
    """Return whether the agent reported only the names of actions that the trace has with their details."""
    own, other = answer.actions or (), traced.actions or ()
    is_same = [action.name for action in own] == [action.name for action in other]
    return is_same and not any(action.has_details for action in own)


def _findings(answer: GeneratedData, traced: GeneratedData, turn: TracedTurn) -> list[str]:
    findings = [*turn.findings, *([] if turn.error is None else [f"the trace ends in an error: {turn.error}"])]
    own, other = answer.actions, traced.actions
    if own is not None and other is not None and [done.name for done in own] != [done.name for done in other]:
        names = ", ".join(done.name for done in other) or "none"
        findings.append(f"the trace has other actions than the answer, whose actions count: {names}")
    return findings
