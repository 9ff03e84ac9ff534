"""Which parts of an agent the cases of tests cover, and which ones runs have shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.model.agent_parts import AgentPart, plain_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.agent_parts import PartKind


class CoveredTurn(NamedTuple):
    """The topic, the actions and the handoffs of a turn, as a test expects or an answer has them; None is unknown.

    Attributes:
        not_actions: patterns of actions that are not expected.
        is_whole: whether the handoffs are those of the conversation so far, not of this turn.
        optional: actions that are allowed, but not expected.
        allows_others: whether other actions than these are allowed too.
    """

    topic: str | None = None
    actions: tuple[str, ...] | None = None
    handoffs: tuple[str, ...] | None = None
    not_actions: tuple[str, ...] = ()
    is_whole: bool = False
    optional: tuple[str, ...] = ()
    allows_others: bool = False


class Conversation(NamedTuple):
    """The turns of a case, and the topic before the first one; empty for the agent's start."""

    turns: Sequence[CoveredTurn]
    topic: str = ""


class TestedCase(NamedTuple):
    """What a case of a test expects, its name for people, and why it does not count; empty if it counts."""

    label: str
    conversation: Conversation
    why_not: str = ""


TestedCase.__test__ = False  # type: ignore[attr-defined] # pytest must not collect it


@dataclass(frozen=True)
class Inventory:
    """The parts of an agent, and the topic in which its conversations begin; empty if it has none."""

    parts: tuple[AgentPart, ...]
    start: str = ""

    @cached_property
    def topics(self) -> Mapping[str, str]:
        """Return the names of topics by the words that tests may use, in lower case."""
        return {word.casefold(): part.name for part in self.parts if part.kind == "topic" for word in part.words}

    @cached_property
    def actions(self) -> Mapping[str, Sequence[AgentPart]]:
        """Return the actions by the words that tests may use, in lower case."""
        found: dict[str, list[AgentPart]] = {}
        for part in self.parts:
            for word in dict.fromkeys(word.casefold() for word in part.words) if part.kind == "action" else ():
                found.setdefault(word, []).append(part)
        return found

    def topic_named(self, word: str) -> str:
        """Return the name of a topic; a word that no topic has is returned without the ids of orgs."""
        plain = plain_name(word.strip())
        return self.topics.get(word.strip().casefold()) or self.topics.get(plain.casefold(), plain)

    def actions_named(self, word: str) -> Sequence[AgentPart]:
        """Return the actions that a word means; several topics may have actions with one name."""
        return self.actions.get(word.strip().casefold()) or self.actions.get(plain_name(word.strip()).casefold(), ())


class Touched(NamedTuple):
    """The parts that a conversation uses, and the guards whose entries it does not use."""

    used: frozenset[AgentPart]
    unused: frozenset[AgentPart]


@dataclass(frozen=True, slots=True)
class PartCoverage:
    """A part, and what covers it.

    Attributes:
        cases: the names of the cases that count.
        others: those that do not count: quarantined, to be reviewed, or not run.
        lacks: for a guard, what no case expects: that its entry is `used`, or that it is `not used`.
        seen: how many case results of the newest runs show it.
    """

    part: AgentPart
    cases: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    seen: int = 0

    @property
    def is_covered(self) -> bool:
        """Return whether cases that count cover it."""
        return bool(self.cases) and not self.lacks


@dataclass(frozen=True, slots=True)
class AgentCoverage:
    """The coverage of an agent by the cases of its tests.

    Attributes:
        tests: the number of its tests, and `cases` that of their cases that count.
        not_counted: the number of other cases by the reason.
        runs: the number of runs that show what was seen.
        listed_at: when the agent listed its parts, in seconds since the epoch; None if they were read just now.
        is_outdated: whether its settings or its source have changed since then.
    """

    agent: str
    parts: tuple[PartCoverage, ...]
    tests: int = 0
    cases: int = 0
    not_counted: Mapping[str, int] = field(default_factory=dict)
    runs: int = 0
    listed_at: float | None = None
    is_outdated: bool = False

    def of_kind(self, kind: PartKind) -> tuple[PartCoverage, ...]:
        """Return the parts of a kind."""
        return tuple(row for row in self.parts if row.part.kind == kind)

    @property
    def share(self) -> float:
        """Return the share of all parts that are covered, from 0 to 1."""
        return share_of(self.parts)

    def is_below(self, percent: float) -> bool:
        """Return whether fewer parts are covered than this percentage of them; 29 of 50 are not below 58 %."""
        return not self.parts or 100 * sum(row.is_covered for row in self.parts) < percent * len(self.parts)


def share_of(rows: Sequence[PartCoverage]) -> float:
    """Return the share of parts that are covered, from 0 to 1; no parts are not covered."""
    return sum(row.is_covered for row in rows) / len(rows) if rows else 0.0


def cover(inventory: Inventory, cases: Iterable[TestedCase], seen: Iterable[Conversation]) -> tuple[PartCoverage, ...]:
    """Return the coverage of each part by cases, and how often conversations of runs show it."""
    used: dict[AgentPart, list[str]] = {}
    unused: dict[AgentPart, list[str]] = {}
    others: dict[AgentPart, list[str]] = {}
    for case in cases:
        touched = touch(inventory, case.conversation)
        for part in touched.used:
            (others if case.why_not else used).setdefault(part, []).append(case.label)
        for part in touched.unused if not case.why_not else ():
            unused.setdefault(part, []).append(case.label)
    times: dict[AgentPart, int] = {}
    for conversation in seen:
        for part in touch(inventory, conversation).used:
            times[part] = times.get(part, 0) + 1
    return tuple(
        PartCoverage(
            part,
            tuple(dict.fromkeys([*used.get(part, ()), *unused.get(part, ())])),
            tuple(others.get(part, ())),
            _lacking(part, used, unused),
            times.get(part, 0),
        )
        for part in inventory.parts
    )


def _lacking(part: AgentPart, used: Mapping[AgentPart, object], unused: Mapping[AgentPart, object]) -> tuple[str, ...]:
    sides = (("used", used), ("not used", unused)) if part.kind == "guard" else ()
    return tuple(side for side, parts in sides if part not in parts)


def touch(inventory: Inventory, conversation: Conversation) -> Touched:
    """Return the parts that a conversation uses, and the guards whose entries it does not use."""
    used: set[AgentPart] = set()
    unused: set[AgentPart] = set()
    at = inventory.topic_named(conversation.topic) if conversation.topic else inventory.start
    for turn in conversation.turns:
        begin = inventory.start if turn.is_whole and turn.handoffs is not None else at
        stops = [inventory.topic_named(stop) for stop in turn.handoffs or ()]
        last = inventory.topic_named(turn.topic) if turn.topic else ""
        if last and last != (stops[-1] if stops else begin):
            stops.append(last)
        steps = [*zip([begin, *stops], stops, strict=False)]
        named = {*stops, *([last] if last else [])}
        actions = _actions_of(inventory, turn.actions or (), named or {at})
        allowed = actions | _actions_of(inventory, turn.optional, named or {at})
        used |= {*actions, *_places_of(inventory, named, steps)}
        for guard in (part for part in inventory.parts if part.kind == "guard"):
            if _uses(guard, named, steps, actions):
                used.add(guard)
            elif _goes_without(guard, turn, named, last) and not _uses(guard, named, steps, allowed):
                unused.add(guard)
        at = stops[-1] if stops else last or at
    return Touched(frozenset(used), frozenset(unused))


def _places_of(inventory: Inventory, named: set[str], steps: Sequence[tuple[str, str]]) -> Iterator[AgentPart]:
    for part in inventory.parts:
        if (part.kind == "topic" and part.name in named) or (
            part.kind == "transition" and (part.topic, part.name) in steps
        ):
            yield part


def _actions_of(inventory: Inventory, names: Iterable[str], topics: set[str]) -> set[AgentPart]:
    """Return the actions of a turn with these names: those of its topics, or else all."""
    found: set[AgentPart] = set()
    for name in names:
        known = inventory.actions_named(name)
        found |= {part for part in known if part.topic in topics} or {*known}
    return found


def _uses(guard: AgentPart, named: set[str], steps: Sequence[tuple[str, str]], actions: set[AgentPart]) -> bool:
    if guard.guarded is None:
        return False
    kind, name = guard.guarded
    if kind == "transition":
        return (guard.topic, name) in steps
    is_there = not named or guard.topic in named
    return is_there and any(part.name == name and part.topic in {"", guard.topic} for part in actions)


def _goes_without(guard: AgentPart, turn: CoveredTurn, named: set[str], last: str) -> bool:
    """Return whether a turn in the topic of a guard is expected not to use its entry."""
    if guard.guarded is None or guard.topic not in named:
        return False
    kind, name = guard.guarded
    if kind == "transition":
        return last == guard.topic
    is_closed = turn.actions is not None and not turn.allows_others
    return is_closed or any(fnmatchcase(name, pattern) for pattern in turn.not_actions)
