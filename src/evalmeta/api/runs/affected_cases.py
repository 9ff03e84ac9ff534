"""Which cases of a test may answer otherwise after a change of their agent in Agent Script.

A case is unaffected only if all its turns say in which topics or with which actions they end, and none of these has
changed. What a case leaves open is unknown, and unknown is not unaffected.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from evalmeta.agent_script.changes import changed_subagents, reachable_subagents
from evalmeta.agent_script.parser import parse_script
from evalmeta.agent_script.parts import script_parts
from evalmeta.api.coverage import conversation_of_case
from evalmeta.model.agent_parts import HUMAN
from evalmeta.model.coverage import Inventory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalmeta.agent_script.nodes import Script
    from evalmeta.model.coverage import Conversation, CoveredTurn
    from evalmeta.model.evaluation import Case
    from evalmeta.model.run_options import ActionMatch


@dataclass(frozen=True)
class AgentChange:
    """What changed of an agent.

    Attributes:
        before, after: its script at the commit, and now.
        subagents: the subagents that changed.
        doubles: the actions whose doubles changed, were added or removed.
    """

    before: Script
    after: Script
    subagents: frozenset[str] = frozenset()
    doubles: frozenset[str] = frozenset()

    @property
    def words(self) -> str:
        """Return what changed in words, such as `the subagent Loans and the double of Renew`."""
        names = [_listed("the subagent", "the subagents", self.subagents)] if self.subagents else []
        names += [_listed("the double of", "the doubles of", self.doubles)] if self.doubles else []
        return " and ".join(names)

    @cached_property
    def inventories(self) -> tuple[Inventory, ...]:
        """Return the parts of both versions: tests may use the words of either."""
        return tuple(Inventory(tuple(script_parts(script, ""))) for script in (self.before, self.after))

    @cached_property
    def reachable(self) -> Mapping[str, frozenset[str]]:
        """Return by each subagent those to which it may lead, in either version."""
        return reachable_subagents(self.before, self.after)


def script_change(before: bytes, after: bytes) -> AgentChange | None:
    """Return what changed between two versions of a script; None if all cases may be affected.

    That is so if something changed that its subagents share, or if a version cannot be read.
    """
    scripts = [_parsed(content) for content in (before, after)]
    old, new = scripts
    if old is None or new is None:
        return None
    changed = changed_subagents(old, new)
    return None if changed is None else AgentChange(old, new, changed)


def is_affected(case: Case, change: AgentChange, *, match: ActionMatch) -> bool:
    """Return whether a change may alter a case; `match` is how its actions must match, unless it says that itself."""
    conversation = conversation_of_case(case, match)
    if change.doubles and _meets_double(conversation, change):
        return True
    if not change.subagents:
        return False
    begin = [conversation.topic] if conversation.topic else []
    return not conversation.turns or any(
        [_meets_topics(begin, change), *(_meets_subagent(turn, change) for turn in conversation.turns)]
    )


def _meets_double(conversation: Conversation, change: AgentChange) -> bool:
    """Return whether a turn expects an action whose double changed, or does not say all its actions."""
    for turn in conversation.turns:
        if not turn.actions or turn.allows_others:
            return True
        named = (*turn.actions, *turn.optional)
        if change.doubles & {name for word in named for name in _action_names(word, change)}:
            return True
    return not conversation.turns


def _action_names(word: str, change: AgentChange) -> Iterator[str]:
    yield word
    for inventory in change.inventories:
        yield from (part.name for part in inventory.actions_named(word))


def _meets_subagent(turn: CoveredTurn, change: AgentChange) -> bool:
    """Return whether a turn may go through a subagent that changed: if it does not say where it goes, it may."""
    topics = [turn.topic] if turn.topic else []
    stops = [word for word in turn.handoffs or () if word != HUMAN]
    owners = [_owners(word, change) for word in (*(turn.actions or ()), *turn.optional)]
    if not (topics or stops or owners) or not all(owners):
        return True
    if stops:
        # All stops of the turn are known.
        named = [_subagents_named(word, change) for word in (*stops, *topics)]
        return not all(named) or any(change.subagents & names for names in named)
    users = {name for names in owners for name in names}
    after = {name for user in users for name in change.reachable[user]} if not topics else set()
    return _meets_topics(topics, change) or _leads_to(users, change) or bool(change.subagents & after)


def _meets_topics(words: Iterable[str], change: AgentChange) -> bool:
    named = [_subagents_named(word, change) for word in words]
    return not all(named) or any(_leads_to(names, change) for names in named)


def _leads_to(names: set[str], change: AgentChange) -> bool:
    """Return whether a subagent that changed is one of these, or may lead to one."""
    return any(change.reachable[changed] & names for changed in change.subagents)


def _subagents_named(word: str, change: AgentChange) -> set[str]:
    """Return the subagents that a test means by a word, in either version; empty if neither has one."""
    return {inventory.topic_named(word) for inventory in change.inventories} & change.reachable.keys()


def _owners(word: str, change: AgentChange) -> set[str]:
    """Return the subagents that have an action; empty if it is not known, or all subagents share it."""
    parts = {part for inventory in change.inventories for part in inventory.actions_named(word)}
    return {part.topic for part in parts} if parts and all(part.topic for part in parts) else set()


def _parsed(content: bytes) -> Script | None:
    try:
        script, problems = parse_script(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None
    return None if problems else script


def _listed(one: str, several: str, names: Iterable[str]) -> str:
    ordered = sorted(names)
    return f"{one if len(ordered) == 1 else several} {', '.join(ordered)}"
