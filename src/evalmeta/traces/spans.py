"""Spans and the trees that they form, whatever they arrived in."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalmeta.model.json_value import JsonObject

_NANOSECONDS: Final = 1e6


class SpanEvent(NamedTuple):
    """An event of a span, or a log record that names the span."""

    name: str
    attributes: JsonObject
    time_ns: int = 0


class SpanLink(NamedTuple):
    """A span that another one belongs to, in the same trace or in another."""

    trace_id: str
    span_id: str


class Span(NamedTuple):
    """One step of an agent.

    Attributes:
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits.
        parent_id: the span around it; empty for a root.
        start_ns: its begin in nanoseconds since 1970; 0 if unknown.
        end_ns: its end; 0 if it has not ended.
        error: the message of its status ERROR, which may be empty; None if the span has no such status.
        scope: the instrumentation that made it.
        links: the spans that it names; they are only written.
    """

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    start_ns: int
    end_ns: int
    attributes: JsonObject
    events: tuple[SpanEvent, ...] = ()
    error: str | None = None
    scope: str = ""
    links: tuple[SpanLink, ...] = ()

    @property
    def latency_ms(self) -> float | None:
        """Return how long the step took in milliseconds; None if that is unknown, or it ends before it begins."""
        if not self.start_ns or self.end_ns < self.start_ns:
            return None
        return (self.end_ns - self.start_ns) / _NANOSECONDS


class LogEvent(NamedTuple):
    """A log record of a span."""

    trace_id: str
    span_id: str
    event: SpanEvent


class Telemetry(NamedTuple):
    """What one export, or one file, has."""

    spans: tuple[Span, ...] = ()
    logs: tuple[LogEvent, ...] = ()


class Trace:
    """The spans of one trace as a tree; children may have arrived before their parents, and exports may be repeated."""

    def __init__(self, trace_id: str, spans: Iterable[Span]) -> None:
        self.trace_id = trace_id
        self.spans: Mapping[str, Span] = {span.span_id: span for span in spans}
        self._children: dict[str, list[Span]] = defaultdict(list)
        for span in self.spans.values():
            self._children["" if self._is_root(span) else span.parent_id].append(span)
        for children in self._children.values():
            children.sort(key=lambda span: span.start_ns)

    def _is_root(self, span: Span) -> bool:
        """Return whether the span has no parent here; the parent may be the caller's span, or may not have arrived."""
        return span.parent_id not in self.spans or span.parent_id == span.span_id

    @property
    def roots(self) -> tuple[Span, ...]:
        """Return the spans without a parent in the trace, by their begin."""
        return tuple(self._children.get("", ()))

    def children(self, span: Span) -> tuple[Span, ...]:
        """Return the spans right below a span, by their begin."""
        return tuple(self._children.get(span.span_id, ()))

    def below(self, span: Span) -> Iterator[Span]:
        """Yield a span and all spans below it, parents before children, siblings by their begin."""
        waiting, seen = [span], set()
        while waiting:
            step = waiting.pop()
            # Ids that name each other as parents form no tree.
            if step.span_id not in seen:
                seen.add(step.span_id)
                yield step
                waiting.extend(reversed(self.children(step)))


def traces_of(telemetry: Iterable[Telemetry]) -> list[Trace]:
    """Return the traces in exports, by their begin; log records become events of their spans."""
    spans: dict[str, dict[str, Span]] = defaultdict(dict)
    logs: dict[tuple[str, str], list[SpanEvent]] = defaultdict(list)
    for export in telemetry:
        for span in export.spans:
            spans[span.trace_id][span.span_id] = span
        for log in export.logs:
            events = logs[log.trace_id, log.span_id]
            # An exporter that did not get a reply sends its records again.
            if log.event not in events:
                events.append(log.event)
    for (trace_id, span_id), events in logs.items():
        by_id = spans.get(trace_id, {})
        if span_id in by_id:
            by_id[span_id] = by_id[span_id]._replace(events=(*by_id[span_id].events, *events))
    found = [Trace(trace_id, by_id.values()) for trace_id, by_id in spans.items()]
    return sorted(found, key=lambda trace: min(span.start_ns for span in trace.spans.values()))
