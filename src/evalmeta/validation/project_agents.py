"""What rules ask about the agents of a project, and the context variables that tests give them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from evalmeta.agent_script.names import AgentNames, PlacedName

# Every session has a language (Agent API Developer Guide, "Start a Session").
STANDARD_CONTEXT_VARIABLES: Final = frozenset({"EndUserLanguage"})


class ProjectAgents(Protocol):
    """The agents in the files of a project; see `AgentFiles`."""

    def declared_variables(self, agent: str) -> frozenset[str] | None:
        """Return the context variables that an agent declares, in lower case; None if they are not known."""

    def agent_names(self, agent: str) -> AgentNames | None:
        """Return the topics, actions and variables of an agent; None if they are not known."""

    def missing_agent(self, agent: str) -> PlacedName | None:
        """Return the agent that a test probably means that names this one; None if this one can be right."""


def plain_variable(name: str) -> str:
    """Return the name of a context variable without what formats write around it."""
    return name.strip().removeprefix("$Context.")


def is_unread(variable: str, agent: str, agents: ProjectAgents) -> bool:
    """Return whether the files of an agent have a script, and nothing in them has this variable, in any case."""
    name = plain_variable(variable).casefold()
    names = agents.agent_names(agent)
    if not name or names is None or names.variables is None:
        return False
    known = {other.casefold() for other in (*STANDARD_CONTEXT_VARIABLES, *names.variables)}
    return name not in known | (agents.declared_variables(agent) or frozenset())
