"""Which agents of an org were activated or deactivated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalmeta.store.database import Database


@dataclass(frozen=True, slots=True)
class AgentState:
    """Whether an agent is active, since when (seconds since the epoch), and the id of the user who changed it."""

    is_active: bool
    modified: float
    modified_by: str


class Agents:
    """The agents whose state was changed; names ignore case."""

    __slots__ = ("_database",)

    def __init__(self, database: Database) -> None:
        self._database = database

    def states(self) -> dict[str, AgentState]:
        """Return the states by the agents' names in lower case."""
        rows = self._database.query("SELECT name, is_active, modified_at, modified_by FROM agent")
        return {name.casefold(): AgentState(bool(active), modified, by) for name, active, modified, by in rows}

    def save(self, name: str, state: AgentState) -> None:
        """Save the state of an agent."""
        sql = "INSERT OR REPLACE INTO agent (name, is_active, modified_at, modified_by) VALUES (?, ?, ?, ?)"
        self._database.execute(sql, (name, state.is_active, state.modified, state.modified_by))
