"""Operands: the values of a criterion's parameters, each a literal or a reference into what the agent returned."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final

from evalmeta.engine.jsonpath import TooManyMatches, compile_reference, resolve
from evalmeta.model.expectations import render_actions
from evalmeta.model.generated_data import reference_root
from evalmeta.model.jsonpath import REFERENCE_ROOT, Names, Reference, ReferenceSyntax
from evalmeta.model.reachability import why_unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.model.definition import Parameter
    from evalmeta.model.generated_data import Action, GeneratedData
    from evalmeta.model.json_value import JsonValue

    Read = Callable[[GeneratedData], Sequence[JsonValue]]


class NoValue(Exception):
    """A parameter has no value; the message says why."""


class Unusable(NoValue):
    """The parameter can never have a value, whatever the agent does."""


class NoMatch(NoValue):
    """A reference matches nothing because of what the agent did."""


class NotReported(NoValue):
    """The agent does not report what a reference reads."""


def _actions_text(generated: GeneratedData) -> JsonValue:
    actions = generated.actions
    return None if actions is None else render_actions(action.name for action in actions)


# Members that can be read without building the whole object that `$` stands for. The whole list of actions is the text
# that orgs return (Testing API, generatedData.actionsSequence).
_DIRECT_MEMBERS: Final[Mapping[str, Callable[[GeneratedData], JsonValue]]] = {
    "outcome": attrgetter("outcome"),
    "generatedResponse": attrgetter("outcome"),
    "topic": attrgetter("topic"),
    "sessionId": attrgetter("session_id"),
    "actionsSequence": _actions_text,
}
# Members that an agent may leave out of its answer, in the words of messages.
_OPTIONAL: Final = {"topic": "its topic", "sessionId": "its session id", "actionsSequence": "its actions"}
_FUNCTION: Final = Names(("function",))
_ACTION_MEMBERS: Final = ("actionsSequence", "invokedActions")


def operand_reader(parameter: Parameter) -> Read:
    """Return a function that reads a parameter's values from an answer; raise Unusable for a wrong reference.

    The function returns at least one value. It raises NoMatch if the agent did nothing that the reference matches,
    NotReported if the agent does not report it, and Unusable if there are too many values.
    """
    if not parameter.is_reference:
        literal = (parameter.value,)
        return lambda _: literal
    try:
        reference = compile_reference(parameter.value)
    except ReferenceSyntax as error:
        raise Unusable(f"{parameter.name}: {error}") from error
    unreachable = why_unreachable(reference)
    if unreachable:
        raise Unusable(f"{parameter.name}: the reference can never match: {unreachable}")
    match reference.steps:
        case (Names((root,)), Names((name,))) if root == REFERENCE_ROOT and name in _DIRECT_MEMBERS:
            return lambda generated: (_member(name, generated),)
        case _:
            return lambda generated: _resolve(parameter, reference, generated)


def _member(name: str, generated: GeneratedData) -> JsonValue:
    value = _DIRECT_MEMBERS[name](generated)
    if value is None:
        raise NotReported(f"the agent does not report {_OPTIONAL[name]}")
    return value


def _resolve(parameter: Parameter, reference: Reference, generated: GeneratedData) -> Sequence[JsonValue]:
    root = reference_root(generated)
    if generated.actions is None and any(member in reference.text for member in _ACTION_MEMBERS):
        raise NotReported("the agent does not report its actions")
    try:
        matches = resolve(reference, root)
    except TooManyMatches as error:
        raise Unusable(f"{parameter.name}: {error}") from error
    if not matches:
        raise _no_match(parameter, reference, generated)
    return matches


def _no_match(parameter: Parameter, reference: Reference, generated: GeneratedData) -> NoMatch | NotReported:
    """Return why a reference matches nothing."""
    actions = generated.actions
    if actions is not None:
        missing = _not_reported(reference, generated, actions)
    else:
        missing = "its actions" if _may_read_actions(reference) else None
    if missing:
        return NotReported(f"the agent does not report {missing}")
    reason = f"the reference of {parameter.name} matches nothing: {parameter.value.strip()}"
    if any(member in reference.text for member in _ACTION_MEMBERS):
        taken = ", ".join(dict.fromkeys(action.name for action in actions or ()))
        reason += f"; the agent took {taken or 'no action'}"
    return NoMatch(reason)


def _may_read_actions(reference: Reference) -> bool:
    """Return whether a reference is not limited to other members, such as the answer."""
    match reference.steps:
        case (_, Names(names), *_):
            return not set(names).isdisjoint(_ACTION_MEMBERS)
        case _:
            return True


def _not_reported(reference: Reference, generated: GeneratedData, actions: Sequence[Action]) -> str | None:
    """Return what the agent would have to report for the reference to match, None if it reports everything."""
    root = reference_root(generated)
    for index, step in enumerate(reference.steps):
        matches = resolve(Reference("", reference.steps[:index]), root)
        if not matches or not isinstance(step, Names):
            continue
        if "executionLatency" in step.names:
            return "the latency of its actions"
        if reference.steps[index - 1] != _FUNCTION:
            continue
        if "output" in step.names and any(action.output is None for action in actions):
            return "the output of its actions"
        if "input" in step.names and not any(map(has_details, actions)):
            return "more than the names of its actions"
    return None


def has_details(action: Action) -> bool:
    """Return whether an agent reports more than the name of an action."""
    return bool(action.input) or action.output is not None or action.latency_ms is not None
