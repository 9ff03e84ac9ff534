"""The steps of an agent in one turn: a tree, which an answer has as its `trace`.

A step that calls a tool names its action by its number, from 0. The name, the arguments, the result and the error of
such a call are those of the action alone, so that the tree and the actions cannot disagree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from evalmeta.model.generated_data import Action, Tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue


class StepKind(StrEnum):
    """What a step of an agent is; others are in no tree."""

    AGENT = "agent"
    MODEL = "model"
    TOOL = "tool"
    RETRIEVAL = "retrieval"
    OTHER = "other"


_KINDS: Final = {kind.value: kind for kind in StepKind if kind is not StepKind.OTHER}
_KEYS: Final = frozenset(
    ("kind", "name", "start_ms", "duration_ms", "input", "output", "error", "tokens", "action", "steps")
)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of an agent; None means unknown.

    Attributes:
        kind: what it is.
        name: the agent, the model, the tool, or what was searched.
        start_ms: its start in milliseconds after the start of the turn.
        duration_ms: how long it took in milliseconds.
        input: what it received; the arguments of a tool.
        output: what it returned.
        error: why it failed.
        tokens: the tokens that a model used.
        action: the number of the answer's action that a tool carried out, from 0; None for a handoff.
        steps: the steps inside it, in the order of their starts.
    """

    kind: StepKind
    name: str = ""
    start_ms: float | None = None
    duration_ms: float | None = None
    input: JsonValue = None
    output: JsonValue = None
    error: str | None = None
    tokens: Tokens | None = None
    action: int | None = None
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class StepTree:
    """The outermost steps of a turn, and how many steps and bytes of texts were left out because of the limits."""

    steps: tuple[Step, ...]
    left_out_steps: int = 0
    left_out_bytes: int = 0


def tree_json(tree: StepTree) -> JsonObject:
    """Return a tree as the `trace` of an answer; what is unknown is absent."""
    left_out = {"steps": tree.left_out_steps, "bytes": tree.left_out_bytes}
    return {
        "steps": [_step_json(step) for step in tree.steps],
        **({"left_out": left_out} if any(left_out.values()) else {}),
    }


def _step_json(step: Step) -> JsonObject:
    tokens = step.tokens
    values: dict[str, JsonValue] = {
        "kind": step.kind,
        "name": step.name or None,
        "start_ms": step.start_ms,
        "duration_ms": step.duration_ms,
        "input": step.input,
        "output": step.output,
        "error": step.error,
        "tokens": None if tokens is None else _tokens_json(tokens),
        "action": step.action,
        "steps": [_step_json(inner) for inner in step.steps] or None,
    }
    return {key: value for key, value in values.items() if value is not None}


def _tokens_json(tokens: Tokens) -> JsonObject:
    cached: JsonObject = {} if tokens.cached is None else {"cached": tokens.cached}
    return {"input": tokens.input, "output": tokens.output, **cached}


def step_tree(generated: GeneratedData) -> StepTree | None:
    """Return the steps in the trace of an answer; None if it has no trace, or one in another form."""
    source = generated.trace
    if not isinstance(source, dict) or not source.keys() <= {"steps", "left_out"}:
        return None
    try:
        left_out = _object(source.get("left_out", {}))
        return StepTree(
            _steps(source.get("steps"), generated.actions or ()),
            _count(left_out, "steps") or 0,
            _count(left_out, "bytes") or 0,
        )
    except _OtherFormError:
        return None


def trace_with_actions(generated: GeneratedData) -> JsonValue:
    """Return the trace of an answer; in a tree, steps that name an action also have what the action has."""
    if generated.trace is None:
        return None
    tree = step_tree(generated)
    return generated.trace if tree is None else tree_json(tree)


class _OtherFormError(Exception):
    """The trace is not a tree of steps."""


def _steps(source: JsonValue, actions: Sequence[Action]) -> tuple[Step, ...]:
    # An answer's trace is at most as deep as JSON may be.
    if not isinstance(source, list):
        raise _OtherFormError
    return tuple(_step(_object(step), actions) for step in source)


def _step(source: JsonObject, actions: Sequence[Action]) -> Step:
    kind = _KINDS.get(_text(source, "kind") or "")
    if kind is None or not source.keys() <= _KEYS:
        raise _OtherFormError
    tokens = source.get("tokens")
    step = Step(
        kind,
        _text(source, "name") or "",
        _number(source, "start_ms"),
        _number(source, "duration_ms"),
        source.get("input"),
        source.get("output"),
        _text(source, "error"),
        None if tokens is None else _tokens(_object(tokens)),
        _count(source, "action"),
        _steps(source.get("steps", []), actions),
    )
    if step.action is None or step.action >= len(actions):
        return step
    action = actions[step.action]
    return replace(
        step,
        name=action.name,
        input=action.input or None,
        output=action.output,
        duration_ms=step.duration_ms if action.latency_ms is None else action.latency_ms,
        error=step.error if action.error is None else action.error,
    )


def _tokens(source: JsonObject) -> Tokens:
    return Tokens(_count(source, "input"), _count(source, "output"), _count(source, "cached"))


def _object(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise _OtherFormError
    return value


def _text(source: JsonObject, key: str) -> str | None:
    value = source.get(key)
    if value is not None and not isinstance(value, str):
        raise _OtherFormError
    return value


def _number(source: JsonObject, key: str) -> float | None:
    value = source.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise _OtherFormError
    return value


def _count(source: JsonObject, key: str) -> int | None:
    value = source.get(key)
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise _OtherFormError
