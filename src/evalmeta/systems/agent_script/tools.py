"""What the model of a subagent may call: the bindings whose guards are true, and the inputs that the model chooses."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.agent_script.evaluation import ScriptFault, converted, evaluate
from evalmeta.agent_script.nodes import (
    ActionDefinition,
    Binding,
    Literal,
    ModelValue,
    Parameter,
    Reference,
    Run,
    field_text,
    nodes_of,
)
from evalmeta.systems.agent_script.models import Input, Tool
from evalmeta.systems.agent_script.state import settable_variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.agent_script.nodes import Script, Subagent, With
    from evalmeta.model.json_value import JsonValue
    from evalmeta.systems.agent_script.state import State, Values

_LIGHTNING_TYPES: Final = {
    "lightning__booleanType": "boolean",
    "lightning__integerType": "number",
    "lightning__numberType": "number",
    "lightning__dateType": "string",
    "lightning__dateTimeStringType": "string",
    "lightning__textType": "string",
    "lightning__multilineTextType": "string",
    "lightning__richTextType": "string",
    "lightning__urlType": "string",
}
RESPONSE = "response"
"""The output of a connected agent: its answer."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A binding that is available: what it calls, and the inputs that the model chooses for it."""

    binding: Binding
    target: Reference
    action: ActionDefinition | None
    inputs: tuple[Input, ...]

    @property
    def tool(self) -> Tool:
        """Return it as the model sees it."""
        description = self.binding.description or (self.action.description if self.action else "")
        return Tool(self.binding.name, description, self.inputs)


def actions_of(script: Script) -> dict[str, list[ActionDefinition]]:
    """Return all actions of a script by their names, connected agents too; several subagents may share a name."""
    actions: dict[str, list[ActionDefinition]] = {}
    of_subagents = (action for subagent in script.subagents for action in subagent.actions)
    for action in (*script.actions, *of_subagents, *_connected(script)):
        actions.setdefault(action.name, []).append(action)
    return actions


def _connected(script: Script) -> Iterator[ActionDefinition]:
    """Yield connected agents as actions: their answer is the output `response`."""
    for agent in script.connected_subagents:
        response = Parameter(RESPONSE, "string", None, (), agent.position)
        yield ActionDefinition(
            *(agent.name, agent.label, agent.description, agent.inputs, (response,)),
            *(agent.target, agent.fields, agent.position),
        )


def action_named(script: Script, subagent: Subagent, name: str) -> ActionDefinition | None:
    """Return the action that a subagent knows by a name: its own, one of the script, or that of one of its bindings."""
    own = next((action for action in (*subagent.actions, *script.actions) if action.name == name), None)
    if own is not None:
        return own
    bound = next((binding.target for binding in subagent.bindings if binding.name == name), None)
    if isinstance(bound, Reference) and bound.namespace == "actions" and bound.member != name:
        return action_named(script, subagent, bound.member)
    return None


def offers(script: Script, subagent: Subagent, state: State) -> list[Offer]:
    """Return the bindings of a subagent that are available now."""
    scope = state.scope()
    return [
        _offer(script, subagent, binding)
        for binding in subagent.bindings
        if all(evaluate(guard, scope) for guard in binding.guards)
    ]


def callable_tools(script: Script, subagent: Subagent) -> Iterator[Tool]:
    """Yield what the model may call while a subagent is active, in whatever state; no entry that is not valid."""
    for binding in subagent.bindings:
        with suppress(ScriptFault):
            yield _offer(script, subagent, binding).tool
    yield from tools_of_runs(script, subagent)


def tools_of_runs(script: Script, subagent: Subagent) -> Iterator[Tool]:
    """Yield what the model must call while a subagent is active, because a `run` leaves inputs to it."""
    for node in nodes_of((script.system_instructions, script.connected_subagents, subagent)):
        if isinstance(node, Run):
            with suppress(ScriptFault):
                yield from tools_of_run(action_of_run(script, subagent, node), node)


def action_of_run(script: Script, subagent: Subagent, statement: Run) -> ActionDefinition:
    """Return the action that `run` names; raise ScriptFault if it names none."""
    called = statement.action
    if not isinstance(called, Reference) or called.namespace != "actions":
        raise ScriptFault("only actions can be run, such as @actions.Find_Order", called.position)
    action = action_named(script, subagent, called.member)
    if action is None:
        raise ScriptFault(f"the script has no action {called.member!r}", statement.position)
    return action


def tools_of_run(action: ActionDefinition, statement: Run) -> Iterator[Tool]:
    """Yield the tool by which the model chooses the inputs of a `run`, if the script leaves any to it."""
    if any(isinstance(given.value, ModelValue) for given in statement.inputs):
        yield Tool(action.name, action.description, tuple(chosen_inputs(action, statement.inputs)))


def _offer(script: Script, subagent: Subagent, binding: Binding) -> Offer:
    target = binding.target
    if target is None and not binding.fields:
        target = Reference("actions", binding.name, binding.position)
    if not isinstance(target, Reference):
        raise ScriptFault(f"the entry {binding.name!r} of reasoning.actions calls nothing", binding.position)
    match target.namespace, target.member:
        case "actions", name:
            action = action_named(script, subagent, name)
            if action is None:
                raise ScriptFault(f"the script has no action {name!r}", target.position)
            return Offer(binding, target, action, tuple(chosen_inputs(action, binding.inputs)))
        case "connected_subagent", name:
            action = next((action for action in _connected(script) if action.name == name), None)
            if action is None:
                raise ScriptFault(f"the script has no connected agent {name!r}", target.position)
            return Offer(binding, target, action, tuple(chosen_inputs(action, binding.inputs)))
        case "utils", "setVariables":
            return Offer(binding, target, None, tuple(_chosen_variables(binding, script)))
    return Offer(binding, target, None, ())


def chosen_inputs(action: ActionDefinition, inputs: tuple[With, ...]) -> Iterator[Input]:
    """Yield the inputs of an action that the model chooses: those with `...`, or all if none is given."""
    chosen = {given.name for given in inputs if isinstance(given.value, ModelValue)}
    for parameter in action.inputs:
        if parameter.name in chosen or not inputs:
            description = field_text(parameter.fields, "description")
            yield Input(parameter.name, _type_of(parameter), description, _is_required(parameter))
            chosen.discard(parameter.name)
    if chosen:
        name = min(chosen)
        position = next(given.position for given in inputs if given.name == name)
        raise ScriptFault(f"the action {action.name!r} has no input {name!r}", position)


def _type_of(parameter: Parameter) -> str:
    """Return the type of an input's values: scripts may declare dates, texts and numbers as objects."""
    if parameter.type != "object":
        return parameter.type
    return _LIGHTNING_TYPES.get(field_text(parameter.fields, "complex_data_type_name"), parameter.type)


def output_type(parameter: Parameter) -> str:
    """Return the type of an output's values; for objects, that of the platform that they name, if evalmeta knows it."""
    named = field_text(parameter.fields, "complex_data_type_name")
    return named if named in _LIGHTNING_TYPES and parameter.type in {"object", "string"} else parameter.type


def _is_required(parameter: Parameter) -> bool:
    values = [field.value for field in parameter.fields if field.key == "is_required"]
    return any(isinstance(value, Literal) and value.value is True for value in values)


def _chosen_variables(binding: Binding, script: Script) -> Iterator[Input]:
    for given in binding.inputs:
        variable = settable_variable(script, Reference("variables", given.name, given.position))
        if isinstance(given.value, ModelValue):
            yield Input(variable.name, variable.type, variable.description, is_required=False)


def bound_inputs(
    inputs: tuple[With, ...], chosen: Mapping[str, JsonValue], types: Mapping[str, str], scope: Values
) -> dict[str, JsonValue]:
    """Return the inputs of a call: the values of the script, and those that the model chose, as their types."""
    values: dict[str, JsonValue] = {}
    for given in inputs:
        if not isinstance(given.value, ModelValue):
            values[given.name] = evaluate(given.value, scope)
    values |= {name: converted(value, types.get(name, "")) for name, value in chosen.items()}
    return values
