"""The names that tests of an agent can use: topics, actions and context variables, with their places."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.agent_script.nodes import SUBAGENT_KINDS, Reference, field_text, nodes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalmeta.agent_script.nodes import ActionDefinition, ConnectedSubagent, Position, Script, Subagent, Variable
    from evalmeta.model.agent_parts import AgentPart

NAMED_SPACES: Final = frozenset({"actions", "utils", "connected_subagent", *SUBAGENT_KINDS})
"""The namespaces whose references stand for their names in instructions."""
_SPACES: Final = NAMED_SPACES | {"variables", "outputs", "system_variables"}


_NAME_KEYS: Final = ("developer_name", "agent_name")


def names_in_config(script: Script) -> list[str]:
    """Return the names that a script gives its agent in the block `config`, the developer name first."""
    return [name for key in _NAME_KEYS if (name := field_text(script.config, key))]


class PlacedName(NamedTuple):
    """What answers of the agent call a topic or an action, and its place, such as `Desk.agent:12`.

    The name is empty if answers never have it: what the model may call without calling an action. It is None if any
    word for it may be used.
    """

    name: str | None
    place: str


class AgentNames(NamedTuple):
    """The topics and actions of an agent by the names and labels that tests may use, and its context variables.

    Attributes:
        actions: None if the files of the agent do not have all of them.
        variables: the context variables that its script reads; None without a script.
    """

    topics: Mapping[str, PlacedName]
    actions: Mapping[str, PlacedName] | None
    variables: Mapping[str, PlacedName] | None = None


def names_of(script: Script, label: str) -> AgentNames:
    """Return the names in a script.

    Topics have the names and labels of subagents, actions those of definitions and of what the model may call.
    """
    variables = ((name, name, position) for name, position in context_variables(script))
    return AgentNames(_placed(_topics(script), label), _placed(_actions(script), label), _placed(variables, label))


def names_of_parts(parts: Iterable[AgentPart], *, has_all_actions: bool) -> AgentNames:
    """Return the names of topics and actions in classic metadata, whose answers may have any of their words."""
    topics: dict[str, PlacedName] = {}
    actions: dict[str, PlacedName] = {}
    for part in parts:
        names = topics if part.kind == "topic" else actions
        for word in part.words:
            names.setdefault(word, PlacedName(None, part.place))
    return AgentNames(topics, actions if has_all_actions else None)


def merge_names(several: Iterable[AgentNames]) -> AgentNames:
    """Return the names of all files of an agent; those of later ones replace those of earlier ones."""
    topics: dict[str, PlacedName] = {}
    actions: dict[str, PlacedName] | None = {}
    variables: dict[str, PlacedName] | None = None
    for names in several:
        topics |= names.topics
        actions = None if actions is None or names.actions is None else {**actions, **names.actions}
        if names.variables is not None:
            variables = {**(variables or {}), **names.variables}
    return AgentNames(topics, actions, variables)


def context_variables(script: Script) -> Iterator[tuple[str, Position]]:
    """Yield the names of the context variables that a script reads, by its variables or by references."""
    for variable in script.variables:
        yield from ((name, variable.position) for name in context_names(variable))
    for node in nodes_of(script):
        if isinstance(node, Reference) and node.namespace not in _SPACES:
            yield from ((name, node.position) for name in source_names(node))


def context_names(variable: Variable) -> Iterator[str]:
    """Yield the names of the context variables that give a variable its value, the first choice first."""
    yield variable.name
    if isinstance(variable.source, Reference):
        yield from source_names(variable.source)


def source_names(reference: Reference) -> tuple[str, str]:
    """Return the names of the context variable that a reference such as `@MessagingSession.Id` reads."""
    return f"{reference.namespace}.{reference.member}", reference.member


def _topics(script: Script) -> Iterator[tuple[str, str, Position]]:
    agents: list[Subagent | ConnectedSubagent] = [*script.subagents, *script.connected_subagents]
    for agent in agents:
        yield from ((word, agent.name, agent.position) for word in (agent.name, agent.label))


def _actions(script: Script) -> Iterator[tuple[str, str, Position]]:
    of_subagents = (action for agent in script.subagents for action in agent.actions)
    actions: list[ActionDefinition | ConnectedSubagent] = [*script.actions, *of_subagents, *script.connected_subagents]
    for action in actions:
        yield from ((word, action.name, action.position) for word in (action.name, action.label))
    for binding in (binding for agent in script.subagents for binding in agent.bindings):
        target = binding.target
        called = binding.name if target is None else ""
        if isinstance(target, Reference) and target.namespace in {"actions", "connected_subagent"}:
            called = target.member
        yield (binding.name, called, binding.position)


def _placed(words: Iterable[tuple[str, str, Position]], label: str) -> dict[str, PlacedName]:
    """Return the names by the words for them; a name comes before a label or an entry with the same word."""
    placed: dict[str, PlacedName] = {}
    for word, name, position in sorted(words, key=lambda entry: entry[0] != entry[1]):
        if word:
            placed.setdefault(word, PlacedName(name, f"{label}:{position.line}"))
    return placed
