"""Actions, topics and handoffs: the agent did what was expected, as strictly as the project or the run requires."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from evalmeta.engine.scorers.matching import common_length_of_masks
from evalmeta.engine.scorers.results import broken, first_few, judged, undecided
from evalmeta.model.expectations import parse_actions, render_actions
from evalmeta.model.expected_calls import ALLOWED

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated_data import Action, GeneratedData
    from evalmeta.model.run import TestResult
    from evalmeta.model.run_options import ActionMatch, TopicMatch

    Items = Sequence[Hashable]


ACTIONS_UNKNOWN: Final = "the agent does not report its actions; if it took none, it must return an empty list"
"""Why actions are undecided."""


class MatchRule(NamedTuple):
    """A way of matching two sequences, expected before actual, and the differences that it allows."""

    matches: Callable[[Items, Items], bool]
    allows_extra: bool = False
    allows_missing: bool = False
    allows_reordering: bool = False


class _Expected(NamedTuple):
    names: tuple[str, ...]
    text: str


def action_scorer(match: ActionMatch = "exact") -> Scorer:
    """Return the scorer of actions; every rule counts repeated actions.

    - `exact`: the same actions in the same order; `[]` means that no action was taken.
    - `in_order`: the expected actions in their order; other actions can come before, between and after them.
    - `any_order`: the same actions in any order, and no others.
    - `superset`: every expected action in any order; other actions are allowed, so `[]` always passes.
    - `subset`: only expected actions, in any order; some can be missing.

    The score is 1 or 0 and the detail is `similarity`, with every rule. Without an expectedValue, and if
    the agent does not report its actions, the result is UNDECIDED, `[]` included; an expectedValue that is
    not a list of actions is an ERROR. The term `match` of an expectation replaces the rule.
    """

    def score_actions(expectation: Expectation, exchange: Exchange) -> TestResult:
        taken = exchange.generated.actions
        actual = tuple([action.name for action in taken or ()])
        if expectation.expected_value is None:
            explanation = "expectedValue is missing, so the actions cannot be compared"
            return undecided(expectation, explanation, actual="" if taken is None else render_actions(actual))
        expected = _expected(expectation.expected_value)
        if expected is None:
            value = expectation.expected_value[:100]
            reason = f"the expectedValue is not a list of actions such as ['A', 'B']: {value!r}"
            return broken(expectation, reason, actual=render_actions(actual))
        if taken is None:
            return undecided(expectation, ACTIONS_UNKNOWN, expected=expected.text)
        rule = MATCH_RULES[match_name(expectation, match)]
        if actual == expected.names:
            explanation = "the actions are as expected" if actual else "no action was taken, as expected"
            text = expected.text
            return judged(expectation, passed=True, expected=text, actual=text, explanation=explanation, detail=1.0)
        passed, detail = rule.matches(expected.names, actual), similarity(expected.names, actual)
        why = ("as expected; " if passed else "") + _differences(expected.names, actual, rule)
        text, taken_text = expected.text, render_actions(actual)
        return judged(expectation, passed=passed, expected=text, actual=taken_text, explanation=why, detail=detail)

    return score_actions


def match_name(expectation: Expectation, match: ActionMatch) -> ActionMatch:
    """Return the name of the rule of an expectation of actions: its term `match`, or else `match`."""
    own = expectation.terms.get("match") if expectation.terms else None
    return cast("ActionMatch", own) if isinstance(own, str) and own in MATCH_RULES else match


def similarity(expected: Items, actual: Items) -> float:
    """Return the F1 of the longest common subsequence, 0 to 1: 2 x common / (expected + actual); 1 if both empty."""
    if expected == actual:
        return 1.0
    return 2 * common_length(expected, actual) / (len(expected) + len(actual))


def common_length(left: Items, right: Items) -> int:
    """Return the length of the longest common subsequence."""
    positions: Counter[Hashable] = Counter()
    for index, item in enumerate(left):
        positions[item] |= 1 << index
    return common_length_of_masks(len(left), [positions[item] for item in right])


def first_difference(expected: Items, actual: Items) -> int | None:
    """Return the first index at which the sequences differ; None if one is the start of the other."""
    pairs = enumerate(zip(expected, actual, strict=False))
    return next((index for index, (one, other) in pairs if one != other), None)


def first_misplaced(expected: Items, actual: Items) -> int | None:
    """Return the index of the first expected item that does not follow those before it; None for a subsequence."""
    rest = iter(actual)
    return next((index for index, item in enumerate(expected) if item not in rest), None)


MATCH_RULES: Final[Mapping[str, MatchRule]] = {
    "exact": MatchRule(lambda expected, actual: expected == actual),
    "in_order": MatchRule(lambda expected, actual: first_misplaced(expected, actual) is None, allows_extra=True),
    "any_order": MatchRule(lambda expected, actual: Counter(expected) == Counter(actual), allows_reordering=True),
    "superset": MatchRule(
        lambda expected, actual: Counter(expected) <= Counter(actual), allows_extra=True, allows_reordering=True
    ),
    "subset": MatchRule(
        lambda expected, actual: Counter(actual) <= Counter(expected), allows_missing=True, allows_reordering=True
    ),
}


# Every iteration of a case has the same list.
@lru_cache(maxsize=1024)
def _expected(text: str) -> _Expected | None:
    names = parse_actions(text)
    return None if names is None else _Expected(names, render_actions(names))


def _differences(expected: Sequence[str], actual: Sequence[str], rule: MatchRule) -> str:
    wanted, taken = Counter(expected), Counter(actual)
    missing, extra = wanted - taken, taken - wanted
    common = len(expected) - missing.total()
    parts = (
        ("missing", ", ".join(missing.elements()), rule.allows_missing),
        ("extra", ", ".join(extra.elements()), rule.allows_extra),
        ("order", _misplaced(expected, actual, rule, common), rule.allows_reordering),
    )
    return "; ".join(f"{title}{ALLOWED if allowed else ''}: {text}" for title, text, allowed in parts if text)


def _misplaced(expected: Sequence[str], actual: Sequence[str], rule: MatchRule, common: int) -> str:
    """Return the pairs of names that changed places; with repeated names, the first place that differs.

    `common` is the number of actions in both, in any order.
    """
    if common_length(expected, actual) == common:
        return ""
    first = {name: expected.index(name) for name in set(expected)}
    shared = [name for name in actual if name in first]
    swaps = [f"{one} before {other}" for one, other in pairwise(shared) if first[one] > first[other]]
    if swaps:
        return ", ".join(dict.fromkeys(swaps))
    if rule.allows_extra:
        index = first_misplaced(expected, actual) or 0
        return f"{expected[index]} does not come after {', '.join(expected[:index])}"
    index = first_difference(expected, actual) or 0
    return f"action {index + 1} is {actual[index]}, not {expected[index]}"


def score_not_actions(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Pass if no action has a name that matches the expectedValue, a pattern of `fnmatch`; unreported: UNDECIDED."""
    taken, pattern = exchange.generated.actions, expectation.expected_value or ""
    shown = f"no action {pattern}"
    if taken is None:
        return undecided(expectation, ACTIONS_UNKNOWN, expected=shown)
    names = [action.name for action in taken]
    forbidden = list(dict.fromkeys(name for name in names if fnmatchcase(name, pattern)))
    why = f"the agent took {first_few(forbidden)}" if forbidden else f"the agent took no action {pattern}"
    actual = render_actions(names)
    return judged(expectation, passed=not forbidden, expected=shown, actual=actual, explanation=why)


def score_max_actions(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Pass if the agent took at most as many actions as the expectedValue says; unreported ones are UNDECIDED."""
    taken, most = exchange.generated.actions, expectation.expected_value or ""
    shown = f"at most {most}"
    if taken is None:
        return undecided(expectation, ACTIONS_UNKNOWN, expected=shown)
    number = len(taken)
    why = f"{number} {'action' if number == 1 else 'actions'}, {shown} expected"
    actual = render_actions(action.name for action in taken)
    return judged(expectation, passed=number <= int(most), expected=shown, actual=actual, explanation=why)


# Orgs name promoted topics p_<planner id>_<Name>_<hash>; both ids begin with the key prefix 16j.
_PROMOTED: Final = re.compile(r"p_16j[0-9A-Za-z]+_(\w+)_16j[0-9A-Za-z]+", re.ASCII)
# Some agents have one action transfer_to_agent with an argument, others have one action for each agent.
_TRANSFER: Final = "transfer_to_"


def topic_scorer(match: TopicMatch = "exact", *, aliases: bool = True) -> Scorer:
    """Return the scorer of topics; names are case-sensitive, and the score is 1 or 0.

    `exact` passes if both names are the same, `contains` if the expected name is a part of
    the actual one. With `aliases`, promoted topics are compared by their short names
    (`plain_topic`). Without an expectedValue, and if the agent does not report its topic, the
    result is UNDECIDED. The term `match` of an expectation replaces the rule.
    """
    normalise = plain_topic if aliases else str.strip

    def score_topic(expectation: Expectation, exchange: Exchange) -> TestResult:
        actual = exchange.generated.topic or ""
        expected = (expectation.expected_value or "").strip()
        if not expected:
            return undecided(expectation, "expectedValue is missing, so the topic cannot be compared", actual=actual)
        if exchange.generated.topic is None:
            return undecided(expectation, "the agent does not report its topic", expected=expected)
        expected_name, actual_name = normalise(expected), normalise(actual)
        contains = (expectation.terms.get("match", match) if expectation.terms else match) == "contains"
        passed = expected_name in actual_name if contains else expected_name == actual_name
        if passed:
            explanation = f"the topic is {actual_name}"
        else:
            got = f"got {actual_name}" if actual_name else "but the agent chose no topic"
            explanation = f"expected {'a topic that contains' if contains else 'the topic'} {expected_name}, {got}"
        return judged(expectation, passed=passed, expected=expected, actual=actual, explanation=explanation)

    return score_topic


@lru_cache(maxsize=1024)
def plain_topic(name: str) -> str:
    """Return a topic's short name: `Name` for `p_16jPl000000GwEX_Name_16j8eeef13560aa`."""
    name = name.strip()
    promoted = _PROMOTED.fullmatch(name) if name.startswith("p_") else None
    return promoted[1] if promoted else name


def score_handoff(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Pass if the last handoff of the turn is to the expected agent; names are case-sensitive.

    The agent reports its handoffs, or they are the transfers among its actions. The score is 1 or 0. Without either the
    result is UNDECIDED, because not every subject reports them.
    """
    expected = (expectation.expected_value or "").strip()
    if not expected:
        return undecided(expectation, "expectedValue is missing, so the agent cannot be compared")
    generated = exchange.generated
    agents = _transfers(generated) if generated.handoffs is None else generated.handoffs
    if not agents and generated.handoffs is None:
        explanation = "the agent reported no handoff: no action transfer_to_agent with agent_name, or transfer_to_NAME"
        return undecided(expectation, explanation, expected=expected)
    actual = agents[-1] if agents else ""
    passed = actual == expected
    explanation = f"the agent handed off to {actual or 'no other'}" + ("" if passed else f", not to {expected}")
    return judged(expectation, passed=passed, expected=expected, actual=actual, explanation=explanation)


def score_handoffs(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Pass if the conversation up to this turn went through the expected agents or topics, in this order.

    A turn adds the handoffs that the agent reports; or else the agents that its transfers name, and then its topic. A
    repeated name counts once until another one follows. A turn without a topic stays where it was if the agent reports
    transfers. What is not reported is UNDECIDED.
    """
    expected = parse_actions(expectation.expected_value or "") or ()
    text = render_actions(expected)
    turns = [*(turn.generated for turn in exchange.earlier), exchange.generated]
    has_transfers = any(map(_transfers, turns))
    went: list[str] = []
    for place, turn in enumerate(turns, 1):
        agents = _went_to(turn, has_transfers=has_transfers)
        if agents is None:
            of_turn = f" in turn {place}" if len(turns) > 1 else ""
            why = f"the agent reports no handoffs{of_turn}: no topic, and no action transfer_to_agent"
            return undecided(expectation, why, expected=text)
        went += filter(None, agents)
    actual = tuple(name for place, name in enumerate(went) if not place or went[place - 1] != name)
    passed = actual == expected
    taken = render_actions(actual)
    if passed:
        why = "the handoffs are as expected"
    else:
        differing = first_difference(expected, actual)
        place = min(len(expected), len(actual)) if differing is None else differing
        wanted, got = ((names[place] if place < len(names) else "no other one") for names in (expected, actual))
        why = f"handoff {place + 1}: expected {wanted}, got {got}"
    return judged(expectation, passed=passed, expected=text, actual=taken, explanation=why)


def _went_to(turn: GeneratedData, *, has_transfers: bool) -> Sequence[str] | None:
    """Return the agents or topics to which the conversation went in a turn; None if that is not reported."""
    if turn.handoffs is not None:
        return turn.handoffs
    agents = _transfers(turn)
    if turn.topic is None and not agents and (turn.actions is None or not has_transfers):
        return None
    return [*agents, turn.topic or ""]


def _transfers(turn: GeneratedData) -> list[str]:
    return [name for action in turn.actions or () if (name := _agent_of(action))]


def _agent_of(action: Action) -> str:
    if action.name == "transfer_to_agent" and isinstance(action.input, Mapping):
        values = (action.input.get(name) for name in ("agent_name", "agent"))
        return next((value for value in values if isinstance(value, str)), "")
    return action.name.removeprefix(_TRANSFER) if action.name.startswith(_TRANSFER) else ""
