"""The agents of an org: those that are bound, and those that definitions name, with record ids as in Salesforce."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.registry import TEST_TYPES
from evalmeta.org.subjects import is_bound
from evalmeta.store.database import with_checksum
from evalmeta.store.users import Agents
from evalmeta.xmlio.definitions import subject_of
from evalmeta.xmlio.reader import read_xml

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.org.organization import Organization
    from evalmeta.store.users import AgentState


AGENT_PREFIX: Final = "0Xx"
VERSION_PREFIX: Final = "0X9"
_ID_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ID_DIGITS_COUNT: Final = 12
_AGENT: Final = "AGENT"


class Agent(NamedTuple):
    """An agent with its one version; `state` is None if nobody has activated or deactivated it."""

    name: str
    is_bound: bool
    state: AgentState | None

    @property
    def is_active(self) -> bool:
        """Return whether the agent can be asked."""
        return self.is_bound and (self.state is None or self.state.is_active)

    @property
    def id(self) -> str:
        """Return its record id."""
        return _record_id(AGENT_PREFIX, self.name)

    @property
    def version_id(self) -> str:
        """Return the record id of its version."""
        return _record_id(VERSION_PREFIX, self.name)


def agents_of(org: Organization) -> list[Agent]:
    """Return the agents that are bound or that a definition names, by name."""
    subjects = org.settings().subjects
    named = set(_named_subjects(org))
    prompts = {name for name, kind in named if kind != _AGENT} - {name for name, kind in named if kind == _AGENT}
    names = {name.casefold(): name for name, kind in sorted(named) if kind == _AGENT}
    names |= {name.casefold(): name for name in subjects if name not in prompts}
    states = Agents(org.database).states()
    return [Agent(name, is_bound(subjects, name), states.get(key)) for key, name in sorted(names.items())]


def _named_subjects(org: Organization) -> Iterator[tuple[str, str]]:
    """Yield the name and the type of the subject of each deployed definition."""
    sql = "SELECT full_name, content FROM component WHERE type = ?"
    for kind in TEST_TYPES:
        for name, content in org.database.rows(sql, (kind.name,)):
            yield subject_of(read_xml(content, label=name))


def _record_id(prefix: str, name: str) -> str:
    """Return the record id of a name: it stays the same when other agents come and go."""
    number = int.from_bytes(hashlib.sha256(name.casefold().encode()).digest())
    digits = []
    for _ in range(_ID_DIGITS_COUNT):
        number, digit = divmod(number, len(_ID_DIGITS))
        digits.append(_ID_DIGITS[digit])
    return with_checksum(prefix + "".join(digits))
