"""Answers that traces complete: each turn has a trace of its own, which says what the agent's answer does not.

What the agent reports itself counts. What only the trace says is unknown until the whole trace has arrived.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from weakref import WeakValueDictionary

from evalmeta import limits
from evalmeta.engine.answers import generated_data
from evalmeta.engine.trace_context import TURN, TurnContext
from evalmeta.traces.spans import Telemetry, traces_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.engine.interfaces import Session, Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.traces.spans import LogEvent, Span, Trace
    from evalmeta.traces.turns import TracedTurn


_NOT_SENT: Final = (
    "no span of the turn arrived; let the agent export its traces to evalmeta, and continue the trace of `traceparent`"
)


@dataclass(eq=False, slots=True, weakref_slot=True)
class ExpectedTrace:
    """The trace of one turn, as far as it has arrived."""

    trace_id: str
    parent_id: str
    answered: float = 0.0
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
    def is_too_large(self) -> bool:
        """Return whether the trace has more than is kept of one."""
        return self.size > limits.MAX_TRACE_BYTES or len(self.spans) > limits.MAX_TRACE_SPANS

    def trace(self) -> Trace:
        """Return what has arrived."""
        return traces_of([Telemetry(tuple(self.spans.values()), tuple(self.logs))])[0]


class TraceStore:
    """The traces of the turns under way; other traces are counted and forgotten.

    A trace is kept as long as its session has it: that of an attempt that is retried is gone with the attempt.
    """

    def __init__(self) -> None:
        self._expected: WeakValueDictionary[str, ExpectedTrace] = WeakValueDictionary()
        self.other_spans = 0

    def expect(self) -> ExpectedTrace:
        """Return the trace of a new turn."""
        expected = ExpectedTrace(secrets.token_hex(16), secrets.token_hex(8))
        self._expected[expected.trace_id] = expected
        return expected

    def add(self, telemetry: Telemetry, *, size: int) -> None:
        """Add what an exporter sent in some bytes; repeated spans count once."""
        share = size / max(1, len(telemetry.spans) + len(telemetry.logs))
        for span in telemetry.spans:
            expected = self._expected.get(span.trace_id)
            if expected is None:
                self.other_spans += 1
            elif self._has_room(expected, share):
                expected.spans[span.span_id] = span
                expected.changed.set()
        for log in telemetry.logs:
            expected = self._expected.get(log.trace_id)
            if expected is not None and self._has_room(expected, share):
                expected.logs.append(log)

    def _has_room(self, expected: ExpectedTrace, share: float) -> bool:
        if expected.is_too_large or sum(trace.size for trace in self._expected.values()) > limits.MAX_HELD_TRACE_BYTES:
            expected.size = 2.0 * limits.MAX_TRACE_BYTES
            expected.spans.clear()
            expected.logs.clear()
            expected.changed.set()
            return False
        expected.size += share
        return True

    async def fault_of(self, expected: ExpectedTrace, *, seconds: float) -> str:
        """Wait until a trace is whole; return why it cannot be used, empty if it can.

        Spans that ended before the answer may be in two exports, so the trace is not read before the next one.
        """
        until = expected.answered + seconds
        while not (expected.is_whole or expected.is_too_large):
            expected.changed.clear()
            try:
                await asyncio.wait_for(expected.changed.wait(), max(0.0, until - time.monotonic()))
            except TimeoutError:
                return self._missing(expected, seconds)
        await asyncio.sleep(max(0.0, expected.answered + limits.TRACE_EXPORT_SECONDS - time.monotonic()))
        if expected.is_too_large:
            return "the trace of the turn is larger than evalmeta keeps; let the agent record less"
        return ""

    def _missing(self, expected: ExpectedTrace, seconds: float) -> str:
        if expected.has_root:
            return f"spans above those that arrived are missing after {seconds:g} s; export all services' spans"
        if expected.spans:
            return f"the root span of the turn has not ended within {seconds:g} s, although other spans of it arrived"
        others = f" ({self.other_spans} spans of other traces arrived)" if self.other_spans else ""
        return f"{_NOT_SENT}{others}"


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


class _TracedSession:
    def __init__(self, session: Session, source: TraceSource, seconds: float) -> None:
        self._session = session
        self._source = source
        self._seconds = seconds
        self._traces: list[ExpectedTrace] = []

    async def ask(self, utterance: str) -> GeneratedData:
        expected = self._source.store.expect()
        token = TURN.set(TurnContext(expected.traceparent, self._source.environment))
        try:
            answer = await self._session.ask(utterance)
        finally:
            TURN.reset(token)
        expected.answered = time.monotonic()
        self._traces.append(expected)
        return answer

    async def complete(self, answers: Sequence[GeneratedData]) -> list[CompletedAnswer]:
        """Return the answers with what their traces say, when these have arrived."""
        store, seconds = self._source.store, self._seconds
        faults = await asyncio.gather(*(store.fault_of(expected, seconds=seconds) for expected in self._traces))
        return [
            _without_trace(answer, fault) if fault else completed(answer, trace)
            # The last answer may have been refused, and is not there.
            for answer, fault, trace in zip(answers, faults, self._traces, strict=False)
        ]

    async def close(self) -> None:
        await self._session.close()


def _without_trace(answer: GeneratedData, why: str) -> CompletedAnswer:
    return CompletedAnswer(answer, f"the trace of the turn says nothing either: {why}", lacks_trace=True)


def completed(answer: GeneratedData, expected: ExpectedTrace) -> CompletedAnswer:
    """Return an answer with what its trace says and the agent did not report, and the findings of the trace."""
    from evalmeta.traces.turns import read_turn

    turn = read_turn(expected.trace())
    if turn is None:
        why = "it has no span of an agent or a model; instrument the agent's framework"
        return _without_trace(answer, why)
    # What the trace says is checked as what an agent returns.
    traced = generated_data(replace(turn.generated(), outcome=answer.outcome, session_id=None, state=None))
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
