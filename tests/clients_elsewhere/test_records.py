"""What sf shows of an org's agents and objects, and how it opens the org's pages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

from clients_elsewhere.workspace import asking, new_name

if TYPE_CHECKING:
    from clients_elsewhere.workspace import Workspace

AGENTS = "SELECT DeveloperName, (SELECT VersionNumber, Status FROM BotVersions) FROM BotDefinition"


def state_of_the_agent(workspace: Workspace) -> str:
    [agent] = workspace.sf("data query --json --query", f"{AGENTS} WHERE DeveloperName = 'Desk'").reply.result.records
    [version] = agent.BotVersions.records
    return f"v{version.VersionNumber} {version.Status}"


def test_an_agent_is_deactivated_and_activated(workspace: Workspace) -> None:
    off = workspace.sf("agent deactivate --api-name Desk")
    assert (off.code, off.out, state_of_the_agent(workspace)) == (0, "Desk v1 deactivated.\n", "v1 Inactive")

    on = workspace.sf("agent activate --api-name Desk --json")
    assert (on.code, on.reply.result.version, state_of_the_agent(workspace)) == (0, 1, "v1 Active")

    again = workspace.sf("agent activate --api-name Never_There")
    assert (again.code, "Agent 'Never_There' not found in the org" in again.err) == (2, True)


def test_an_agent_that_is_not_bound_is_listed_but_not_activated(workspace: Workspace) -> None:
    agent, name = new_name("Unbound"), new_name("Asks_Unbound")
    workspace.org.have(**{name: asking(name, "Hi").replace(b">Desk<", f">{agent}<".encode())})

    refused = workspace.sf(f"agent activate --api-name {agent}")

    assert refused.code == 4
    assert f"no adapter is bound to the agent '{agent}'" in refused.err


def test_the_address_that_sf_opens_logs_a_browser_in_once(workspace: Workspace) -> None:
    opened = workspace.sf("org open --url-only --path view/runs --json").reply.result

    async def browse() -> list[httpx.Response]:
        # What browsers say of an address that another program opens.
        headers = {"Sec-Fetch-Site": "none"}
        async with httpx.AsyncClient(trust_env=False, follow_redirects=True, headers=headers) as browser:
            first = await browser.get(opened.url)
            browser.cookies.clear()
            return [first, await browser.get(opened.url)]

    first, second = asyncio.run(browse())
    assert (first.status_code, first.url.path, second.status_code) == (200, "/view/runs", 401)


def test_the_agent_is_opened(workspace: Workspace) -> None:
    opened = workspace.sf("org open agent --api-name Desk --url-only --json")
    assert (opened.code, opened.reply.result.orgId) == (0, "00D000000000001EAA")


def test_records_of_children_and_parents_are_shown(workspace: Workspace) -> None:
    children = workspace.sf("data query --result-format csv --query", f"{AGENTS} WHERE DeveloperName = 'Desk'")
    assert "DeveloperName,BotVersions.totalSize" in children.out
    parents = workspace.sf(
        "data query --use-tooling-api --result-format csv --query",
        "SELECT BotDefinition.DeveloperName FROM BotVersion WHERE BotDefinition.DeveloperName IN ('Desk')",
    )
    assert parents.out == "BotDefinition.DeveloperName\nDesk\n"


def test_records_are_counted(workspace: Workspace) -> None:
    counted = workspace.sf("data query --query", "SELECT COUNT() FROM Organization")
    assert "Total number of records retrieved: 1." in counted.out


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT Id FROM Account", "sObject type 'Account' is not supported.\nThis org has BotDefinition, BotVersion"),
        ("SELECT Id FORM User", "unexpected token: 'FORM' at column 11, expecting FROM\nThis org reads: SELECT fields"),
    ],
)
def test_a_query_that_cannot_be_answered_is_explained(workspace: Workspace, query: str, message: str) -> None:
    refused = workspace.sf("data query --query", query)
    assert (refused.code, message in refused.err) == (1, True)


def test_objects_are_listed_and_described(workspace: Workspace) -> None:
    listed = workspace.sf("sobject list --json").reply.result
    assert listed == ["BotDefinition", "BotVersion", "Organization", "User"]
    described = workspace.sf("sobject describe --sobject BotVersion --json").reply.result
    assert "VersionNumber" in [field.name for field in described.fields]


def test_a_record_is_found_by_a_field(workspace: Workspace) -> None:
    record = workspace.sf("data get record --sobject BotDefinition --where DeveloperName=Desk --json").reply.result
    assert (record.DeveloperName, record.IsDeleted) == ("Desk", False)
