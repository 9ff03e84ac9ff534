"""The parts of an agent in Agent Script that tests can cover."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.agent_script.nodes import START_AGENT, SUBAGENT_KINDS, Binding, Reference, Transition, nodes_of
from evalmeta.model.agent_parts import HUMAN, AgentPart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.agent_script.nodes import ActionDefinition, ConnectedSubagent, Position, Script, Subagent
    from evalmeta.model.agent_parts import PartKind

_TRANSITION: Final = "@utils.transition"
_ESCALATE: Final = "@utils.escalate"


def script_parts(script: Script, label: str) -> Iterator[AgentPart]:
    """Yield the topics, actions, transitions and guards of a script; `label` is its file in their places.

    The start is a topic only if conversations can stay there: if it does more than to lead to other subagents.
    """
    for subagent in script.subagents:
        if subagent.kind != START_AGENT or not _only_leads(subagent):
            yield _topic(subagent, label)
    shared: list[ActionDefinition | ConnectedSubagent] = [*script.actions, *script.connected_subagents]
    yield from (_action(action, "", label) for action in shared)
    for subagent in script.subagents:
        yield from (_action(action, subagent.name, label) for action in subagent.actions)
    for subagent in script.subagents:
        yield from _transitions(subagent, label)
        yield from _guards(subagent, label)


def _only_leads(subagent: Subagent) -> bool:
    targets = [_target(binding) for binding in subagent.bindings]
    return bool(targets) and not subagent.actions and all(kind == "transition" or not name for kind, name in targets)


def _topic(subagent: Subagent, label: str) -> AgentPart:
    words = (subagent.name, *filter(None, [subagent.label]))
    description = " ".join(subagent.description.split())
    return AgentPart("topic", subagent.name, "", _place(label, subagent.position), description, words=words)


def _action(action: ActionDefinition | ConnectedSubagent, topic: str, label: str) -> AgentPart:
    words = (action.name, *filter(None, [action.label]))
    description = " ".join(action.description.split())
    return AgentPart("action", action.name, topic, _place(label, action.position), description, words=words)


def _transitions(subagent: Subagent, label: str) -> Iterator[AgentPart]:
    """Yield the transitions of a subagent, each target once."""
    found: dict[str, tuple[Position, str]] = {}
    for node in nodes_of(subagent):
        target, description = "", ""
        if isinstance(node, Binding):
            kind, name = _target(node)
            target, description = (name, node.description) if kind == "transition" else ("", "")
        elif isinstance(node, Transition) and isinstance(node.target, Reference):
            target = node.target.member
        if target and target != subagent.name and isinstance(node, Binding | Transition):
            found.setdefault(target, (node.position, " ".join(description.split())))
    for target, (position, description) in found.items():
        yield AgentPart("transition", target, subagent.name, _place(label, position), description)


def _guards(subagent: Subagent, label: str) -> Iterator[AgentPart]:
    """Yield the guards of what answers show: actions and transitions."""
    for binding in subagent.bindings:
        kind, name = _target(binding)
        if binding.guards and name:
            place = _place(label, binding.guards[0].position)
            yield AgentPart("guard", binding.name, subagent.name, place, guarded=(kind, name))


def _target(binding: Binding) -> tuple[PartKind, str]:
    """Return what the model calls by an entry: an action or a transition; the name is empty for other utilities."""
    target, to = binding.target, binding.to
    if target is None:
        return "action", binding.name
    if str(target) == _TRANSITION and isinstance(to, Reference):
        return "transition", to.member
    if str(target) == _ESCALATE:
        return "transition", HUMAN
    if isinstance(target, Reference) and target.namespace in SUBAGENT_KINDS:
        return "transition", target.member
    if isinstance(target, Reference) and target.namespace in {"actions", "connected_subagent"}:
        return "action", target.member
    return "action", ""


def _place(label: str, position: Position) -> str:
    return f"{label}:{position.line}"
