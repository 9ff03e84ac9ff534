"""Trajectories: the agent made the expected calls with the expected arguments.

What an agent does not report is unknown: a result is UNDECIDED if the unknown parts of its calls decide.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.engine.scorers.actions import ACTIONS_UNKNOWN, MATCH_RULES, action_scorer, match_name
from evalmeta.engine.scorers.matching import aligned, common_length_of_masks, matching
from evalmeta.engine.scorers.results import averaged, broken, first_few, judged, threshold_of, undecided
from evalmeta.model.expected_calls import ALLOWED, NO_CALL, ExpectedCall, made_call_text, read_call
from evalmeta.model.expected_values import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalmeta.engine.interfaces import Exchange, Scored, Scorer
    from evalmeta.engine.scorers.matching import Row
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated_data import Action
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import TestResult
    from evalmeta.model.run_options import ActionMatch


_MAX_CALLS: Final = 10
_MAX_DIFFERENCES: Final = 5
# The alignment of longer lists takes too long; they are shown call by call.
_MAX_ALIGNED: Final = 40_000
# What counts as the expected call: only what is certain, or also what may be.
_ACCEPTED: Final = (frozenset({True}), frozenset({True, None}))
_RULES: Final[Mapping[str, ActionMatch]] = {"EXACT": "exact", "IN_ORDER": "in_order", "ANY_ORDER": "superset"}


def match_of_calls(expectation: Expectation) -> ActionMatch:
    """Return the name of the rule of an expectation of calls: that of its term `match_type`, or else `exact`."""
    return _RULES.get(str(expectation.terms.get("match_type")), "exact")


def score_trajectory(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Score 1 if the agent made the `calls` of the terms, else 0; the mean of a case must reach the threshold.

    The terms choose how strictly (`match_type`):

    - `EXACT`: the same calls in the same order and no others; `[]` means that no call was made.
    - `IN_ORDER`: the expected calls in their order; other calls can come before, between and after them.
    - `ANY_ORDER`: every expected call as often as it is expected; other calls are allowed.

    Calls are equal if their names are equal and, unless the terms set `ignore_args`, their
    arguments are the same JSON: 1 equals 1.0, and true does not equal 1. The detail is the F1 of
    the longest common subsequence. If the agent does not report its actions, the score is 0, as in ADK; if
    no calls are expected then, and without expected calls, the result is UNDECIDED. With `"missing": "empty"`, no calls
    are expected. Malformed terms are an ERROR.
    """
    terms = expectation.terms
    made = exchange.generated.actions
    taken = _list(list(map(made_call_text, made or ())))
    match_type, calls = terms.get("match_type", "EXACT"), terms.get("calls")
    mode = _RULES.get(match_type) if isinstance(match_type, str) else None
    if mode is None:
        reason = f"{match_type!r:.50} is not a valid match_type; use one of {', '.join(_RULES)}"
        return broken(expectation, reason, actual=taken)
    if calls is None and terms.get("missing") != "empty":
        return undecided(expectation, "the turn does not say which calls are expected", actual=taken)
    names_only = terms.get("ignore_args") is True
    expected = _prepared([] if calls is None else calls, names_only=names_only, are_recorded=True)
    if isinstance(expected, str):
        reason = f'the expected calls are not a list of objects with "name" and "args": {expected}'
        return broken(expectation, reason, actual=taken)
    wanted = _list(list(map(str, expected)))
    if made is None and expected:
        why = f"{ACTIONS_UNKNOWN}; as in ADK, this counts as no calls"
        return averaged(expectation, score=0.0, expected=wanted, actual="", explanation=why, detail=0.0)
    if made is None:
        return undecided(expectation, ACTIONS_UNKNOWN, expected=wanted)._replace(threshold=threshold_of(expectation))
    trajectory = Trajectory(expected, made, mode, is_known=True)
    passed = trajectory.is_certain
    if passed:
        explanation = "the calls are as expected" if expected else "no calls were expected"
        if unexpected := trajectory.unexpected_text:
            explanation += f"; {unexpected}"
    else:
        explanation = trajectory.explanation
        wanted, taken = trajectory.lines
    return averaged(
        expectation,
        score=float(passed),
        expected=wanted,
        actual=taken,
        explanation=f"{explanation}; arguments are not compared" if names_only else explanation,
        detail=trajectory.similarity,
    )


def calls_scorer(match: ActionMatch = "exact") -> Scorer:
    """Return the scorer of actions, which also compares their arguments if the terms have `calls`.

    An agent that reports only the names of actions whose arguments matter is UNDECIDED.
    """
    by_name = action_scorer(match)

    def score_calls(expectation: Expectation, exchange: Exchange) -> Scored:
        if not expectation.terms or "calls" not in expectation.terms:
            return by_name(expectation, exchange)
        expected = _prepared(expectation.terms["calls"])
        made = exchange.generated.actions
        if isinstance(expected, str):
            return broken(expectation, f"the calls of the terms are not a list of calls: {expected}")
        if made is None:
            return undecided(expectation, ACTIONS_UNKNOWN, expected=_list(list(map(str, expected))))
        return _judged(expectation, Trajectory(expected, made, match_name(expectation, match)))

    return score_calls


def _judged(expectation: Expectation, trajectory: Trajectory) -> TestResult:
    expected, actual = trajectory.texts
    if trajectory.is_certain:
        why = "the actions and their arguments are as expected"
        why += f"; {unexpected}" if (unexpected := trajectory.unexpected_text) else ""
    elif trajectory.is_possible:
        return undecided(expectation, trajectory.unknown_text, expected=_list(expected), actual=_list(actual))
    else:
        wanted, taken = trajectory.lines
        return judged(
            expectation,
            passed=False,
            expected=wanted,
            actual=taken,
            explanation=trajectory.explanation,
            detail=trajectory.similarity,
        )
    wanted, taken = _list(expected), _list(actual)
    return judged(
        expectation, passed=True, expected=wanted, actual=taken, explanation=why, detail=trajectory.similarity
    )


def _list(calls: Sequence[str]) -> str:
    return f"[{', '.join(calls)}]"


def _prepared(
    calls: JsonValue, *, names_only: bool = False, are_recorded: bool = False
) -> tuple[ExpectedCall, ...] | str:
    """Return the expected calls of terms, or why they cannot be compared."""
    return calls_of_terms(orjson.dumps(calls, default=dict), names_only=names_only, are_recorded=are_recorded)


# Every case with the same calls shares them.
@lru_cache(maxsize=1_024)
def calls_of_terms(source: bytes, *, names_only: bool, are_recorded: bool) -> tuple[ExpectedCall, ...] | str:
    """Return the expected calls of the JSON of terms, or why they cannot be compared."""
    calls, faults = orjson.loads(source), list[Fault]()
    if not isinstance(calls, list):
        return source.decode()[:100]
    if are_recorded:
        calls = [{"args": None, **call} if isinstance(call, dict) else [] for call in calls]
    expected = tuple(read_call(call, (place,), faults) for place, call in enumerate(calls))
    if faults:
        return faults[0].message
    return tuple(ExpectedCall(call.name) for call in expected) if names_only else expected


@dataclass(frozen=True)
class Trajectory:
    """Expected calls and the calls that an agent made; if `is_known`, calls without an input had none."""

    expected: Sequence[ExpectedCall]
    made: Sequence[Action]
    mode: ActionMatch
    is_known: bool = False

    def _fit(self, index: int, at: int) -> bool | None:
        """Return whether a call is an expected one; None if it may be."""
        expected, call = self.expected[index], self.made[at]
        return expected.name == call.name and expected.fits(call, is_known=self.is_known)

    @cached_property
    def _diagonal(self) -> list[bool | None]:
        """Return whether the calls are the expected ones at the same places, as far as both lists go."""
        return [self._fit(at, at) for at in range(min(len(self.expected), len(self.made)))]

    @cached_property
    def _same_names(self) -> list[list[int]]:
        """Return for each call the expected calls of its name."""
        places: dict[str, list[int]] = defaultdict(list)
        for index, call in enumerate(self.expected):
            places[call.name].append(index)
        return [places.get(call.name, []) for call in self.made]

    @cached_property
    def _masks(self) -> tuple[list[int], list[int]]:
        """Return for each call a number whose bits are the expected calls that it is, and one of those it may be.

        This compares every pair of calls of the same name.
        """
        certain, possible = [0] * len(self.made), [0] * len(self.made)
        for at, indexes in enumerate(self._same_names):
            for index in indexes:
                fit = self._fit(index, at)
                if fit is not False:
                    possible[at] |= 1 << index
                    certain[at] |= int(fit is True) << index
        return certain, possible

    @cached_property
    def is_certain(self) -> bool:
        """Return whether the calls are as expected."""
        return self._fits(with_unknown=False)

    @cached_property
    def is_possible(self) -> bool:
        """Return whether the calls may be as expected, if what is unknown is."""
        return self._fits(with_unknown=True)

    def _fits(self, *, with_unknown: bool) -> bool:
        number, made = len(self.expected), len(self.made)
        if self.mode in {"exact", "any_order"} and made != number:
            return False
        is_same = made == number and _ACCEPTED[with_unknown].issuperset(self._diagonal)
        if is_same or self.mode == "exact":
            return is_same
        if self.mode == "in_order":
            return self._first_misplaced(with_unknown=with_unknown) is None
        return len(matching(self._masks[with_unknown])) == (made if self.mode == "subset" else number)

    def _first_misplaced(self, *, with_unknown: bool) -> int | None:
        """Return the first expected call that does not follow those before it; None if all do."""
        index, number = 0, len(self.expected)
        for at in range(len(self.made)):
            if index < number and self._fit(index, at) in _ACCEPTED[with_unknown]:
                index += 1
        return index if index < number else None

    @cached_property
    def similarity(self) -> float:
        """Return the F1 of the longest common subsequence, 0 to 1; 1 if both are empty."""
        number, total = len(self.expected), len(self.expected) + len(self.made)
        if not total:
            return 1.0
        is_whole = all(self._diagonal) and number <= len(self.made)
        is_whole = is_whole or (self.mode == "in_order" and self.is_certain)
        return 2 * (number if is_whole else common_length_of_masks(number, self._masks[0])) / total

    @cached_property
    def _pairs(self) -> dict[int, int]:
        """Return which call is which expected call, as many as possible."""
        if False not in self._diagonal:
            return {at: at for at in range(len(self._diagonal))}
        return matching(self._masks[1])

    @cached_property
    def _changed(self) -> dict[int, int]:
        """Return the calls of the same name as the expected calls that were not made, by their indexes."""
        matched = set(self._pairs.values())
        left: dict[str, deque[int]] = defaultdict(deque)
        for at, call in enumerate(self.made):
            if at not in matched:
                left[call.name].append(at)
        changed = {}
        for index, expected in enumerate(self.expected):
            if index not in self._pairs and left.get(expected.name):
                changed[index] = left[expected.name].popleft()
        return changed

    @cached_property
    def _missing(self) -> list[int]:
        return [at for at in range(len(self.expected)) if at not in self._pairs and at not in self._changed]

    @cached_property
    def _unexpected(self) -> list[int]:
        matched = {*self._pairs.values(), *self._changed.values()}
        return [at for at in range(len(self.made)) if at not in matched]

    @property
    def texts(self) -> tuple[list[str], list[str]]:
        """Return the expected calls and the calls as texts; results are shown if one of them is compared."""
        with_results = any(call.compares_results for call in self.expected)
        made = [made_call_text(call, with_results=with_results) for call in self.made]
        return list(map(str, self.expected)), made

    @property
    def lines(self) -> tuple[str, str]:
        """Return the expected calls and the calls, one to a line, such that a call stands beside the expected one."""
        expected, made = self.texts
        rows = self._rows()
        lines = [
            (NO_CALL if index is None else _one_line(expected[index]), NO_CALL if at is None else _one_line(made[at]))
            for index, at in rows
        ]
        return "\n".join(left for left, _ in lines) or "[]", "\n".join(right for _, right in lines) or "[]"

    def _rows(self) -> list[Row]:
        if self.mode in {"exact", "in_order"} and len(self.expected) * len(self.made) <= _MAX_ALIGNED:
            return aligned(len(self.expected), len(self.made), self._weight)
        together = {**self._pairs, **self._changed}
        rows: list[Row] = [(index, together.get(index)) for index in range(len(self.expected))]
        return [*rows, *((None, at) for at in self._unexpected)]

    def _weight(self, index: int, at: int) -> int:
        """Return how well a call stands beside an expected one; 0 for another name."""
        if self.expected[index].name != self.made[at].name:
            return 0
        return 2 if self._masks[1][at] >> index & 1 else 1

    @property
    def unexpected_text(self) -> str:
        """Return which calls were not expected; empty if all were."""
        allowed = ALLOWED if MATCH_RULES[self.mode].allows_extra else ""
        texts = [made_call_text(self.made[at]) for at in self._unexpected]
        return f"unexpected{allowed}: {first_few(texts)}" if texts else ""

    @property
    def explanation(self) -> str:
        """Return what differs."""
        rule = MATCH_RULES[self.mode]
        missing = [str(self.expected[index]) for index in self._missing]
        allowed = ALLOWED if rule.allows_missing else ""
        parts = (
            self._order() if not missing and not self._changed and not rule.allows_reordering else "",
            *(difference for pair in islice(self._changed.items(), _MAX_CALLS) for difference in self._different(pair)),
            f"missing{allowed}: {first_few(missing)}" if missing else "",
            self.unexpected_text,
        )
        return "; ".join(part for part in parts if part)

    def _different(self, pair: tuple[int, int]) -> Iterator[str]:
        index, at = pair
        differences = self.expected[index].differences(self.made[at], is_known=self.is_known)
        return islice(differences, _MAX_DIFFERENCES)

    def _order(self) -> str:
        if self.mode == "exact":
            if self._unexpected or False not in self._diagonal:
                return ""
            index = self._diagonal.index(False)
            return f"call {index + 1} is {made_call_text(self.made[index])}, not {self.expected[index]}"
        misplaced = self._first_misplaced(with_unknown=True)
        if misplaced is None:
            return ""
        return f"order: {self.expected[misplaced]} does not come after {first_few(self.expected[:misplaced])}"

    @property
    def unknown_text(self) -> str:
        """Return what the agent does not report of the calls that may be the expected ones."""
        same_names = ((index, at) for at, indexes in enumerate(self._same_names) for index in indexes)
        unknown = self._unknown(self._pairs.items()) or self._unknown(same_names)
        return f"the agent does not report {first_few(unknown)}, so the calls cannot be compared"

    def _unknown(self, pairs: Iterable[tuple[int, int]]) -> list[str]:
        places = (self.expected[index].unknown(self.made[at], is_known=self.is_known) for index, at in pairs)
        return list(dict.fromkeys(chain.from_iterable(places)))


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())
