"""Whether the agents of tests are in an org, and which of their versions are active there."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from evalmeta.api.doctor_checks import Finding
from evalmeta.client.agents import agent_versions, names_a_version
from evalmeta.errors import EvalmetaError
from evalmeta.model.redaction import error_text
from evalmeta.package.project import SETTINGS_FILE
from evalmeta.protocol.json_fields import list_of_objects, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.client.agents import AgentVersion
    from evalmeta.client.connection import Connection
    from evalmeta.model.definition import Definition


_AGENTS: Final = "/query?q=SELECT+DeveloperName+FROM+BotDefinition"


async def check_agents(connection: Connection, tests: Sequence[Definition]) -> list[tuple[str, Finding]]:
    """Return a line for each agent of the tests, or one line if the org does not list its agents."""
    tests = [test for test in tests if test.subject_type == "AGENT"]
    names = sorted({test.subject_name for test in tests})
    try:
        reply = await connection.get(_AGENTS) if names else {}
    except EvalmetaError as error:
        action = "Give the user read access to agents (BotDefinition)."
        return [("agents", Finding("warning", f"the org does not list its agents: {error_text(error)}", action))]
    there = [text(value, "DeveloperName") for value in list_of_objects(reply, "records")]
    return [(f"agent {name}", await _check_agent(connection, name, there, tests)) for name in names]


async def _check_agent(connection: Connection, name: str, there: Sequence[str], tests: Sequence[Definition]) -> Finding:
    # Tests name the agent of a package with its namespace.
    known = {each.casefold(): each for each in there}
    own = known.get(name.casefold()) or known.get(name.casefold().rpartition("__")[2])
    if own is None:
        near = get_close_matches(name, there, n=1)
        way = f"Bind it in {SETTINGS_FILE} of the org" if connection.is_ours else "Deploy and publish it first"
        hint = f"Did you mean {near[0]}?" if near else f"{way}, or correct <subjectName>."
        return Finding("error", f"the org has no agent {name}", hint)
    # Orgs of evalmeta know one version, whatever tests name.
    if connection.is_ours:
        return Finding("ok", "the org has it")
    if versions := await agent_versions(connection, own):
        return _judge_versions(own, versions, [test for test in tests if test.subject_name == name])
    return Finding("warning", "the org does not show its versions", "Give the user read access to BotVersion.")


def _judge_versions(agent: str, versions: Sequence[AgentVersion], tests: Sequence[Definition]) -> Finding:
    listed = ", ".join(version.name for version in versions)
    for test in tests:
        named = test.subject_version
        if named and names_a_version(named) and not any(version.is_named(named) for version in versions):
            message = f"{test.name} names {named}; the org has {listed}"
            return Finding("error", message, "Correct <subjectVersion>.")
    newest, active = versions[0], next((version for version in versions if version.is_active), None)
    if active is None:
        action = f"Activate one: sf agent activate --api-name {agent}"
        return Finding("error", f"none of its versions is active: {listed}", action)
    if newest != active:
        # Source: agentforce-test-kit, knowledge/02-known-issues.md, defect D1.
        message = f"{active.name} is active, but {newest.name} is newer; tests may ask {newest.name}"
        return Finding("warning", message, f"Activate the version to test: sf agent activate --api-name {agent}")
    return Finding("ok", f"{active.name} is active; versions: {listed}")
