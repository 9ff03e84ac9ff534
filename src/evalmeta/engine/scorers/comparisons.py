"""Custom criteria: an operator between an actual and an expected value, either of them by reference."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.engine.numbers import parse_number
from evalmeta.engine.references import TooManyMatches, compile_reference, resolve
from evalmeta.engine.scorers.results import broken, judged
from evalmeta.model.expectations import OPERATORS, PARAMETER_NAMES, canonical_name
from evalmeta.model.generated import reference_root
from evalmeta.model.reference import ReferenceSyntax

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from decimal import Decimal

    from evalmeta.engine.scorer import Exchange
    from evalmeta.model.definition import Expectation, Parameter
    from evalmeta.model.generated import GeneratedData
    from evalmeta.model.jsonvalue import JsonValue
    from evalmeta.model.run import TestResult

__all__ = ["score_comparison"]

_STRINGS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "equals": lambda actual, expected: actual == expected,
    "contains": lambda actual, expected: expected in actual,
    "startswith": lambda actual, expected: actual.startswith(expected),
    "endswith": lambda actual, expected: actual.endswith(expected),
}
_NUMBERS: Final[Mapping[str, Callable[[Decimal, Decimal], bool]]] = {
    "equals": lambda actual, expected: actual == expected,
    "greater_than_or_equal": lambda actual, expected: actual >= expected,
    "greater_than": lambda actual, expected: actual > expected,
    "less_than": lambda actual, expected: actual < expected,
    "less_than_or_equal": lambda actual, expected: actual <= expected,
}


_PHRASES: Final[Mapping[str, tuple[str, str]]] = {
    "equals": ("equals", "does not equal"),
    "contains": ("contains", "does not contain"),
    "startswith": ("starts with", "does not start with"),
    "endswith": ("ends with", "does not end with"),
    "greater_than_or_equal": ("is at least", "is not at least"),
    "greater_than": ("is greater than", "is not greater than"),
    "less_than": ("is less than", "is not less than"),
    "less_than_or_equal": ("is at most", "is not at most"),
}


class _Unusable(Exception):
    """A criterion that cannot be judged; the message becomes the result's error."""


class _Side(NamedTuple):
    value: JsonValue
    text: str
    remark: str = ""


def score_comparison(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Passes when the operator holds between the parameters actual and expected; the score is 1 or 0.

    A reference that matches nothing, an unknown operator or a missing parameter gives
    an ERROR result. Of several matches that differ the first one counts, and the
    explanation says how many there were.
    """
    try:
        operator, actual, expected = _criterion(expectation, exchange.generated)
        passed, explanation = _compare(canonical_name(expectation.name), operator, actual, expected)
    except _Unusable as error:
        return broken(expectation, str(error))
    remarks = "".join(f"; {side.remark}" for side in (actual, expected) if side.remark)
    return judged(
        expectation, passed=passed, expected=expected.text, actual=actual.text, explanation=explanation + remarks
    )


def _criterion(expectation: Expectation, generated: GeneratedData) -> tuple[str, _Side, _Side]:
    parameters = {parameter.name: parameter for parameter in expectation.parameters}
    missing = [name for name in PARAMETER_NAMES if name not in parameters]
    if missing:
        raise _Unusable(f"the parameter {' and '.join(missing)} is missing")
    operator, actual, expected = (_side(parameters[name], generated) for name in PARAMETER_NAMES)
    return operator.text.strip(), actual, expected


def _side(parameter: Parameter, generated: GeneratedData) -> _Side:
    if not parameter.is_reference:
        return _Side(parameter.value, parameter.value)
    try:
        matches = resolve(compile_reference(parameter.value), reference_root(generated))
    except (ReferenceSyntax, TooManyMatches) as error:
        raise _Unusable(f"{parameter.name}: {error}") from error
    if not matches:
        raise _Unusable(f"the reference of {parameter.name} matches nothing: {parameter.value}")
    texts = [_text(match) for match in matches]
    remark = f"the reference of {parameter.name} has {len(matches)} matches that differ, the first counts"
    return _Side(matches[0], texts[0], remark if len(set(texts)) > 1 else "")


def _compare(name: str, operator: str, actual: _Side, expected: _Side) -> tuple[bool, str]:
    if operator not in OPERATORS[name]:
        nearest = get_close_matches(operator.lower(), OPERATORS[name], n=1, cutoff=0)
        raise _Unusable(f"{operator!r} is no operator of {name}; the nearest is {nearest[0]}")
    if name == "numeric_comparison":
        return _compare_numbers(operator, actual, expected)
    return _explained(_STRINGS[operator](actual.text, expected.text), actual, operator, expected)


def _compare_numbers(operator: str, actual: _Side, expected: _Side) -> tuple[bool, str]:
    wanted, found = parse_number(expected.value), parse_number(actual.value)
    if wanted is None:
        raise _Unusable(f"the expected value is no number: {_short(expected)}")
    if found is None:
        return False, f"the actual value is no number: {_short(actual)}"
    return _explained(_NUMBERS[operator](found, wanted), actual, operator, expected)


def _explained(passed: bool, actual: _Side, operator: str, expected: _Side) -> tuple[bool, str]:  # noqa: FBT001
    holds, fails = _PHRASES[operator]
    return passed, f"{_short(actual)} {holds if passed else fails} {_short(expected)}"


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _short(side: _Side) -> str:
    text = side.text
    return repr(text if len(text) <= 100 else text[:99] + "…")  # noqa: PLR2004 - enough to recognise it
