"""The steps of a turn as a plan of the Agent API: what `sf agent trace` and the adapter agentforce read.

Sources: @salesforce/agents, `src/types.ts` (PlannerResponse). Salesforce's own plans of scripts also have
`TransitionStep` and `VariableUpdateStep`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.model.agent_parts import HUMAN
from evalmeta.model.steps import Step, StepKind, step_tree
from evalmeta.protocol.agent_api import REVIEW

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.agent_script.nodes import Script
    from evalmeta.model.generated_data import Action, GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue

_TRANSITION: Final = "transition"
_ESCALATE: Final = "escalate"


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A turn that an agent has answered, and when it began, in milliseconds since the epoch."""

    plan_id: str
    session_id: str
    utterance: str
    generated: GeneratedData
    begun_ms: int


def is_handed_off(generated: GeneratedData) -> bool:
    """Return whether a person has the conversation after an answer."""
    return HUMAN in (generated.handoffs or ())


def write_plan(turn: TurnRecord, script: Script) -> JsonObject:
    """Return the plan of a turn."""
    generated = turn.generated
    tree = step_tree(generated)
    steps = _Steps(
        turn.begun_ms, generated.actions or (), {subagent.name: subagent.description for subagent in script.subagents}
    )
    plan: list[JsonValue] = [{"type": "UserInputStep", "message": turn.utterance}]
    plan += steps.of(tree.steps if tree else (), "")
    plan.append(
        {
            "type": "PlannerResponseStep",
            "message": generated.outcome,
            "responseType": "Escalate" if is_handed_off(generated) else "Inform",
            "isContentSafe": True,
        }
    )
    topic = generated.topic or ""
    return {
        "type": "PlanSuccessResponse",
        "planId": turn.plan_id,
        "sessionId": turn.session_id,
        "intent": topic,
        "topic": topic,
        "plan": plan,
    }


@dataclass(slots=True)
class _Steps:
    """Writes steps in their order; subagents inside others follow the steps before them."""

    begun_ms: int
    actions: Sequence[Action]
    descriptions: dict[str, str]
    _topic: str | None = None

    def of(self, steps: Iterable[Step], agent: str) -> Iterator[JsonValue]:
        for step in steps:
            match step.kind:
                case StepKind.AGENT:
                    yield from self._agent(step)
                    if agent:
                        # The subagent that called this one has its answer.
                        yield _transition(step.name, agent)
                        yield from self._entry(agent)
                case StepKind.MODEL:
                    yield self._model(step, agent)
                case StepKind.TOOL:
                    yield from self._tool(step, agent)
                case _:
                    yield from ()

    def _agent(self, step: Step) -> Iterator[JsonValue]:
        yield from self._entry(step.name)
        yield from self.of(step.steps, step.name)
        if isinstance(step.output, dict):
            updates: list[JsonValue] = [
                {"variable_name": name, "variable_new_value": value} for name, value in step.output.items()
            ]
            yield {"type": "VariableUpdateStep", "data": {"agent_name": step.name, "variable_updates": updates}}

    def _entry(self, agent: str) -> Iterator[JsonValue]:
        description = self.descriptions.get(agent, "")
        yield {
            "type": "UpdateTopicStep",
            "topic": agent,
            "description": description,
            "job": "",
            "instructions": [],
            "availableFunctions": [],
        }
        yield {
            "type": "EventStep",
            "eventName": "topicChangeEvent",
            "isError": False,
            "payload": {"oldTopic": self._topic or "null", "newTopic": agent},
        }
        self._topic = agent

    def _model(self, step: Step, agent: str) -> JsonObject:
        chosen = step.output if isinstance(step.output, str) else json.dumps(step.output, ensure_ascii=False)
        return {
            "type": "LLMExecutionStep",
            "promptName": agent,
            "promptContent": step.input if isinstance(step.input, str) else "",
            "promptResponse": chosen,
            **self._times(step),
        }

    def _tool(self, step: Step, agent: str) -> Iterator[JsonValue]:
        if step.action is None:
            target = step.input.get("to") if isinstance(step.input, dict) else None
            if step.name in {_TRANSITION, _ESCALATE} and step.error is None and isinstance(target, str):
                yield _transition(agent, target)
            return
        errors: JsonValue = None if step.error is None else [{"statusCode": "", "message": step.error}]
        function: JsonObject = {"name": step.name, "input": step.input, "output": step.output, "errors": errors}
        review = self.actions[step.action].review
        ours: JsonObject = {REVIEW: review} if review else {}
        yield {"type": "FunctionStep", "function": function, **ours, **self._times(step)}

    def _times(self, step: Step) -> JsonObject:
        start = self.begun_ms + round(step.start_ms or 0)
        latency = round(step.duration_ms or 0)
        return {"executionLatency": latency, "startExecutionTime": start, "endExecutionTime": start + latency}


def _transition(source: str, target: str) -> JsonObject:
    return {"type": "TransitionStep", "data": {"from_agent": source, "to_agent": target}}
