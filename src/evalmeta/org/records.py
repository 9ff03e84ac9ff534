"""The records of an org: itself, its users, and its agents with one version each."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.login import ADMIN
from evalmeta.model.registry import TEST_TYPES
from evalmeta.org.organization import ORG_ID
from evalmeta.org.subjects import is_bound, unbound_subject
from evalmeta.protocol.json_fields import to_timestamp
from evalmeta.protocol.sobjects import AGENT, AGENT_VERSION, ORGANIZATION, USER
from evalmeta.store.database import full_id, with_checksum
from evalmeta.store.users import Agents, AgentState
from evalmeta.xmlio.definitions import subject_of
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.errors import SubjectNotBound
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.login import User
    from evalmeta.org.organization import Organization


_ID_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_DIGITS_COUNT: Final = 12
_AGENT: Final = "AGENT"


class _Agent(NamedTuple):
    name: str
    is_bound: bool
    state: AgentState | None

    @property
    def is_active(self) -> bool:
        return self.is_bound and (self.state is None or self.state.is_active)


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
            yield from (write(agent) for agent in _agents(self._org))


def activate_agent(org: Organization, user: User, version_id: str, *, is_active: bool) -> SubjectNotBound | None:
    """Activate or deactivate an agent by the id of its version; return why that is not possible.

    Raise KeyError if there is no such version.
    """
    agent = {_version_id(each): each for each in _agents(org)}[full_id(version_id)]
    if is_active and not agent.is_bound:
        return unbound_subject(org.settings().subjects, agent.name, root=org.root, settings_name=org.settings_name)
    Agents(org.database).save(agent.name, AgentState(is_active, time.time(), user.id))
    return None


def _agents(org: Organization) -> list[_Agent]:
    """Return the agents that are bound or that a definition names, by name."""
    subjects = org.settings().subjects
    named = set(_named_subjects(org))
    prompts = {name for name, kind in named if kind != _AGENT} - {name for name, kind in named if kind == _AGENT}
    names = {name.casefold(): name for name, kind in sorted(named) if kind == _AGENT}
    names |= {name.casefold(): name for name in subjects if name not in prompts}
    states = Agents(org.database).states()
    return [_Agent(name, is_bound(subjects, name), states.get(key)) for key, name in sorted(names.items())]


def _named_subjects(org: Organization) -> Iterator[tuple[str, str]]:
    """Yield the name and the type of the subject of each deployed definition."""
    sql = "SELECT full_name, content FROM component WHERE type = ?"
    for kind in TEST_TYPES:
        for name, content in org.database.rows(sql, (kind.name,)):
            yield subject_of(read_xml(content, label=name))


def _agent_id(agent: _Agent) -> str:
    return _record_id(AGENT.prefix, agent.name)


def _version_id(agent: _Agent) -> str:
    return _record_id(AGENT_VERSION.prefix, agent.name)


def _record_id(prefix: str, name: str) -> str:
    """Return the record id of a name: it stays the same when other agents come and go."""
    number = int.from_bytes(hashlib.sha256(name.casefold().encode()).digest())
    digits = []
    for _ in range(_ID_DIGITS_COUNT):
        number, digit = divmod(number, len(_ID_DIGITS))
        digits.append(_ID_DIGITS[digit])
    return with_checksum(prefix + "".join(digits))


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


def _agent_row(agent: _Agent) -> JsonObject:
    return {
        **dict.fromkeys((field.name for field in AGENT.fields), None),
        **_changes(agent),
        "Id": _agent_id(agent),
        "DeveloperName": agent.name,
        "MasterLabel": agent.name,
        "Type": "ExternalCopilot",
    }


def _version_row(agent: _Agent) -> JsonObject:
    return {
        **dict.fromkeys((field.name for field in AGENT_VERSION.fields), None),
        **_changes(agent),
        "Id": _version_id(agent),
        "BotDefinitionId": _agent_id(agent),
        "DeveloperName": "v1",
        "VersionNumber": 1,
        "Status": "Active" if agent.is_active else "Inactive",
    }


def _changes(agent: _Agent) -> JsonObject:
    """Return who changed an agent, and when; nothing is known of its creation."""
    state = agent.state
    moment = to_timestamp(state.modified) if state else None
    by = state.modified_by if state else ADMIN.id
    return {"IsDeleted": False, "LastModifiedDate": moment, "SystemModstamp": moment, "LastModifiedById": by}
