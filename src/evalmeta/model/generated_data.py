"""The answer and the actions of an agent in one turn: the generatedData of the Testing API."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalmeta.model.json_value import read_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Action:
    """One action of the agent; the latency is in milliseconds, the error is why it failed.

    `review` is the place in a file of outputs that were proposed, and that a person must review; empty for others.
    """

    name: str
    input: JsonObject = field(default_factory=dict)
    output: JsonValue = None
    latency_ms: float | None = None
    error: str | None = None
    review: str = ""

    @property
    def has_details(self) -> bool:
        """Return whether the agent reports more than the name."""
        return bool(self.input) or self.output is not None or self.latency_ms is not None or self.error is not None


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of a language model that an answer used; None means unknown."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None  # how many tokens of the input its provider had cached
    model: str = ""  # the model; empty for the one in the agent's settings

    @property
    def total(self) -> int | None:
        """Return the sum of input and output; None if either is unknown."""
        return None if self.input is None or self.output is None else self.input + self.output


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a document that the agent retrieved for its answer."""

    uri: str  # the document
    content: str | None = None  # the text; None if it was not reported


@dataclass(frozen=True, slots=True)
class GeneratedData:
    """The answer of the agent with what is known about it.

    Attributes:
        outcome: the answer's text.
        topic: the API name of the chosen topic; empty if the agent chose none, None if it was not reported.
        actions: the actions, in order; empty if the agent took none, None if they were not reported.
        latency_ms: the time until the answer in milliseconds; the runner measures it if the subject does not.
        session_id: the agent's id of the conversation.
        tokens: the tokens that the answer used.
        trace: the agent's steps (`evalmeta.model.steps`), or its own trace as unchanged JSON.
        retrieved: the passages that the answer is based on; None if they were not reported.
        is_json: whether the agent returned a value that is not text; the outcome is its JSON text.
        first_token_ms: the time until the first part of a streamed answer in milliseconds; None if it was not streamed.
        state: the state of the agent's session after the turn; empty if it has none, None if it was not reported.
        handoffs: the agents to which the conversation went in this turn; empty if it stayed, None if not reported.
        traceparent: the header of W3C Trace Context that the agent got with the turn; None if its traces were not read.
    """

    outcome: str
    topic: str | None = None
    actions: tuple[Action, ...] | None = None
    latency_ms: float | None = None
    session_id: str | None = None
    tokens: Tokens | None = None
    trace: JsonValue = None
    retrieved: tuple[Passage, ...] | None = None
    is_json: bool = False
    first_token_ms: float | None = None
    state: JsonObject | None = None
    handoffs: tuple[str, ...] | None = None
    traceparent: str | None = None

    @property
    def value(self) -> JsonValue:
        """Return the answer as the agent returned it: its text, or the value whose JSON text the outcome is."""
        if not self.is_json:
            return self.outcome
        try:
            return read_json(self.outcome)
        except ValueError:
            # What was redacted may have been a part of the JSON.
            return self.outcome


def actions_json(actions: Sequence[Action] | None, *, with_latencies: bool = False) -> list[JsonValue] | None:
    """Return actions as answers of agents have them, each with an error if it failed; unknown actions are null."""
    if actions is None:
        return None
    return [
        {
            "name": action.name,
            "input": action.input,
            "output": action.output,
            **({"latency_ms": action.latency_ms} if with_latencies else {}),
            **({} if action.error is None else {"error": action.error}),
        }
        for action in actions
    ]


def invoked_actions(actions: Sequence[Action]) -> JsonValue:
    """Return the calls as the Testing API nests them: one inner list for each step of the planner.

    Subjects report one step, so there is one inner list, or none without calls.
    """
    calls = []
    for action in actions:
        output = {} if action.output is None else action.output
        call: dict[str, JsonValue] = {"function": {"name": action.name, "input": action.input, "output": output}}
        if action.latency_ms is not None:
            call["executionLatency"] = action.latency_ms
        if action.error is not None:
            call["error"] = action.error
        if action.review:
            call["review"] = action.review
        calls.append(call)
    return [calls] if calls else []


def reference_root(generated: GeneratedData) -> JsonObject:
    """Return the object that is `$` in a reference: `{"generatedData": {...}}`; unknown actions are null."""
    actions = generated.actions
    return {
        "generatedData": {
            "type": "AGENT",
            "topic": generated.topic,
            "actionsSequence": None if actions is None else [action.name for action in actions],
            "invokedActions": None if actions is None else invoked_actions(actions),
            "outcome": generated.outcome,
            "generatedResponse": generated.outcome,
            "sessionId": generated.session_id,
        }
    }
