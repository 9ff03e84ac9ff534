"""One turn of an agent, read from its trace: one trace is one turn.

Each value comes from the first rule that yields it, and `rules` says from which. What no rule yields is unknown, which
is not the same as empty; a finding says what would bring it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.generated_data import Action, GeneratedData, Passage, Tokens
from evalmeta.model.steps import StepKind, StepTree, tree_json
from evalmeta.traces import conventions as says
from evalmeta.traces.instrumentations import ANY_CONTENT_SETTING, CONTENT_SETTINGS
from evalmeta.traces.messages import Call, Message, is_cut
from evalmeta.traces.steps import TracedAction, read_steps
from evalmeta.traces.turn_spans import TurnSpans, top_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.json_value import JsonValue
    from evalmeta.traces.spans import Span, Trace

# What the root says in these may be the whole conversation, so the last call of a model is asked first.
_LATE_RULES: Final = frozenset({"output.value", "traceloop.entity.output"})
_FUTURE_NS: Final = 3_600 * 10**9


class TracedTurn(NamedTuple):
    """What a trace says of one turn; None means unknown.

    Attributes:
        utterance: what the user said.
        answer: what the agent answered.
        topic: the agent that gave the answer.
        agents: the agents whose models were called, in order, each change once.
        session: the conversation; empty if the trace names none.
        started_ns: its begin in nanoseconds since 1970.
        error: why the turn as a whole failed; None if it did not.
        rules: the rule that gave each value, by the value's name.
        findings: what is damaged or missing, and what to do about it.
        is_whole: whether the span of the agent has arrived with those below it, as far as its trace says.
        exported: the whole answer, in a test run that evalmeta exported; None for other traces, as is `case`.
        case: the number of the case.
        run: the test and the run; empty for other traces.
        steps: what agents, models and tools did; None in exported runs. It names `actions` by number, so an answer gets
            both or neither.
    """

    trace_id: str
    utterance: str | None
    answer: str | None
    topic: str | None
    actions: tuple[Action, ...] | None
    agents: tuple[str, ...]
    tokens: Tokens | None
    retrieved: tuple[Passage, ...] | None
    latency_ms: float | None
    session: str
    started_ns: int
    error: str | None
    rules: Mapping[str, str]
    findings: tuple[str, ...]
    is_whole: bool = True
    exported: GeneratedData | None = None
    case: int | None = None
    run: str = ""
    steps: StepTree | None = None

    def generated(self) -> GeneratedData:
        """Return the turn as the answer of an agent."""
        if self.exported:
            return self.exported
        return GeneratedData(
            self.answer or "",
            topic=self.topic,
            actions=self.actions,
            latency_ms=self.latency_ms,
            session_id=self.session or None,
            tokens=self.tokens,
            trace=tree_json(self.steps) if self.steps else None,
            retrieved=self.retrieved,
        )


def read_turn(trace: Trace) -> TracedTurn | None:
    """Return the turn in a trace; None if it calls neither an agent nor a model."""
    tops = top_spans(trace)
    if not tops:
        return None
    steps = TurnSpans(trace, tops)
    rules: dict[str, str] = {}
    actions = _actions(steps, rules)
    turn = TracedTurn(
        trace.trace_id,
        _utterance(steps, rules),
        _answer(steps, rules),
        _topic(steps, rules),
        None if actions is None else tuple(traced.action for traced in actions),
        steps.agents,
        _tokens(steps, rules),
        _retrieved(steps, rules),
        _latency(tops),
        next((session for span in steps.all if (session := says.session_of(span))), ""),
        min(span.start_ns for span in tops),
        next((error for span in reversed(tops) if (error := says.error_of(span)) is not None), None),
        rules,
        (),
        steps=read_steps(steps, actions or ()),
    )
    orphans = _orphans(trace, tops)
    return turn._replace(findings=(*_missing_parents(orphans), *_findings(turn, steps)), is_whole=not orphans)


def _orphans(trace: Trace, tops: Sequence[Span]) -> list[Span]:
    """Return the calls of models and tools whose agent has not ended, so that its span has not arrived.

    The parent of an agent's span may be that of a caller, which exports its spans elsewhere.
    """
    if any(says.kind_of(span) is StepKind.AGENT and not span.parent_id for span in tops):
        return []
    kinds = {StepKind.MODEL, StepKind.TOOL, StepKind.RETRIEVAL}
    return [root for root in trace.roots if root.parent_id and says.kind_of(root) in kinds]


def _missing_parents(orphans: Sequence[Span]) -> Iterator[str]:
    if orphans:
        names = f"the span {orphans[0].name!r} belongs to" if len(orphans) == 1 else f"{len(orphans)} spans belong to"
        yield f"the trace is incomplete: the span that {names} has not arrived; wait until the agent has ended"


def _last(messages: Iterable[Message], role: str) -> str:
    # Some frameworks end the text that they print with a line end.
    texts = [message.text.rstrip("\n") for message in messages if message.role == role and message.text]
    return texts[-1] if texts else ""


def _utterance(steps: TurnSpans, rules: dict[str, str]) -> str | None:
    for where, spans in (("first model call", steps.models[:1]), ("agent", steps.tops[:1])):
        for span in spans:
            rule, messages = steps.messages_to(span)
            if text := _last(messages, "user"):
                rules["utterance"] = f"{rule} of the {where}"
                return text
    return None


def _answer(steps: TurnSpans, rules: dict[str, str]) -> str | None:
    top = steps.tops[-1]
    if text := says.final_result(top):
        rules["answer"] = "final_result of the agent"
        return text
    rule, messages = steps.messages_from(top)
    of_root = (f"{rule} of the agent", _last(messages, "assistant"))
    last = [steps.messages_from(span) for span in steps.models[-1:]]
    of_model = [(f"{name} of the last model call", _last(found, "assistant")) for name, found in last]
    order = [*of_model, of_root] if rule in _LATE_RULES else [of_root, *of_model]
    for name, text in order:
        if text:
            rules["answer"] = name
            return text
    return None


def _topic(steps: TurnSpans, rules: dict[str, str]) -> str | None:
    rule, name = steps.agent_of(steps.models[-1] if steps.models else steps.tops[-1])
    if not name:
        return None
    rules["topic"] = f"{rule} of the last model call" if steps.models else rule
    return name


class _Called(NamedTuple):
    model: Span
    call: Call


def _actions(steps: TurnSpans, rules: dict[str, str]) -> list[TracedAction] | None:
    calls, known = _calls(steps)
    if not (known or steps.tools):
        return None
    spans = _joined([called.call for called in calls], steps.tools)
    joined = {span.span_id for span in spans if span}
    made = [
        TracedAction(called.model.start_ns, _action(called.call, span), span, called.model)
        for called, span in zip(calls, spans, strict=True)
        if not says.is_handoff(called.call.name)
    ]
    made += [
        TracedAction(span.start_ns, _action(None, span), span, None)
        for span in steps.tools
        if span.span_id not in joined and not says.is_handoff(says.tool_of(span))
    ]
    rules["actions"] = "model calls" if calls else "tool spans"
    return sorted(made, key=lambda action: action.time_ns)


def _calls(steps: TurnSpans) -> tuple[list[_Called], bool]:
    """Return the calls of tools that models asked for, and whether any model's answer is known."""
    calls: list[_Called] = []
    known = False
    for span in steps.models:
        _, messages = steps.messages_from(span)
        known = known or bool(messages)
        calls += [_Called(span, call) for message in messages for call in message.calls]
    return calls, known


def _joined(calls: Sequence[Call], tools: Sequence[Span]) -> list[Span | None]:
    """Return the span of each call: by the call's id, and those that are left by name, in order.

    Some frameworks give a call another id when they execute it.
    """
    left = list(tools)
    spans: list[Span | None] = []
    for call in calls:
        span = next((span for span in left if call.call_id and says.call_id_of(span) == call.call_id), None)
        spans.append(span)
        if span is not None:
            left.remove(span)
    for place, call in enumerate(calls):
        if spans[place] is None and (span := next((span for span in left if says.tool_of(span) == call.name), None)):
            spans[place] = span
            left.remove(span)
    return spans


def _action(call: Call | None, span: Span | None) -> Action:
    arguments: JsonValue = call.arguments if call else None
    if not isinstance(arguments, dict):
        arguments = says.arguments_of(span) if span else None
    name = call.name if call else says.tool_of(span) if span else ""
    output = says.result_of(span) if span else None
    if not isinstance(arguments, dict) and output is None:
        # With a latency or an error, the action would say that it had no arguments.
        return Action(name)
    known = arguments if isinstance(arguments, dict) else {}
    return Action(name, known, output, span.latency_ms if span else None, says.error_of(span) if span else None)


def _tokens(steps: TurnSpans, rules: dict[str, str]) -> Tokens | None:
    used = [says.tokens_of(span) for span in steps.models]
    known = [tokens for tokens in used if tokens]
    if known and len(known) == len(used):
        rules["tokens"] = "sum of the model calls"
        return _sum(known)
    for top in steps.tops:
        if tokens := says.tokens_of(top):
            rules["tokens"] = "usage of the agent"
            return tokens
    return None


def _sum(parts: Sequence[Tokens]) -> Tokens:
    models = {part.model for part in parts}
    return Tokens(
        _added(part.input for part in parts),
        _added(part.output for part in parts),
        _added(part.cached for part in parts),
        models.pop() if len(models) == 1 else "",
    )


def _added(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def _retrieved(steps: TurnSpans, rules: dict[str, str]) -> tuple[Passage, ...] | None:
    if not steps.retrievals:
        return None
    rules["retrieved"] = "retrieval spans"
    return tuple(passage for span in steps.retrievals for passage in says.passages_of(span))


def _latency(tops: Sequence[Span]) -> float | None:
    """Return the time from the begin of the first agent to the end of the last one."""
    return tops[0]._replace(end_ns=max(span.end_ns for span in tops)).latency_ms


def _findings(turn: TracedTurn, steps: TurnSpans) -> Iterator[str]:
    if len(steps.tops) > 1:
        names = ", ".join(span.name for span in steps.tops)
        yield f"the trace has {len(steps.tops)} agents side by side ({names}): the answer is that of the last one"
    for span in steps.tops:
        if not span.end_ns:
            yield f"the span {span.name!r} has not ended"
    cut = [(span.name, key) for span in steps.all for key, value in span.attributes.items() if is_cut(value)]
    if cut:
        name, key = cut[0]
        more = f" (and {len(cut) - 1} more)" if len(cut) > 1 else ""
        yield f"{key} of {name!r} was cut{more}: raise or remove OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT"
    if any(span.start_ns > time.time_ns() + _FUTURE_NS for span in steps.all):
        yield "the trace begins in the future: the clock of the agent's machine is wrong"
    missing = [name for name in ("utterance", "answer") if getattr(turn, name) is None]
    if missing and turn.error is None and not cut:
        yield f"the trace has no content ({' and '.join(missing)} unknown): {_setting(steps)}"


def _setting(steps: TurnSpans) -> str:
    scopes = {span.scope for span in steps.all}
    return next((setting for scope, setting in CONTENT_SETTINGS.items() if scope in scopes), ANY_CONTENT_SETTING)
