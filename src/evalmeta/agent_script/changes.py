"""What differs between two versions of a script: the subagents that changed, if nothing that they share did."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Final

from evalmeta.agent_script.nodes import START_AGENT, SUBAGENT_KINDS, Binding, Reference, Script, nodes_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from evalmeta.agent_script.nodes import Subagent

_POSITION: Final = "position"


def changed_subagents(before: Script, after: Script) -> frozenset[str] | None:
    """Return the names of the subagents that differ, also those that are new or removed.

    None if all conversations may differ: if something changed that subagents share (instructions of the system,
    messages, settings, variables, actions for all, connected agents, other blocks), the start, the order of subagents,
    or what the label and the description say of one. Positions, comments and layout do not count.
    """
    if _shared(before) != _shared(after):
        return None
    old, new = _by_name(before), _by_name(after)
    if len(old) < len(before.subagents) or len(new) < len(after.subagents):
        return None
    common = [name for name in old if name in new]
    if common != [name for name in new if name in old]:
        return None
    if any(_seen_by_others(old[name]) != _seen_by_others(new[name]) for name in common):
        return None
    changed = {name for name in common if _meaning(old[name]) != _meaning(new[name])} | (old.keys() ^ new.keys())
    starts = {subagent.name for subagent in (*old.values(), *new.values()) if subagent.kind == START_AGENT}
    return None if starts & changed else frozenset(changed)


def reachable_subagents(*scripts: Script) -> Mapping[str, frozenset[str]]:
    """Return by each subagent those to which it may lead a conversation, in several steps, and itself.

    A subagent that another calls leads back to it. Ways end at the start: where it leads to depends on what the user
    says.
    """
    steps: dict[str, set[str]] = {}
    for subagent in (subagent for script in scripts for subagent in script.subagents):
        steps.setdefault(subagent.name, set())
    starts = {subagent.name for script in scripts for subagent in script.subagents if subagent.kind == START_AGENT}
    for subagent in (subagent for script in scripts for subagent in script.subagents):
        for node in nodes_of(subagent):
            if isinstance(node, Reference) and _is_known(node, steps) and subagent.name not in starts:
                steps[subagent.name].add(node.member)
            called = node.target if isinstance(node, Binding) else None
            if isinstance(called, Reference) and _is_known(called, steps) and called.member not in starts:
                steps[called.member].add(subagent.name)
    return {name: frozenset(_reached(name, steps)) for name in steps}


def _is_known(reference: Reference, names: Collection[str]) -> bool:
    return reference.namespace in SUBAGENT_KINDS and reference.member in names


def _reached(name: str, steps: Mapping[str, set[str]]) -> set[str]:
    found, waiting = {name}, [name]
    while waiting:
        new = steps[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def _shared(script: Script) -> object:
    return [_meaning(getattr(script, field.name)) for field in fields(Script) if field.name != "subagents"]


def _by_name(script: Script) -> dict[str, Subagent]:
    return {subagent.name: subagent for subagent in script.subagents}


def _seen_by_others(subagent: Subagent) -> object:
    """Return what a model that chooses among subagents may read of one."""
    return subagent.kind, subagent.label, subagent.description


def _meaning(node: object) -> object:
    """Return a node as tuples of its values without positions; `True` and `1` differ."""
    if isinstance(node, tuple):
        return tuple(map(_meaning, node))
    if is_dataclass(node):
        values = (_meaning(getattr(node, field.name)) for field in fields(node) if field.name != _POSITION)
        return type(node).__name__, *values
    return type(node).__name__, node
