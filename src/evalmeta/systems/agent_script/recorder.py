"""The steps of a turn as they happen: a tree of subagents with the calls of models and tools in them."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.model.generated_data import Tokens
from evalmeta.model.steps import Step, StepKind, StepTree
from evalmeta.systems.agent_script.state import changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.model.json_value import JsonValue

_TEXT_CHARS: Final = limits.MAX_STEP_TEXT_BYTES // 4
_MILLISECONDS: Final = 1000


@dataclass(slots=True)
class Recorder:
    """The steps of one turn so far, and the tokens of its models."""

    begun: float = field(default_factory=time.perf_counter)
    tokens: Tokens | None = None
    left_out: int = 0
    _count: int = 0
    _around: list[list[Step]] = field(default_factory=lambda: [[]])

    def now(self) -> float:
        """Return the milliseconds since the start of the turn."""
        return round((time.perf_counter() - self.begun) * _MILLISECONDS, 3)

    @contextmanager
    def subagent(self, name: str, variables: Mapping[str, JsonValue]) -> Iterator[None]:
        """Record what happens inside as the steps of a subagent, whose output is the variables that it changed."""
        start, before = self.now(), dict(variables)
        self._around.append([])
        try:
            yield
        finally:
            steps = tuple(self._around.pop())
            changed = changes(before, variables) or None
            duration = round(self.now() - start, 3)
            self._add(Step(StepKind.AGENT, name, start, duration, output=changed, steps=steps))

    def model(self, name: str, start: float, *, asked: str, chosen: JsonValue, tokens: Tokens | None) -> None:
        """Record a choice of the model."""
        self.tokens = _sum(self.tokens, tokens)
        shown = chosen[:_TEXT_CHARS] if isinstance(chosen, str) else chosen
        duration = round(self.now() - start, 3)
        self._add(Step(StepKind.MODEL, name, start, duration, asked[:_TEXT_CHARS], shown, tokens=tokens))

    def tool(
        self,
        name: str,
        start: float,
        *,
        inputs: JsonValue = None,
        output: JsonValue = None,
        error: str | None = None,
        action: int | None = None,
    ) -> None:
        """Record a call; `action` is the number of the answer's action, whose inputs and outputs the step shows."""
        duration = round(self.now() - start, 3)
        self._add(Step(StepKind.TOOL, name, start, duration, inputs, output, error, action=action))

    def tree(self) -> StepTree:
        """Return the recorded steps."""
        return StepTree(tuple(self._around[0]), self.left_out)

    def _add(self, step: Step) -> None:
        if self._count >= limits.MAX_STEPS or len(self._around) > limits.MAX_STEP_DEPTH:
            self.left_out += 1
            return
        self._count += 1
        self._around[-1].append(step)


def _sum(first: Tokens | None, second: Tokens | None) -> Tokens | None:
    if first is None or second is None:
        return first or second
    return Tokens(
        _added(first.input, second.input),
        _added(first.output, second.output),
        _added(first.cached, second.cached),
        first.model or second.model,
    )


def _added(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second
