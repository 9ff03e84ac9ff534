"""Receiving traces of agents that run elsewhere: `evalmeta trace receive`."""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from evalmeta import limits
from evalmeta.api.traces import hiding, turns_in
from evalmeta.errors import SettingsError
from evalmeta.org.serving.trace_receiver import TOKEN_VARIABLE, TraceReceiver, exporter_lines, is_protobuf_installed
from evalmeta.traces.spans import Telemetry, traces_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from evalmeta.traces.spans import LogEvent, Span, Trace
    from evalmeta.traces.turns import TracedTurn

    OnStart = Callable[["Exporter"], None]


class Exporter(NamedTuple):
    """How agents reach the receiver: its address, and the lines of a shell that set what exporters need.

    `token` is the token if it was made for this call; empty if it is the one of the environment.
    """

    url: str
    lines: str
    token: str


@dataclass(frozen=True, slots=True)
class ReceivedTraces:
    """What was received until the end.

    Attributes:
        traces: all of them, by their begin.
        why_ended: the limit that ended it; empty if it ended as it was to.
        left_out: the number of spans that arrived after the limit was reached.
        is_late: whether the time ran out before the expected number of turns had arrived.
    """

    traces: tuple[Trace, ...]
    why_ended: str = ""
    left_out: int = 0
    is_late: bool = False

    def incomplete(self, turns: Sequence[TracedTurn]) -> list[str]:
        """Return the ids of the traces that are not whole, of which `turns` are those of agents."""
        whole = {turn.trace_id: turn.is_whole for turn in turns}
        # Without a turn, the span of the agent may be missing.
        return [
            trace.trace_id
            for trace in self.traces
            if not whole.get(trace.trace_id, any(not root.parent_id for root in trace.roots))
        ]


async def receive_traces(
    *,
    port: int,
    on_start: OnStart,
    on_turn: Callable[[TracedTurn], None],
    on_refusal: Callable[[str], None],
    turns: int | None = None,
    seconds: float | None = None,
    folder: Path | None = None,
) -> ReceivedTraces:
    """Receive traces until a number of turns has arrived, a time has passed, or the task is cancelled.

    `on_turn` is called with each turn when its trace seems to be complete, without secrets; what arrives later is in
    the result. A cancellation ends the receiver, and what has arrived is returned.

    Raises:
        SettingsError: a package is missing.
        UsageError: the port cannot be used.
    """
    if not is_protobuf_installed():
        raise SettingsError(
            "receiving traces needs opentelemetry-proto, which is not installed",
            actions=["Run: pip install 'evalmeta[otel]'"],
        )
    own = os.environ.get(TOKEN_VARIABLE, "")
    token = own or secrets.token_hex(16)
    arrived = _ArrivedTraces(on_refusal)
    receiver = TraceReceiver(port, token, arrived)
    received, is_late = 0, False
    try:
        await receiver.started()
        on_start(Exporter(receiver.url, exporter_lines(receiver.port), "" if own else token))
        hide = hiding(folder)
        limit = None if seconds is None or math.isinf(seconds) else seconds
        async with asyncio.timeout(limit):
            while (turns is None or received < turns) and (completed := await arrived.next_completed()):
                for turn in [turn for trace in completed for turn in turns_in(trace, hide=hide) or ()]:
                    on_turn(turn)
                    received += 1
    except TimeoutError:
        is_late = turns is not None
    except asyncio.CancelledError:
        # Ctrl-C is how it usually ends. Requests that have begun are still received.
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
    finally:
        await receiver.stop(seconds=limits.TRACE_END_SECONDS)
    return ReceivedTraces(tuple(arrived.traces()), arrived.why_full, arrived.left_out, is_late)


@dataclass(slots=True)
class _ArrivingTrace:
    """The spans and log events of a trace so far, and when the last one arrived."""

    spans: dict[str, Span] = field(default_factory=dict)
    logs: list[LogEvent] = field(default_factory=list)
    arrived: float = 0.0

    @property
    def due(self) -> float:
        """Return when the trace is shown, if nothing arrives until then."""
        return self.arrived + (limits.TRACE_QUIET_SECONDS if self._is_whole else limits.TRACE_SECONDS)

    @property
    def _is_whole(self) -> bool:
        known = {*self.spans, ""}
        return bool(self.spans) and all(span.parent_id in known for span in self.spans.values())

    def telemetry(self) -> Telemetry:
        return Telemetry(tuple(self.spans.values()), tuple(self.logs))


class _ArrivedTraces:
    """All traces that arrive, within limits."""

    def __init__(self, on_refusal: Callable[[str], None]) -> None:
        self._on_refusal = on_refusal
        self._traces: dict[str, _ArrivingTrace] = {}
        self._waiting: dict[str, _ArrivingTrace] = {}
        self._changed = asyncio.Event()
        self._size = 0
        self._spans = 0
        self.left_out = 0
        self.why_full = ""

    def add(self, telemetry: Telemetry, *, size: int) -> None:
        """Add what an exporter sent, until a limit is reached; repeated spans count once."""
        if self.why_full:
            self.left_out += len(telemetry.spans)
            return
        now = time.monotonic()
        for span in telemetry.spans:
            trace = self._trace(span.trace_id)
            self._spans += span.span_id not in trace.spans
            trace.spans[span.span_id] = span
            trace.arrived = now
        for log in telemetry.logs:
            self._trace(log.trace_id).logs.append(log)
        self._size += size
        self.why_full = self._full()
        self._changed.set()

    def _trace(self, trace_id: str) -> _ArrivingTrace:
        if trace_id not in self._traces:
            self._traces[trace_id] = self._waiting[trace_id] = _ArrivingTrace(arrived=time.monotonic())
        return self._traces[trace_id]

    def _full(self) -> str:
        amounts = (
            (self._size, limits.MAX_TRACE_BYTES, "bytes"),
            (self._spans, limits.MAX_RECEIVED_SPANS, "spans"),
            (len(self._traces), limits.MAX_RECEIVED_TRACES, "traces"),
        )
        return next((f"at most {limit:,} {unit} are kept" for amount, limit, unit in amounts if amount >= limit), "")

    def refuse(self, why: str) -> None:
        """Report why a request was refused."""
        self._on_refusal(why)

    async def next_completed(self) -> list[Trace]:
        """Return the next traces of which nothing has arrived for a while; none if a limit is reached."""
        while not self.why_full:
            now = time.monotonic()
            due = {trace_id: trace.due for trace_id, trace in self._waiting.items()}
            if ready := [trace_id for trace_id, at in due.items() if at <= now]:
                return traces_of([self._waiting.pop(trace_id).telemetry() for trace_id in ready])
            self._changed.clear()
            # Before Python 3.12, wait_for loses a cancellation if the event is set at the same time.
            with suppress(TimeoutError):
                async with asyncio.timeout(min(due.values()) - now if due else None):
                    await self._changed.wait()
        return []

    def traces(self) -> list[Trace]:
        """Return all traces by their begin."""
        return traces_of(trace.telemetry() for trace in self._traces.values() if trace.spans)
