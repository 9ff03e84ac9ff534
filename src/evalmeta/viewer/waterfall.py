"""A case as a waterfall: its turns, and inside them the calls and steps of the agent, on one scale of time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.model.aggregation import worst
from evalmeta.model.expectations import canonical_name
from evalmeta.model.expected_calls import MissingCall, missing_calls
from evalmeta.model.generated_data import Tokens
from evalmeta.model.run import CaseResult, Verdict
from evalmeta.model.steps import Step, StepKind, step_tree
from evalmeta.report.details import CALLS, exchanges, results_of
from evalmeta.report.steps import not_kept_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.report.details import Exchange


MISSING: Final = "missing"
REST: Final = "rest"
_TOOLS: Final = frozenset({StepKind.TOOL, StepKind.RETRIEVAL})
_SECOND: Final = 1_000
# A bar that is narrower cannot be seen.
_LEAST_PERCENT: Final = 0.4
_MISSING_PERCENT: Final = 4.0

Span = tuple[float, float]
"""The start and the end of something in milliseconds after the start of the case."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a waterfall below its turn.

    Attributes:
        id: where the page shows its input and output; empty if it has none.
        kind: the kind of the step, MISSING for an expected call that was not made, or REST for the time of the agent
            outside its calls.
        level: how deep it is inside the turn, from 1.
        spans: when it ran; empty if that is unknown.
        duration_ms: how long it took; of a missing call, how long it took when it was last made; None if unknown.
        step: the step; None for missing calls and the rest.
        action: the number of the action of the answer that it is, from 0.
    """

    id: str
    kind: str
    name: str
    level: int
    spans: tuple[Span, ...] = ()
    duration_ms: float | None = None
    step: Step | None = None
    action: int | None = None


class Turn(NamedTuple):
    """A turn with its rows; `left_out` rows are not drawn, and `not_kept` says what the answer's trace lacks."""

    exchange: Exchange
    verdict: Verdict | None
    is_open: bool
    span: Span
    duration_ms: float | None
    rows: tuple[Row, ...]
    left_out: int = 0
    not_kept: str = ""


class Share(NamedTuple):
    """A share of the time of all turns, 0 to 1."""

    name: str
    share: float


class Waterfall(NamedTuple):
    """The turns of a case on one scale.

    Attributes:
        total_ms: the time of all turns.
        shares: which part of it models, tools and the agent itself took; empty if that is unknown.
        tokens: the tokens of all answers; None if no answer has any.
        has_order_only: whether calls are drawn one after another because nobody knows when they began.
    """

    turns: tuple[Turn, ...]
    total_ms: float
    shares: tuple[Share, ...]
    tokens: Tokens | None
    has_order_only: bool

    @property
    def has_open(self) -> bool:
        """Return whether any turn is open: it did not pass, or it is the only one."""
        return any(turn.is_open for turn in self.turns)

    def bars(self, spans: Iterable[Span], *, least: float = _LEAST_PERCENT) -> list[tuple[str, str]]:
        """Return where bars begin and how wide they are, in percent of the whole."""
        whole = self.total_ms or 1.0
        bars = []
        for start, end in spans:
            width = min(max(100 * (end - start) / whole, least), 100.0)
            bars.append((f"{min(100 * start / whole, 100 - width):.2f}%", f"{width:.2f}%"))
        return bars

    def missing_bars(self, row: Row) -> list[tuple[str, str]]:
        """Return the bar of a call that was not made, which can be seen if it never took any time."""
        return self.bars(row.spans, least=_MISSING_PERCENT)


def waterfall(case: CaseResult, earlier: Sequence[CaseResult] = ()) -> Waterfall:
    """Return the waterfall of a case; `earlier` results of it, the newest first, say how long missing calls took."""
    turns, start = list[Turn](), 0.0
    for exchange in exchanges(case):
        turn = _turn(case, exchange, start, earlier)
        turns.append(turn)
        start = turn.span[1]
    if len(turns) == 1:
        turns = [turns[0]._replace(is_open=True)]
    steps = [row for turn in turns for row in turn.rows if row.step]
    has_order_only = len(steps) > 1 and any(row.spans and row.step and row.step.start_ms is None for row in steps)
    return Waterfall(tuple(turns), start, tuple(_shares(turns)), _tokens(turns), has_order_only)


def _tokens(turns: Sequence[Turn]) -> Tokens | None:
    """Return the sum of the tokens of all answers; a number is None if one of them lacks it."""
    known = [turn.exchange.generated.tokens for turn in turns if turn.exchange.generated]
    if not any(known):
        return None
    return Tokens(
        _sum(tokens.input if tokens else None for tokens in known),
        _sum(tokens.output if tokens else None for tokens in known),
    )


def _sum(numbers: Iterable[int | None]) -> int | None:
    total = 0
    for number in numbers:
        if number is None:
            return None
        total += number
    return total


def _turn(case: CaseResult, exchange: Exchange, start: float, earlier: Sequence[CaseResult]) -> Turn:
    known, is_last = exchange.generated or exchange.unanswered, exchange.turn == len(case.earlier) + 1
    all_rows = list(_step_rows(_steps_of(known), exchange.turn, start)) if known else []
    duration = known.latency_ms if known else None
    if duration is None and is_last:
        # The judging of the answer is part of this time, but nothing else is known.
        duration = max(0.0, (case.ended - case.started) * _SECOND - start)
    end = max([start + (duration or 0.0), *(end for row in all_rows for _, end in row.spans)])
    rows, left_out = all_rows[: limits.VIEW_STEPS], len(all_rows) - limits.VIEW_STEPS
    if rest := _rest_row(all_rows, (start, end)):
        rows.append(rest)
    rows = _with_missing(rows, case, exchange, end, earlier)
    verdict = _verdict(case, exchange, is_last=is_last)
    is_open = verdict not in {None, Verdict.PASS}
    tree = step_tree(known) if known else None
    not_kept = not_kept_text(tree) if tree else ""
    return Turn(exchange, verdict, is_open, (start, end), duration, tuple(rows), max(left_out, 0), not_kept)


def _verdict(case: CaseResult, exchange: Exchange, *, is_last: bool) -> Verdict | None:
    if is_last and case.error:
        return Verdict.ERROR
    results = [result for result in results_of(exchange, case, case.results) if not result.is_measured]
    return worst(result.verdict for result in results) if results else None


def _steps_of(known: GeneratedData) -> tuple[Step, ...]:
    """Return the steps of an answer; actions that no step names follow them."""
    tree, actions = step_tree(known), known.actions or ()
    steps = tree.steps if tree else ()
    named = set(_actions_in(steps))
    others = (
        Step(StepKind.TOOL, action.name, None, action.latency_ms, action.input or None, action.output, action.error)
        for action in actions
    )
    return (*steps, *(replace(step, action=number) for number, step in enumerate(others) if number not in named))


def _actions_in(steps: Iterable[Step]) -> Iterator[int]:
    for step in steps:
        if step.action is not None:
            yield step.action
        yield from _actions_in(step.steps)


def _step_rows(steps: Sequence[Step], turn: int, begin: float) -> Iterator[Row]:
    """Yield the rows of the steps of a turn; a step without a start begins when the one before it ends."""
    placed = list[tuple[Step, int, float]]()

    def place(inner: Sequence[Step], level: int, cursor: float) -> None:
        for step in inner:
            at = cursor if step.start_ms is None else begin + max(step.start_ms, 0.0)
            placed.append((step, level, at))
            place(step.steps, level + 1, at)
            cursor = at + (step.duration_ms or 0.0)

    place(steps, 1, begin)
    for number, (step, level, at) in enumerate(placed, 1):
        spans = () if step.duration_ms is None else ((at, at + step.duration_ms),)
        yield Row(f"turn-{turn}-step-{number}", step.kind, step.name, level, spans, step.duration_ms, step, step.action)


def _rest_row(rows: Sequence[Row], whole: Span) -> Row | None:
    """Return the time of a turn outside the calls of models and tools; None if nothing is known of them."""
    calls = [row for row in rows if row.kind != StepKind.AGENT and row.spans]
    gaps = tuple(_without(whole, _union(span for row in calls for span in row.spans)))
    duration = _length(gaps)
    if not calls or duration < 1:
        return None
    return Row("", REST, "the agent itself", 1, gaps, duration)


def _with_missing(
    rows: list[Row], case: CaseResult, exchange: Exchange, end: float, earlier: Sequence[CaseResult]
) -> list[Row]:
    """Return the rows with a row for each expected call that was not made, before the call that followed it."""
    if not exchange.generated or exchange.generated.actions is None:
        return rows
    # Several expectations may miss the same call.
    missing = Counter[MissingCall]()
    for result in results_of(exchange, case, case.results):
        if canonical_name(result.name) in CALLS and result.verdict is Verdict.FAILURE:
            missing |= Counter(missing_calls(result.expected, result.actual, result.explanation))
    durations = _earlier_durations(earlier, exchange.turn) if missing else {}
    last = len(rows) - bool(rows and rows[-1].kind == REST)
    added: dict[int, list[Row]] = {}
    for name, after in missing.elements():
        place = next((at for at, row in enumerate(rows) if row.action is not None and row.action >= after), last)
        follower = rows[place] if place < last else None
        before = [row.spans[-1][1] for row in rows if row.action is not None and row.action < after and row.spans]
        start = follower.spans[0][0] if follower and follower.spans else max(before, default=end)
        duration = durations.get(name)
        row = Row("", MISSING, name, follower.level if follower else 1, ((start, start + (duration or 0)),), duration)
        added.setdefault(place, []).append(row)
    return [row for at, known in enumerate([*rows, None]) for row in (*added.get(at, ()), known) if row]


def _earlier_durations(earlier: Sequence[CaseResult], turn: int) -> Mapping[str, float]:
    """Return how long calls took when they were last made in the same turn."""
    durations = dict[str, float]()
    for case in earlier:
        turns = exchanges(case)
        generated = turns[turn - 1].generated if turn <= len(turns) else None
        for action in (generated and generated.actions) or ():
            if action.latency_ms is not None:
                durations.setdefault(action.name, action.latency_ms)
    return durations


def _shares(turns: Sequence[Turn]) -> Iterator[Share]:
    """Yield which part of the time models and tools took; nothing if no call says how long it took."""
    spans: dict[str, list[Span]] = {"model": [], "tools": [], "the agent itself": []}
    for turn in turns:
        tools = _union(span for row in turn.rows if row.kind in _TOOLS for span in row.spans)
        models = _union(span for row in turn.rows if row.kind == StepKind.MODEL for span in row.spans)
        spans["tools"] += tools
        spans["model"] += [part for model in models for part in _without(model, tools)]
        if turn.exchange.generated and turn.exchange.generated.actions is not None:
            spans["the agent itself"] += _without(turn.span, _union([*tools, *models]))
    total = _length(turn.span for turn in turns)
    if total and (spans["tools"] or spans["model"]):
        yield from (Share(name, _length(parts) / total) for name, parts in spans.items() if parts)


def _union(spans: Iterable[Span]) -> list[Span]:
    """Return spans that do not overlap, in order, which cover the same time."""
    joined = list[Span]()
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def _without(whole: Span, covered: Sequence[Span]) -> Iterator[Span]:
    """Yield the parts of a span that ordered spans do not cover."""
    start, end = whole
    ends = accumulate((span_end for _, span_end in covered), max, initial=start)
    starts = [*(span_start for span_start, _ in covered), end]
    for left, right in zip(ends, starts, strict=True):
        if min(right, end) > max(left, start):
            yield max(left, start), min(right, end)


def _length(spans: Iterable[Span]) -> float:
    return sum(end - start for start, end in spans)
