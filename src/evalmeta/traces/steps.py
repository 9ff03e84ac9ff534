"""The tree of steps of one turn, within the limits of `limits.py`, and without secrets.

Steps are the calls of agents, models and tools, and searches. Other spans are left out, and so is the span of an agent
inside another of the same name, such as a node of a graph; the steps inside them move up.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.model.redaction import hide_secrets
from evalmeta.model.steps import Step, StepKind, StepTree
from evalmeta.traces import conventions as says

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeGuard

    from evalmeta.model.generated_data import Action
    from evalmeta.model.json_value import JsonValue
    from evalmeta.traces.spans import Span
    from evalmeta.traces.turn_spans import TurnSpans

_NANOSECONDS: Final = 1e6
# A text is cut between words, so that a secret at its end is there as a whole or not at all.
_LAST_WORD: Final = re.compile(r"\S{1,200}\Z")
# More than the longest text that is kept, and than the longest secret behind its end.
_SEARCHED: Final = 4 * limits.MAX_STEP_TEXT_BYTES


@dataclass(slots=True)
class _Place:
    """A step that is being made, with the steps inside it; the outermost place has no step."""

    step: Step | None = None
    agent: str = ""
    begin_ns: int = 0
    depth: int = 0
    inner: list[_Place] = field(default_factory=list)


class TracedAction(NamedTuple):
    """An action with the span of its tool, and that of the model that asked for it; one may be absent."""

    time_ns: int
    action: Action
    tool: Span | None
    model: Span | None


def read_steps(turn: TurnSpans, actions: Sequence[TracedAction]) -> StepTree:
    """Return the steps of a turn; each action has one."""
    return _Builder(turn, actions).tree()


class _Builder:
    def __init__(self, turn: TurnSpans, actions: Sequence[TracedAction]) -> None:
        self._turn = turn
        self._outermost = {span.span_id for span in (*turn.models, *turn.retrievals)}
        self._begin_ns = min(span.start_ns for span in turn.tops)
        self._actions: defaultdict[str, list[tuple[int, Action]]] = defaultdict(list)
        for number, (_, action, tool, model) in enumerate(actions):
            if span := tool or model:
                self._actions[span.span_id].append((number, action))
        self._texts = _Texts()
        self._steps_left, self._left_out = limits.MAX_STEPS, 0

    def tree(self) -> StepTree:
        outermost = _Place()
        # None: the step around the span is left out.
        places: dict[str, _Place | None] = {}
        for top in self._turn.tops:
            for span in self._turn.trace.below(top):
                around = outermost if span is top else places[span.parent_id]
                places[span.span_id] = self._place(span, around)
        return StepTree(_steps(outermost), self._left_out, self._texts.left_out)

    def _place(self, span: Span, around: _Place | None) -> _Place | None:
        """Add the step of a span to the place around it, and return where the steps inside the span belong."""
        kind = says.kind_of(span)
        agent = self._turn.agent_of(span)[1] if kind is StepKind.AGENT else ""
        if (
            kind is StepKind.OTHER
            or (kind in {StepKind.MODEL, StepKind.RETRIEVAL} and span.span_id not in self._outermost)
            or (kind is StepKind.AGENT and around is not None and around.agent and agent in {"", around.agent})
        ):
            return around
        if not self._has_room(around):
            return None
        if kind is StepKind.MODEL:
            place = self._add(span, around, self._model(span))
            for number, _ in self._actions[span.span_id]:
                if self._has_room(around):
                    self._add(span, around, Step(StepKind.TOOL, action=number))
            return place
        if kind is StepKind.TOOL:
            return self._add(span, around, self._tool(span))
        if kind is StepKind.RETRIEVAL:
            return self._add(span, around, self._step(span, kind, span.name))
        place = self._add(span, around, self._agent(span, agent, is_inside=bool(around.agent)))
        place.agent = agent or span.name
        return place

    def _has_room(self, around: _Place | None) -> TypeGuard[_Place]:
        """Return whether a step may be added to a place, and count it as left out if not."""
        if around is None or around.depth >= limits.MAX_STEP_DEPTH or not self._steps_left:
            self._left_out += 1
            return False
        self._steps_left -= 1
        return True

    def _add(self, span: Span, around: _Place, step: Step) -> _Place:
        place = _Place(step, around.agent, span.start_ns, around.depth + 1)
        around.inner.append(place)
        return place

    def _step(self, span: Span, kind: StepKind, name: str) -> Step:
        start_ms = round((span.start_ns - self._begin_ns) / _NANOSECONDS, 3) if span.start_ns else None
        error = self._texts.bounded(says.error_of(span))
        return Step(kind, name[: limits.MAX_API_NAME_CHARS], start_ms, span.latency_ms, error=error)

    def _agent(self, span: Span, name: str, *, is_inside: bool) -> Step:
        step = self._step(span, StepKind.AGENT, name or span.name)
        if not is_inside:
            # The utterance and the answer are those of the turn.
            return step
        asked = [message.text for message in self._turn.messages_to(span)[1] if message.role == "user"]
        answered = [message.text for message in self._turn.messages_from(span)[1] if message.role == "assistant"]
        return replace(step, input=self._texts.bounded(_last(asked)), output=self._texts.bounded(_last(answered)))

    def _model(self, span: Span) -> Step:
        """Return the step of a model, with what it was told since its last answer; tool steps have their results."""
        since = takewhile(lambda message: message.role != "assistant", reversed(self._turn.messages_to(span)[1]))
        asked = [message.text for message in since if message.role != "tool" and message.text]
        answered = [message.text for message in self._turn.messages_from(span)[1] if message.text]
        return replace(
            self._step(span, StepKind.MODEL, says.model_of(span) or span.name),
            input=self._texts.bounded("\n".join(reversed(asked))),
            output=self._texts.bounded(_last(answered)),
            tokens=says.tokens_of(span),
        )

    def _tool(self, span: Span) -> Step:
        step = self._step(span, StepKind.TOOL, "")
        for number, action in self._actions[span.span_id]:
            # What the action has is not kept twice.
            return replace(
                step,
                action=number,
                duration_ms=step.duration_ms if action.latency_ms is None else None,
                error=step.error if action.error is None else None,
            )
        return replace(
            step,
            name=says.tool_of(span)[: limits.MAX_API_NAME_CHARS],
            input=self._texts.bounded(_json_text(says.arguments_of(span))),
            output=self._texts.bounded(_json_text(says.result_of(span))),
        )


def _steps(place: _Place) -> tuple[Step, ...]:
    # Steps of spans that are left out may have moved up behind later ones.
    inner = sorted(place.inner, key=lambda other: other.begin_ns)
    return tuple(replace(other.step, steps=_steps(other)) for other in inner if other.step)


def _last(texts: Sequence[str]) -> str:
    return texts[-1] if texts else ""


def _json_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else "" if value is None else orjson.dumps(value).decode()


class _Texts:
    """The texts of a tree: what they may still have in bytes, and how many bytes were left out."""

    def __init__(self) -> None:
        self._bytes_left, self.left_out = limits.MAX_STEPS_BYTES, 0

    def bounded(self, text: str | None) -> str | None:
        """Return a text without secrets, cut if it is too long, with the number of bytes that are left out."""
        if not text:
            return None
        # Secrets are hidden first: half of one would not be recognised.
        hidden = hide_secrets(text[:_SEARCHED])
        most = min(limits.MAX_STEP_TEXT_BYTES, self._bytes_left)
        if len(text) <= _SEARCHED and (size := _size(hidden)) <= most:
            self._bytes_left -= size
            return hidden
        cut = hidden.encode()[:most].decode(errors="ignore")
        while cut and _size(cut) > most:
            cut = cut[: len(cut) * most // (_size(cut) + 1)]
        cut = _LAST_WORD.sub("", cut)
        left_out = max(len(text.encode()) - len(cut.encode()), 1)
        self.left_out += left_out
        self._bytes_left -= _size(cut)
        return f"{cut}… ({left_out:,} more bytes)" if cut else None


def _size(text: str) -> int:
    """Return the bytes of a text in JSON."""
    return len(orjson.dumps(text)) - 2
