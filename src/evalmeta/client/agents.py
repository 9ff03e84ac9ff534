"""The agents of an org and their versions, as records of BotDefinition and BotVersion."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from evalmeta.errors import EvalmetaError
from evalmeta.protocol.json_fields import integer, list_of_objects, object_at, text

if TYPE_CHECKING:
    from evalmeta.client.connection import Connection

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*", re.ASCII)
_VERSIONS: Final = (
    "SELECT DeveloperName, (SELECT DeveloperName, VersionNumber, Status FROM BotVersions)"
    " FROM BotDefinition WHERE DeveloperName = '{}'"
)


class AgentVersion(NamedTuple):
    """A version of an agent in an org."""

    name: str
    number: int
    is_active: bool

    def is_named(self, version: str) -> bool:
        """Return whether the <subjectVersion> of a test names this version."""
        return version.casefold() in {self.name.casefold(), f"v{self.number}"}


def names_a_version(subject_version: str | None) -> bool:
    """Return whether the <subjectVersion> of a test names a version, and not whichever is the latest."""
    return bool(subject_version) and str(subject_version).casefold() != "latest"


async def agent_versions(connection: Connection, agent: str) -> list[AgentVersion]:
    """Return the versions of an agent, the newest first; none if the org does not say."""
    if not _NAME.fullmatch(agent):
        return []
    try:
        reply = await connection.get(f"/query?q={quote(_VERSIONS.format(agent))}")
    except EvalmetaError:
        return []
    versions = [
        AgentVersion(
            text(value, "DeveloperName"), integer(value, "VersionNumber", 0), text(value, "Status") == "Active"
        )
        for agents in list_of_objects(reply, "records")
        for value in list_of_objects(object_at(agents, "BotVersions"), "records")
    ]
    return sorted(versions, key=lambda version: version.number, reverse=True)
