"""The statements of procedures: they set variables, build instructions, run actions, and may end in a transition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from evalmeta import limits
from evalmeta.agent_script.evaluation import ScriptFault, evaluate, render
from evalmeta.agent_script.nodes import SUBAGENT_KINDS, If, Reference, Run, Set, Text, Transition
from evalmeta.errors import SubjectError
from evalmeta.model.generated_data import Action
from evalmeta.systems.agent_script.recorder import Recorder
from evalmeta.systems.agent_script.state import settable_variable
from evalmeta.systems.agent_script.tools import action_of_run, bound_inputs, tools_of_run

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.agent_script.nodes import ActionDefinition, Expression, Script, Statement, Subagent
    from evalmeta.model.json_value import JsonObject
    from evalmeta.systems.agent_script.doubles import Doubles, Outcome
    from evalmeta.systems.agent_script.models import Tool
    from evalmeta.systems.agent_script.state import State


@dataclass(frozen=True, slots=True)
class Place:
    """Where statements are carried out: the subagent, the outputs of an action, and the texts that are built."""

    subagent: Subagent
    outputs: JsonObject | None = None
    texts: list[str] | None = None


@dataclass(slots=True)
class Turn:
    """What has happened in a turn so far."""

    number: int = 0
    utterance: str = ""
    recorder: Recorder = field(default_factory=Recorder)
    actions: list[Action] = field(default_factory=list)
    handoffs: list[str] = field(default_factory=list)
    outputs: JsonObject = field(default_factory=dict)
    steps: int = 0
    choices: int = 0

    def count_step(self) -> None:
        """Count a choice of the model, a call or a transition; raise SubjectError if the turn has too many."""
        self.steps += 1
        if self.steps > limits.MAX_TURN_STEPS:
            raise SubjectError(
                f"the agent did not answer within {limits.MAX_TURN_STEPS} steps of one turn",
                actions=["Look for subagents that transition to each other, or for calls that the model repeats."],
            )


class AskInputs(Protocol):
    """Asks the model for the inputs of an action that `run` leaves to it."""

    async def __call__(self, tool: Tool, place: Place) -> JsonObject:
        """Return the inputs that the model chooses."""
        ...


class Procedures:
    """Carries out the statements of one conversation; `turn` is the current one."""

    def __init__(self, script: Script, state: State, doubles: Doubles, *, ask_inputs: AskInputs) -> None:
        self._script = script
        self._state = state
        self._doubles = doubles
        self._ask_inputs = ask_inputs
        self._subagents = {subagent.name: subagent for subagent in reversed(script.subagents)}
        self.turn = Turn()

    async def execute(self, statements: Iterable[Statement], place: Place) -> Subagent | None:
        """Carry out statements; return the subagent to which they transition, which ends them."""
        target: Subagent | None = None
        for statement in statements:
            match statement:
                case Text():
                    self._append(statement, place)
                case Set():
                    variable = settable_variable(self._script, statement.target)
                    scope = self._state.scope(place.outputs)
                    self._state.values[variable.name] = evaluate(statement.value, scope)
                case If():
                    is_met = bool(evaluate(statement.condition, self._state.scope(place.outputs)))
                    target = await self.execute(statement.then if is_met else statement.otherwise, place)
                case Run():
                    target = await self._run(statement, place)
                case Transition(inputs=(given, *_)):
                    raise ScriptFault("`with` of a transition cannot be carried out without an org", given.position)
                case Transition():
                    target = self.transition(statement.target)
                case _:
                    raise ScriptFault("`collect` cannot be carried out without an org", statement.position)
            if target is not None:
                return target
        return None

    def transition(self, target: Expression) -> Subagent:
        """Return the subagent that a transition names, and record the transition."""
        subagent = self.subagent_of(target)
        self.turn.count_step()
        self.turn.handoffs.append(subagent.name)
        self.turn.recorder.tool("transition", self.turn.recorder.now(), inputs={"to": subagent.name})
        return subagent

    def subagent_of(self, target: Expression) -> Subagent:
        """Return the subagent that a reference names; raise ScriptFault if there is none."""
        is_subagent = isinstance(target, Reference) and target.namespace in SUBAGENT_KINDS
        subagent = self._subagents.get(target.member) if is_subagent and isinstance(target, Reference) else None
        if subagent is None:
            raise ScriptFault("the target is not a subagent of the script", target.position)
        return subagent

    async def call(
        self, action: ActionDefinition, inputs: JsonObject, callbacks: Iterable[Statement], place: Place
    ) -> tuple[Outcome, Subagent | None]:
        """Call an action, and carry out its callbacks unless it fails; return the subagent to which they transition."""
        turn = self.turn
        turn.count_step()
        start = turn.recorder.now()
        outcome = await self._doubles.run(action.name, inputs)
        known = dict.fromkeys(output.name for output in action.outputs)
        if unknown := sorted(outcome.outputs.keys() - known):
            message = f"a double of {action.name} returned {', '.join(unknown)}, which the action does not declare"
            raise ScriptFault(message, action.position)
        latency = round(turn.recorder.now() - start, 3)
        called = Action(action.name, inputs, outcome.outputs or None, latency, outcome.error, outcome.review)
        turn.actions.append(called)
        turn.recorder.tool(action.name, start, action=len(turn.actions) - 1)
        turn.outputs = outcome.outputs
        if outcome.error is not None:
            return outcome, None
        inside = Place(place.subagent, {**known, **outcome.outputs}, place.texts)
        return outcome, await self.execute(callbacks, inside)

    def _append(self, statement: Text, place: Place) -> None:
        if place.texts is None:
            raise ScriptFault("a text can only be appended to instructions", statement.position)
        place.texts.append(render(statement.template, self._state.scope(place.outputs)))

    async def _run(self, statement: Run, place: Place) -> Subagent | None:
        action = action_of_run(self._script, place.subagent, statement)
        chosen: JsonObject = {}
        for tool in tools_of_run(action, statement):
            chosen = await self._ask_inputs(tool, place)
        types = {parameter.name: parameter.type for parameter in action.inputs}
        inputs = bound_inputs(statement.inputs, chosen, types, self._state.scope(place.outputs))
        _, target = await self.call(action, inputs, statement.callbacks, place)
        return target
