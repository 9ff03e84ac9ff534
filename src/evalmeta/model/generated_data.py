"""What an agent did and said in one turn: the generatedData of the Testing API."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.json_value import JsonObject, JsonValue


def _no_input() -> Mapping[str, JsonValue]:
    return {}


@dataclass(frozen=True, slots=True)
class Action:
    """One action the agent took; the latency is in milliseconds."""

    name: str
    input: JsonObject = field(default_factory=_no_input)
    output: JsonValue = None
    latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """What an answer cost in a language model's tokens; None is unknown, which is not 0."""

    input: int | None = None
    output: int | None = None

    @property
    def total(self) -> int | None:
        """Gives input and output together; None when either is unknown."""
        return None if self.input is None or self.output is None else self.input + self.output


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that the agent has retrieved for its answer.

    Attributes:
        uri: the document that it comes from.
        content: its text; None when it was not told.
    """

    uri: str
    content: str | None = None


@dataclass(frozen=True, slots=True)
class GeneratedData:
    """What came back from the agent.

    Attributes:
        outcome: the answer's text.
        topic: the API name of the topic the agent settled on, if it names one.
        actions: the actions taken, in order.
        latency_ms: how long the answer took, in milliseconds; the runner measures it
            when the subject does not say.
        session_id: the agent's own name for the conversation.
        tokens: what the answer cost.
        trace: what the agent tells of its way to the answer, as JSON; kept as it came.
        retrieved: the passages of documents that the answer was made from; None when it was not told.
    """

    outcome: str
    topic: str | None = None
    actions: tuple[Action, ...] = ()
    latency_ms: float | None = None
    session_id: str | None = None
    tokens: Tokens | None = None
    trace: JsonValue = None
    retrieved: tuple[Passage, ...] | None = None


def invoked_actions(generated: GeneratedData) -> JsonValue:
    """Gives the calls as the Testing API nests them: one inner list for each step of the planner.

    Subjects report one step, so there is one inner list, or none when nothing was called.
    """
    return [[_invoked(action) for action in generated.actions]] if generated.actions else []


def reference_root(generated: GeneratedData) -> JsonObject:
    """Gives the object that `$` stands for in a reference: `{"generatedData": {...}}`."""
    return {
        "generatedData": {
            "type": "AGENT",
            "topic": generated.topic,
            "actionsSequence": [action.name for action in generated.actions],
            "invokedActions": invoked_actions(generated),
            "outcome": generated.outcome,
            "generatedResponse": generated.outcome,
            "sessionId": generated.session_id,
        }
    }


def _invoked(action: Action) -> JsonObject:
    output = {} if action.output is None else action.output
    call: dict[str, JsonValue] = {"function": {"name": action.name, "input": action.input, "output": output}}
    if action.latency_ms is not None:
        call["executionLatency"] = action.latency_ms
    return call
