"""Trajectories: the agent made the expected calls with the expected arguments."""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.engine.scorers.actions import similarity
from evalmeta.engine.scorers.results import averaged, broken, undecided

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from evalmeta.engine.scorer import Exchange
    from evalmeta.model.definition import Expectation
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import TestResult


_Keys = tuple[Hashable, ...]
_SHOWN_CALLS: Final = 10
_SHOWN_DIFFERENCES: Final = 5
_SHOWN_CHARS: Final = 100


class _Call(NamedTuple):
    """One call; two are the same when their keys are."""

    name: str
    args: JsonObject
    key: Hashable

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={_text(value)}' for name, value in self.args.items())})"


class _Rule(NamedTuple):
    """What one way of matching asks for, and whether other calls may have been made."""

    holds: Callable[[_Keys, _Keys], bool]
    extra: bool = True


def score_trajectory(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Gives 1 when the agent made the `calls` of the terms, or else 0; the mean of a case must reach the threshold.

    The terms choose how strictly (`match_type`):

    - `EXACT`: the same calls in the same order and no others; `[]` means that none were made.
    - `IN_ORDER`: the expected calls in their order; others may come before, between and after.
    - `ANY_ORDER`: every expected call as often as it is expected; others may be made too.

    Calls are the same when their names are and, unless the terms say `ignore_args`, their
    arguments are the same JSON: 1 is 1.0, and true is not 1. The detail is the F1 of the
    longest common subsequence. Without calls to expect it is UNDECIDED, or judged as if none
    were expected where the terms say `"missing": "empty"`. Terms that cannot be read give ERROR.
    """
    terms = expectation.terms
    names_only = terms.get("ignore_args") is True
    taken = [_call(action.name, action.input, names_only=names_only) for action in exchange.generated.actions]
    match_type, calls = terms.get("match_type", "EXACT"), terms.get("calls")
    rule = _RULES.get(match_type) if isinstance(match_type, str) else None
    if rule is None:
        return broken(
            expectation, f"match_type is {match_type!r:.50}; it can be {', '.join(_RULES)}", actual=_list(taken)
        )
    if calls is None and terms.get("missing") != "empty":
        return undecided(expectation, "the case gives no expected calls", actual=_list(taken))
    wanted = _calls([] if calls is None else calls, names_only=names_only)
    if wanted is None:
        reason = f'the expected calls are no list of objects with a "name" and "args": {_text(calls)}'
        return broken(expectation, reason, actual=_list(taken))
    expected_keys, taken_keys = tuple(call.key for call in wanted), tuple(call.key for call in taken)
    passed = rule.holds(expected_keys, taken_keys)
    explanation = _explanation(wanted, taken, rule, passed=passed)
    return averaged(
        expectation,
        score=float(passed),
        expected=_list(wanted),
        actual=_list(taken),
        explanation=f"{explanation}; arguments are not compared" if names_only else explanation,
        detail=similarity(expected_keys, taken_keys),
    )


def _calls(value: JsonValue, *, names_only: bool) -> list[_Call] | None:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return None
    calls = []
    for each in value:
        name, args = (each.get("name"), each.get("args")) if isinstance(each, Mapping) else (None, None)
        if not isinstance(name, str) or not (args is None or isinstance(args, Mapping)):
            return None
        calls.append(_call(name, args or {}, names_only=names_only))
    return calls


def _call(name: str, args: JsonObject, *, names_only: bool) -> _Call:
    return _Call(name, args, name if names_only else (name, _frozen(args)))


def _frozen(value: JsonValue) -> Hashable:
    """Gives a key that is equal for the same JSON: Python takes True for 1, JSON does not."""
    if isinstance(value, bool):
        return "truth", value
    if isinstance(value, Mapping):
        return frozenset((name, _frozen(each)) for name, each in value.items())
    if isinstance(value, str) or not isinstance(value, Sequence):
        return value
    return "list", *map(_frozen, value)


def _is_subsequence(wanted: _Keys, taken: _Keys) -> bool:
    rest = iter(taken)
    return all(key in rest for key in wanted)


_RULES: Final[Mapping[str, _Rule]] = {
    "EXACT": _Rule(lambda wanted, taken: wanted == taken, extra=False),
    "IN_ORDER": _Rule(_is_subsequence),
    "ANY_ORDER": _Rule(lambda wanted, taken: Counter(wanted) <= Counter(taken)),
}


def _explanation(wanted: Sequence[_Call], taken: Sequence[_Call], rule: _Rule, *, passed: bool) -> str:
    unexpected = _without(taken, wanted)
    if passed:
        told = "the calls are as expected" if wanted else "no calls were expected"
        return f"{told}; unexpected (allowed): {_some(unexpected)}" if unexpected else told
    missing = _without(wanted, taken)
    changed = list(_changed(missing, unexpected))
    missing = _without(missing, [one for one, _ in changed])
    unexpected = _without(unexpected, [other for _, other in changed])
    parts = (
        _first_too_late(wanted, taken) if rule.extra else _first_difference(wanted, taken),
        *islice(map(_difference, changed), _SHOWN_CALLS),
        f"missing: {_some(missing)}" if missing else "",
        f"unexpected{' (allowed)' if rule.extra else ''}: {_some(unexpected)}" if unexpected else "",
    )
    return "; ".join(part for part in parts if part)


def _without(calls: Iterable[_Call], others: Iterable[_Call]) -> list[_Call]:
    """Gives the calls that have no equal among the others, each of which stands for one."""
    left = Counter(call.key for call in others)
    rest = []
    for call in calls:
        if left[call.key]:
            left[call.key] -= 1
        else:
            rest.append(call)
    return rest


def _changed(missing: Iterable[_Call], unexpected: Iterable[_Call]) -> Iterator[tuple[_Call, _Call]]:
    """Pairs calls of the same name, in their order: one was expected, the other made with other arguments."""
    made: dict[str, deque[_Call]] = defaultdict(deque)
    for call in unexpected:
        made[call.name].append(call)
    for call in missing:
        if made[call.name]:
            yield call, made[call.name].popleft()


def _first_difference(wanted: Sequence[_Call], taken: Sequence[_Call]) -> str:
    pairs = enumerate(zip(wanted, taken, strict=False), 1)
    return next((f"call {place} is {other}, not {one}" for place, (one, other) in pairs if one.key != other.key), "")


def _first_too_late(wanted: Sequence[_Call], taken: Sequence[_Call]) -> str:
    """Tells the first expected call that was made, but not after those before it."""
    if _without(wanted, taken):
        return ""
    rest = iter([call.key for call in taken])
    place = next(index for index, call in enumerate(wanted) if call.key not in rest)
    return f"order: no {wanted[place]} after {_some(wanted[:place])}"


def _difference(pair: tuple[_Call, _Call]) -> str:
    wanted, taken = pair
    told = list(islice(_differences(wanted.args, taken.args, ""), _SHOWN_DIFFERENCES))
    return f"{wanted.name}: {', '.join(told)}"


def _differences(wanted: JsonValue, taken: JsonValue, path: str) -> Iterator[str]:
    """Tells where two JSON values differ, innermost places first to last, and how."""
    if isinstance(wanted, Mapping) and isinstance(taken, Mapping):
        for name in dict.fromkeys(chain(wanted, taken)):
            place = f"{path}.{name}" if path else name
            if name not in taken:
                yield f"{place} is missing, expected {_text(wanted[name])}"
            elif name not in wanted:
                yield f"{place} is {_text(taken[name])}, which is not expected"
            else:
                yield from _differences(wanted[name], taken[name], place)
    elif isinstance(wanted, list) and isinstance(taken, list) and len(wanted) == len(taken):
        for index, (one, other) in enumerate(zip(wanted, taken, strict=True)):
            yield from _differences(one, other, f"{path}[{index}]")
    elif _frozen(wanted) != _frozen(taken):
        yield f"{path} is {_text(taken)}, not {_text(wanted)}"


def _list(calls: Iterable[_Call]) -> str:
    return f"[{', '.join(map(str, calls))}]"


def _some(calls: Sequence[_Call]) -> str:
    shown = ", ".join(map(str, calls[:_SHOWN_CALLS]))
    return f"{shown} and {len(calls) - _SHOWN_CALLS} more" if len(calls) > _SHOWN_CALLS else shown


def _text(value: JsonValue) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"
