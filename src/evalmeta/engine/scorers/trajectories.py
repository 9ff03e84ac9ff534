"""Trajectories: the agent made the expected calls with the expected arguments."""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.references import has_details
from evalmeta.engine.scorers.actions import (
    ACTIONS_UNKNOWN,
    MATCH_RULES,
    action_scorer,
    first_difference,
    first_misplaced,
    match_rule,
    similarity,
)
from evalmeta.engine.scorers.results import averaged, broken, first_few, judged, threshold_of, undecided
from evalmeta.model.run import TestResult, Verdict

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Exchange, Scorer
    from evalmeta.engine.scorers.actions import MatchRule
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated_data import Action
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run_options import ActionMatch


_MAX_CALLS: Final = 10
_MAX_DIFFERENCES: Final = 5
_MAX_CHARS: Final = 100
_RULES: Final = {
    "EXACT": MATCH_RULES["exact"],
    "IN_ORDER": MATCH_RULES["in_order"],
    "ANY_ORDER": MATCH_RULES["superset"],
}


class _Call(NamedTuple):
    """One call; two calls are equal if their keys are."""

    name: str
    args: JsonObject
    key: Hashable

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={_text(value)}' for name, value in self.args.items())})"


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
    names_only = terms.get("ignore_args") is True
    made = exchange.generated.actions
    actual = [_call(action.name, action.input, names_only=names_only) for action in made or ()]
    match_type, calls = terms.get("match_type", "EXACT"), terms.get("calls")
    rule = _RULES.get(match_type) if isinstance(match_type, str) else None
    if rule is None:
        reason = f"{match_type!r:.50} is not a valid match_type; use one of {', '.join(_RULES)}"
        return broken(expectation, reason, actual=_list(actual))
    if calls is None and terms.get("missing") != "empty":
        return undecided(expectation, "the turn does not say which calls are expected", actual=_list(actual))
    expected = _calls([] if calls is None else calls, names_only=names_only)
    if expected is None:
        reason = f'the expected calls are not a list of objects with "name" and "args": {_text(calls)}'
        return broken(expectation, reason, actual=_list(actual))
    if made is None and expected:
        why = f"{ACTIONS_UNKNOWN}; as in ADK, this counts as no calls"
        return averaged(expectation, score=0.0, expected=_list(expected), actual="", explanation=why, detail=0.0)
    if made is None:
        result = undecided(expectation, ACTIONS_UNKNOWN, expected=_list(expected))
        return result._replace(threshold=threshold_of(expectation))
    passed, detail = _matched(expected, actual, rule)
    if not passed:
        explanation = _differences(expected, actual, rule)
    else:
        explanation = "the calls are as expected" if expected else "no calls were expected"
        if unexpected := _without(actual, expected):
            explanation += f"; unexpected (allowed): {first_few(unexpected)}"
    return averaged(
        expectation,
        score=float(passed),
        expected=_list(expected),
        actual=_list(actual),
        explanation=f"{explanation}; arguments are not compared" if names_only else explanation,
        detail=detail,
    )


def _matched(expected: Sequence[_Call], actual: Sequence[_Call], rule: MatchRule) -> tuple[bool, float]:
    keys = [call.key for call in expected], [call.key for call in actual]
    return rule.matches(*keys), similarity(*keys)


def calls_scorer(match: ActionMatch = "exact") -> Scorer:
    """Return the scorer of actions, which also compares their arguments if the terms have `calls`.

    Names are judged first, as `action_scorer` does. If the agent reports only the names of actions whose arguments
    matter, the result is UNDECIDED.
    """
    by_name = action_scorer(match)

    def score_calls(expectation: Expectation, exchange: Exchange) -> TestResult | Awaitable[TestResult]:
        result = by_name(expectation, exchange)
        if not expectation.terms or "calls" not in expectation.terms:
            return result
        if not isinstance(result, TestResult) or result.verdict is not Verdict.PASS:
            return result
        return _with_arguments(expectation, exchange.generated.actions or (), match_rule(expectation, match))

    return score_calls


def _with_arguments(expectation: Expectation, made: Sequence[Action], rule: MatchRule) -> TestResult:
    actual, expected = [_call(action.name, action.input) for action in made], _calls(expectation.terms["calls"])
    if expected is None:
        return broken(expectation, "the calls of the terms are not a list of objects", actual=_list(actual))
    passed, detail = _matched(expected, actual, rule)
    wanted, taken = _list(expected), _list(actual)
    explanation = "the actions and their arguments are as expected"
    if not passed:
        # Actions of which only the names are known can be all calls that are missing.
        missing, unknown = _without(expected, actual), {action.name for action in made if not has_details(action)}
        if missing and unknown.issuperset(call.name for call in missing):
            why = "the agent reports only the names of its actions, so their arguments cannot be compared"
            return undecided(expectation, why, expected=wanted, actual=taken)
        explanation = _differences(expected, actual, rule)
    return judged(expectation, passed=passed, expected=wanted, actual=taken, explanation=explanation, detail=detail)


def _calls(value: JsonValue, *, names_only: bool = False) -> list[_Call] | None:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return None
    calls = []
    for call in value:
        name, args = (call.get("name"), call.get("args")) if isinstance(call, Mapping) else (None, None)
        if not isinstance(name, str) or not (args is None or isinstance(args, Mapping)):
            return None
        calls.append(_call(name, args or {}, names_only=names_only))
    return calls


def _call(name: str, args: JsonObject, *, names_only: bool = False) -> _Call:
    return _Call(name, args, name if names_only else (name, _frozen(args)))


def _frozen(value: JsonValue) -> Hashable:
    """Return a key that is equal for equal JSON; in Python True equals 1, in JSON it does not."""
    if isinstance(value, bool):
        return "truth", value
    if isinstance(value, Mapping):
        return frozenset((name, _frozen(inner)) for name, inner in value.items())
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    return "list", *map(_frozen, value)


def _differences(expected: Sequence[_Call], actual: Sequence[_Call], rule: MatchRule) -> str:
    missing, unexpected = _without(expected, actual), _without(actual, expected)
    changed = list(_changed(missing, unexpected))
    order = _misplaced(expected, actual, is_complete=not missing, allows_extra=rule.allows_extra)
    missing = _without(missing, [one for one, _ in changed])
    unexpected = _without(unexpected, [other for _, other in changed])
    arguments = (
        (one.name, islice(_argument_differences(one.args, other.args, ""), _MAX_DIFFERENCES))
        for one, other in changed[:_MAX_CALLS]
    )
    parts = (
        order,
        *(f"{name}: {', '.join(differences)}" for name, differences in arguments),
        f"missing: {first_few(missing)}" if missing else "",
        f"unexpected{' (allowed)' if rule.allows_extra else ''}: {first_few(unexpected)}" if unexpected else "",
    )
    return "; ".join(part for part in parts if part)


def _without(calls: Iterable[_Call], others: Iterable[_Call]) -> list[_Call]:
    """Return the calls that remain when each of the others removes one equal call."""
    left = Counter(call.key for call in others)
    rest = []
    for call in calls:
        if left[call.key]:
            left[call.key] -= 1
        else:
            rest.append(call)
    return rest


def _changed(missing: Iterable[_Call], unexpected: Iterable[_Call]) -> Iterator[tuple[_Call, _Call]]:
    """Pair expected calls with calls of the same name that were made with other arguments."""
    made: dict[str, deque[_Call]] = defaultdict(deque)
    for call in unexpected:
        made[call.name].append(call)
    for call in missing:
        if made[call.name]:
            yield call, made[call.name].popleft()


def _misplaced(expected: Sequence[_Call], actual: Sequence[_Call], *, is_complete: bool, allows_extra: bool) -> str:
    keys = [call.key for call in expected], [call.key for call in actual]
    if not allows_extra:
        index = first_difference(*keys)
        return "" if index is None else f"call {index + 1} is {actual[index]}, not {expected[index]}"
    index = first_misplaced(*keys) if is_complete else None
    return "" if index is None else f"order: {expected[index]} does not come after {first_few(expected[:index])}"


def _argument_differences(expected: JsonValue, actual: JsonValue, path: str) -> Iterator[str]:
    """Yield a text for each place at which two JSON values differ."""
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for name in dict.fromkeys(chain(expected, actual)):
            place = f"{path}.{name}" if path else name
            if name not in actual:
                yield f"{place} is missing, expected {_text(expected[name])}"
            elif name not in expected:
                yield f"{place} is {_text(actual[name])}, which is not expected"
            else:
                yield from _argument_differences(expected[name], actual[name], place)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from _argument_differences(one, other, f"{path}[{index}]")
    elif _frozen(expected) != _frozen(actual):
        yield f"{path} is {_text(actual)}, not {_text(expected)}"


def _list(calls: Iterable[_Call]) -> str:
    return f"[{', '.join(map(str, calls))}]"


def _text(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"
