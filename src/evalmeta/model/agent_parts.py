"""The parts of an agent that tests can cover: topics, actions, transitions and guards."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias

PartKind: TypeAlias = Literal["topic", "action", "transition", "guard"]
PART_KINDS: Final[tuple[PartKind, ...]] = ("topic", "action", "transition", "guard")
HUMAN: Final = "human"
"""The target of a transition to a person, as handoffs name it."""
# Orgs name promoted topics and actions p_<planner id>_<Name>_<hash>, or <Name>_<id>.
_WITH_IDS: Final = re.compile(r"(?:p_16j[0-9A-Za-z]+_)?(\w+?)(?:_(?:16j|172|179)[0-9A-Za-z]{9,15})?", re.ASCII)


class AgentPart(NamedTuple):
    """A part of an agent.

    Attributes:
        name: what answers of the agent call it; for a transition its target, for a guard the entry that it guards.
        topic: the topic that has it; empty for topics, and for actions that all topics may call.
        place: its file and line, such as `Desk.agent:12`; empty if it is in no file.
        description: what the agent's files say about it.
        utterance: an example of what users say, if the agent's files have one.
        words: all names and labels that tests may use for it.
        guarded: for a guard, the kind and the name of what it guards.
    """

    kind: PartKind
    name: str
    topic: str = ""
    place: str = ""
    description: str = ""
    utterance: str = ""
    words: tuple[str, ...] = ()
    guarded: tuple[PartKind, str] | None = None


def plain_name(name: str) -> str:
    """Return the name of a topic or an action without the ids that orgs add to it."""
    match = _WITH_IDS.fullmatch(name)
    return match[1] if match else name
