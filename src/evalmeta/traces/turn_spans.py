"""The spans of one turn by their kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalmeta.model.steps import StepKind
from evalmeta.traces import conventions as says

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.traces.messages import Message
    from evalmeta.traces.spans import Span, Trace

    _Messages = tuple[str, list[Message]]


def top_spans(trace: Trace) -> list[Span]:
    """Return the topmost spans of agents; if there are none, the roots above calls of models."""
    tops: list[Span] = []
    waiting = [root for root in trace.roots if says.is_conversation(root)]
    while waiting:
        span = waiting.pop(0)
        if says.kind_of(span) is StepKind.AGENT:
            tops.append(span)
        else:
            waiting.extend(trace.children(span))
    if tops:
        return sorted(tops, key=lambda span: span.start_ns)
    return [root for root in trace.roots if any(says.kind_of(span) is StepKind.MODEL for span in trace.below(root))]


class TurnSpans:
    """The spans of a turn by their kinds.

    Of calls of models right inside each other, which two instrumentations make of one call, only the outermost counts.
    """

    def __init__(self, trace: Trace, tops: Sequence[Span]) -> None:
        self.trace, self.tops = trace, tops
        self._got: dict[str, _Messages] = {}
        self._returned: dict[str, _Messages] = {}
        self.all = [span for top in tops for span in trace.below(top)]
        self.tools = self._of(StepKind.TOOL)
        self.models = self._outermost(StepKind.MODEL)
        self.retrievals = self._outermost(StepKind.RETRIEVAL)
        self.agents = tuple(_without_repeats(self.agent_of(span)[1] for span in self.models))

    def messages_to(self, span: Span) -> _Messages:
        """Return the messages that a model or an agent got, and the rule that found them; they are read once."""
        if span.span_id not in self._got:
            self._got[span.span_id] = says.messages_to(span)
        return self._got[span.span_id]

    def messages_from(self, span: Span) -> _Messages:
        """Return the messages that a model or an agent returned, and the rule that found them; they are read once."""
        if span.span_id not in self._returned:
            self._returned[span.span_id] = says.messages_from(span)
        return self._returned[span.span_id]

    def _of(self, kind: StepKind) -> list[Span]:
        return sorted((span for span in self.all if says.kind_of(span) is kind), key=lambda span: span.start_ns)

    def _outermost(self, kind: StepKind) -> list[Span]:
        return [span for span in self._of(kind) if not self._is_inside(span, kind)]

    def _is_inside(self, span: Span, kind: StepKind) -> bool:
        """Return whether a span is inside another of its kind, without an agent or a tool between them."""
        for above in self._above(span):
            if (outer := says.kind_of(above)) is not StepKind.OTHER:
                return outer is kind
        return False

    def _above(self, span: Span) -> Iterator[Span]:
        seen = {span.span_id}
        while (parent := self.trace.spans.get(span.parent_id)) and parent.span_id not in seen:
            seen.add(parent.span_id)
            yield parent
            span = parent

    def agent_of(self, span: Span) -> tuple[str, str]:
        """Return the agent that a span belongs to, and the rule that found it."""
        named = (says.agent_of(step) for step in (span, *self._above(span)))
        return next((found for found in named if found[1]), ("", ""))


def _without_repeats(names: Iterable[str]) -> Iterator[str]:
    before = ""
    for name in names:
        if name and name != before:
            yield name
            before = name
