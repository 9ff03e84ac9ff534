"""The variables of a conversation, and what references of its script mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.agent_script.evaluation import ScriptFault, converted, evaluate
from evalmeta.agent_script.names import NAMED_SPACES, context_names, context_variables, source_names
from evalmeta.agent_script.nodes import Name, Reference
from evalmeta.engine.answers import context_of
from evalmeta.errors import SubjectError
from evalmeta.validation.project_agents import STANDARD_CONTEXT_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.agent_script.nodes import Expression, Script, Variable
    from evalmeta.model.evaluation import Case
    from evalmeta.model.json_value import JsonObject, JsonValue

_CONTEXT_PREFIX: Final = "$Context."


class State:
    """The variables of a conversation; those that the case's context variables name begin with their values."""

    def __init__(self, script: Script, case: Case) -> None:
        self._context = {name.removeprefix(_CONTEXT_PREFIX): value for name, value in context_of(case).items()}
        self.user_input = ""
        self.values: dict[str, JsonValue] = {}
        for variable in script.variables:
            self.values[variable.name] = self._first_value(variable)
        _check_context(self._context, script)

    def _first_value(self, variable: Variable) -> JsonValue:
        for name in context_names(variable):
            if name in self._context:
                return converted(self._context[name], variable.type)
        return None if variable.default is None else evaluate(variable.default, self.scope())

    def scope(self, outputs: JsonObject | None = None) -> Values:
        """Return what references mean now; `outputs` are those of the action whose callbacks are carried out."""
        return Values(self, outputs)

    def context_value(self, reference: Reference) -> JsonValue:
        """Return the context variable that a reference such as `@MessagingSession.Id` names; None without one."""
        return next((self._context[name] for name in source_names(reference) if name in self._context), None)


class Values:
    """The values of references at one place of a script."""

    def __init__(self, state: State, outputs: JsonObject | None) -> None:
        self._state = state
        self._outputs = outputs

    def value_of(self, reference: Reference) -> JsonValue:
        """Return the value of a reference; outputs outside the callbacks of an action are a ScriptFault."""
        namespace, member = reference.namespace, reference.member
        if namespace == "variables":
            return self._state.values.get(member)
        if namespace == "outputs":
            if self._outputs is None:
                raise ScriptFault(f"{reference} is only known in the callbacks of an action", reference.position)
            if member and member not in self._outputs:
                raise ScriptFault(f"the action has no output {member!r}", reference.position)
            return self._outputs[member] if member else self._outputs
        if namespace in NAMED_SPACES:
            return member
        if namespace == "system_variables" and member == "user_input":
            return self._state.user_input
        return self._state.context_value(reference)


def settable_variable(script: Script, target: Expression) -> Variable:
    """Return the variable that a statement sets; raise ScriptFault if there is none, or if it is linked."""
    name = target.name if isinstance(target, Name) else ""
    if isinstance(target, Reference) and target.namespace == "variables":
        name = target.member
    variable = next((variable for variable in script.variables if variable.name == name), None)
    if variable is None:
        raise ScriptFault("only a variable of the script can be set", target.position)
    if variable.is_linked:
        raise ScriptFault(f"the linked variable {name!r} cannot be set", target.position)
    return variable


def _check_context(context: Mapping[str, JsonValue], script: Script) -> None:
    """Raise SubjectError if the script reads a context variable neither by its variables nor as a reference."""
    unknown = context.keys() - STANDARD_CONTEXT_VARIABLES
    if unknown:
        unknown -= {name for name, _ in context_variables(script)}
    if unknown:
        raise SubjectError(
            f"the script has no variable for {min(unknown)!r}, which the test case sets",
            actions=["Correct the name in the test case, or declare it in the script as a linked variable."],
        )


def changes(before: Mapping[str, JsonValue], after: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return the variables whose values differ, with their new values."""
    return {name: value for name, value in after.items() if before.get(name) != value}
