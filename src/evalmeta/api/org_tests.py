"""Tests that are deployed in an org, by their names."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from evalmeta.api.agent_tests import AgentTest
from evalmeta.client.metadata import list_components
from evalmeta.errors import AmbiguousTestDefinition, NotFound, OrgFault, Suggestion
from evalmeta.model.registry import TEST_TYPES, metadata_type, types_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.client.connection import Connection
    from evalmeta.model.registry import MetadataType
    from evalmeta.protocol.metadata_api import FileProperties


async def list_tests(connection: Connection) -> list[FileProperties]:
    """List the definitions in the org by type and name."""
    return [
        properties
        for kind in types_at(connection.api_version)
        if kind.is_test
        for properties in await _list(connection, kind)
    ]


async def select_tests(connection: Connection, names: Sequence[str] = ()) -> list[AgentTest]:
    """Return the tests in the org that have these names, or all tests.

    Args:
        connection: the org.
        names: full names, or `Type:FullName` where tests of several types have the same name.

    Raises:
        NotFound: the org does not have a name, or has no tests.
        AmbiguousTestDefinition: tests of several types have a name.
    """
    listed = await list_tests(connection)
    known = [AgentTest(kind, properties.full_name) for properties in listed if (kind := metadata_type(properties.type))]
    if not known:
        way = "Deploy them first, also in each CI job, because a fresh checkout has an empty org"
        files = "Or run test files without deploying them: evalmeta run FOLDER"
        raise NotFound("the org has no agent tests", actions=[Suggestion(way, "deploy"), files])
    return list(dict.fromkeys(_named(name, known) for name in names)) or known


async def _list(connection: Connection, kind: MetadataType) -> list[FileProperties]:
    try:
        return await list_components(connection, kind.name)
    except OrgFault as fault:
        # Orgs where Agentforce Studio testing is not enabled do not know its type.
        if fault.code == "INVALID_TYPE" and kind != TEST_TYPES[0]:
            return []
        raise


def _named(name: str, tests: Sequence[AgentTest]) -> AgentTest:
    found = [test for test in tests if name in (test.full_name, test.key)]
    if len(found) == 1:
        return found[0]
    if found:
        actions = [f"Say which: --api-name {agent_test.key}" for agent_test in found]
        types = " and ".join(agent_test.type.name for agent_test in found)
        raise AmbiguousTestDefinition(f"{name!r} is the name of an {types}", actions=actions)
    known = [test.key if ":" in name else test.full_name for test in tests]
    close = get_close_matches(name, known, n=1)
    hint = f"Did you mean {close[0]}?" if close else f"In the org: {', '.join(known)}."
    raise NotFound(f"the org has no agent test {name!r}", actions=[hint, Suggestion("Deploy it first", "deploy")])
