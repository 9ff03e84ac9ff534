"""The records of an org: itself, its users, and its agents with one version each."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from evalmeta.model.login import ADMIN
from evalmeta.org.agents import agents_of
from evalmeta.org.organization import ORG_ID
from evalmeta.org.subjects import unbound_subject
from evalmeta.org_clients.sobjects import AGENT, AGENT_VERSION, ORGANIZATION, USER
from evalmeta.protocol.json_fields import to_timestamp
from evalmeta.store.database import full_id
from evalmeta.store.users import Agents, AgentState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.errors import SubjectNotBound
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import User
    from evalmeta.org.agents import Agent
    from evalmeta.org.organization import Organization


class Records:
    """The rows of each object, read at most once."""

    def __init__(self, org: Organization) -> None:
        self._org = org
        self._rows: dict[str, Sequence[JsonObject]] = {}

    def __call__(self, name: str) -> Sequence[JsonObject]:
        """Return the rows of an object, each with all of its fields."""
        if name not in self._rows:
            self._rows[name] = list(self._read(name))
        return self._rows[name]

    def _read(self, name: str) -> Iterator[JsonObject]:
        if name == ORGANIZATION.name:
            yield _organization()
        elif name == USER.name:
            yield from (user_row(user) for user in self._org.users.all_users())
        else:
            write = _agent_row if name == AGENT.name else _version_row
            yield from (write(agent) for agent in agents_of(self._org))


def activate_agent(org: Organization, user: User, version_id: str, *, is_active: bool) -> SubjectNotBound | None:
    """Activate or deactivate an agent by the id of its version; return why that is not possible.

    Raise KeyError if there is no such version.
    """
    agent = {agent.version_id: agent for agent in agents_of(org)}[full_id(version_id)]
    if is_active and not agent.is_bound:
        return unbound_subject(org.settings().subjects, agent.name, root=org.root, settings_name=org.settings_name)
    Agents(org.database).save(agent.name, AgentState(is_active, time.time(), user.id))
    return None


def _organization() -> JsonObject:
    return {
        **dict.fromkeys((field.name for field in ORGANIZATION.fields), None),
        "Id": ORG_ID,
        "Name": "evalmeta",
        "InstanceName": "LOCAL",
        "IsSandbox": False,
        "OrganizationType": "Developer Edition",
        "LanguageLocaleKey": "en_US",
        "DefaultLocaleSidKey": "en_US",
        "TimeZoneSidKey": "GMT",
        "CreatedById": ADMIN.id,
        "LastModifiedById": ADMIN.id,
    }


def user_row(user: User) -> JsonObject:
    """Return a user's row."""
    return {"Id": user.id, "Username": user.username, "Name": user.name, "Email": user.username, "IsActive": True}


def _agent_row(agent: Agent) -> JsonObject:
    return {
        **dict.fromkeys((field.name for field in AGENT.fields), None),
        **_changes(agent),
        "Id": agent.id,
        "DeveloperName": agent.name,
        "MasterLabel": agent.name,
        "Type": "ExternalCopilot",
    }


def _version_row(agent: Agent) -> JsonObject:
    return {
        **dict.fromkeys((field.name for field in AGENT_VERSION.fields), None),
        **_changes(agent),
        "Id": agent.version_id,
        "BotDefinitionId": agent.id,
        "DeveloperName": "v1",
        "VersionNumber": 1,
        "Status": "Active" if agent.is_active else "Inactive",
    }


def _changes(agent: Agent) -> JsonObject:
    """Return who changed an agent, and when; nothing is known of its creation."""
    state = agent.state
    moment = to_timestamp(state.modified) if state else None
    by = state.modified_by if state else ADMIN.id
    return {"IsDeleted": False, "LastModifiedDate": moment, "SystemModstamp": moment, "LastModifiedById": by}
