"""Actions: the agent took the expected actions, as strictly as the project or the run requires."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.scorers.results import broken, judged, undecided
from evalmeta.model.expectations import parse_actions, render_actions

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from evalmeta.engine.interfaces import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.run import ActionMatch, TestResult

    Items = Sequence[Hashable]


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

    The score is 1 or 0 and the detail is `similarity`, whatever the rule. The explanation marks
    differences that the rule allows. Without an expectedValue the result is UNDECIDED; an
    expectedValue that is not a list of actions is an ERROR.
    """
    rule = MATCH_RULES[match]

    def score_actions(expectation: Expectation, exchange: Exchange) -> TestResult:
        actual = tuple([action.name for action in exchange.generated.actions])
        if expectation.expected_value is None:
            explanation = "no expectedValue: there are no actions to compare with"
            return undecided(expectation, explanation, actual=render_actions(actual))
        expected = _expected(expectation.expected_value)
        if expected is None:
            value = expectation.expected_value[:100]
            reason = f"the expectedValue is not a list of actions such as ['A', 'B']: {value!r}"
            return broken(expectation, reason, actual=render_actions(actual))
        if actual == expected.names:
            explanation = "the actions are as expected" if actual else "no action was taken, as expected"
            text = expected.text
            return judged(expectation, passed=True, expected=text, actual=text, explanation=explanation, detail=1.0)
        passed = rule.matches(expected.names, actual)
        return judged(
            expectation,
            passed=passed,
            expected=expected.text,
            actual=render_actions(actual),
            explanation=("as expected; " if passed else "") + _differences(expected.names, actual, rule),
            detail=similarity(expected.names, actual),
        )

    return score_actions


def similarity(expected: Items, actual: Items) -> float:
    """Return the F1 of the longest common subsequence, 0 to 1: 2 x common / (expected + actual).

    Two empty sequences have the similarity 1.
    """
    if expected == actual:
        return 1.0
    return 2 * common_length(expected, actual) / (len(expected) + len(actual))


def common_length(left: Items, right: Items) -> int:
    """Return the length of the longest common subsequence.

    Bit-parallel, after Hyyrö, "Bit-parallel LCS-length computation revisited" (2004):
    one word operation handles many items, so long lists are cheap.
    """
    positions: Counter[Hashable] = Counter()
    for index, item in enumerate(left):
        positions[item] |= 1 << index
    everything = (1 << len(left)) - 1
    row = everything
    for item in right:
        matches = row & positions[item]
        row = ((row + matches) | (row - matches)) & everything
    return len(left) - row.bit_count()


def first_difference(expected: Items, actual: Items) -> int | None:
    """Return the first index at which the sequences differ; None if one is the start of the other."""
    pairs = enumerate(zip(expected, actual, strict=False))
    return next((index for index, (one, other) in pairs if one != other), None)


def first_misplaced(expected: Items, actual: Items) -> int | None:
    """Return the index of the first expected item that does not follow those before it; None for a subsequence."""
    rest = iter(actual)
    return next((index for index, item in enumerate(expected) if item not in rest), None)


MATCH_RULES: Final[Mapping[ActionMatch, MatchRule]] = {
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
    missing = (Counter(expected) - Counter(actual)).elements()
    extra = (Counter(actual) - Counter(expected)).elements()
    parts = (
        ("missing", ", ".join(missing), rule.allows_missing),
        ("extra", ", ".join(extra), rule.allows_extra),
        ("order", _misplaced(expected, actual, rule), rule.allows_reordering),
    )
    return "; ".join(f"{title}{' (allowed)' if allowed else ''}: {text}" for title, text, allowed in parts if text)


def _misplaced(expected: Sequence[str], actual: Sequence[str], rule: MatchRule) -> str:
    """Return the pairs of names that changed places; with repeated names, the first place that differs."""
    if common_length(expected, actual) == (Counter(expected) & Counter(actual)).total():
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
