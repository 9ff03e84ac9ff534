"""Custom criteria: an operator compares an actual and an expected value, each a literal or a reference.

The check `json` compares a value in an answer that is JSON in the same way.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from operator import contains, eq, ge, gt, le, lt
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.engine.references import NoMatch, NotReported, NoValue, operand_reader, parse_number
from evalmeta.engine.scorers.results import broken, judged, undecided
from evalmeta.model.checks import comparison_of, reference_of
from evalmeta.model.definition import Parameter
from evalmeta.model.expectations import OPERATORS, PARAMETER_NAMES, canonical_name, suggest_operator
from evalmeta.model.json_value import is_too_deep, read_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from decimal import Decimal

    from evalmeta.engine.interfaces import Exchange, Scorer
    from evalmeta.engine.references import Read
    from evalmeta.model.definition import Expectation
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import TestResult
    from evalmeta.model.run_options import Matches


_MAX_CACHED: Final = 1_024
_MAX_SHOWN: Final = 100
_PATH: Final = "the path"
_STRING_OPERATORS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "equals": eq,
    "contains": contains,
    "startswith": str.startswith,
    "endswith": str.endswith,
}
_NUMBER_OPERATORS: Final[Mapping[str, Callable[[Decimal, Decimal], bool]]] = {
    "equals": eq,
    "greater_than_or_equal": ge,
    "greater_than": gt,
    "less_than": lt,
    "less_than_or_equal": le,
}
# The phrases for an operator that holds, and for one that does not.
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


class Criterion(NamedTuple):
    """A criterion that is ready to be judged; `actual` and `expected` return at least one value."""

    operator: str
    actual: Read
    expected: Read
    compare: Callable[[str, JsonValue, JsonValue], _Comparison]


class _Comparison(NamedTuple):
    """The result of comparing one actual value."""

    passed: bool
    actual: str
    explanation: str


def comparison_scorer(
    matches: Matches = "first", *, called: str = "the reference of actual"
) -> Callable[[Expectation, Exchange], TestResult]:
    """Return the scorer of custom criteria: it passes if the operator holds; the score is 1 or 0.

    If the reference of `actual` matches several values, the `first`, `any` one or `all` must
    hold; if that of `expected` does, the first counts. A reference that matches nothing because
    of what the agent did is a FAILURE, and so is a value that is null, or not a number in a
    numeric comparison. If the agent does not report what a reference reads, the result is
    UNDECIDED. An unknown operator, a missing parameter, a reference that can never match and a
    literal that cannot be compared are ERRORs.
    """

    def score_comparison(expectation: Expectation, exchange: Exchange) -> TestResult:
        criterion = criterion_of(canonical_name(expectation.name), expectation.parameters)
        if isinstance(criterion, str):
            return broken(expectation, criterion)
        operator, read_actual, read_expected, compare = criterion
        try:
            actual, expected = read_actual(exchange.generated), read_expected(exchange.generated)
        except NoValue as error:
            return _without_value(expectation, error)
        decisive, counts = compare(operator, actual[0], expected[0]), ""
        if len(actual) > 1 or len(expected) > 1:
            counted = actual[:1] if matches == "first" else actual
            comparisons = [decisive, *(compare(operator, value, expected[0]) for value in counted[1:])]
            # With `any` the first value that holds decides, with `all` the first that does not.
            decisive = next(
                (comparison for comparison in comparisons if comparison.passed is (matches == "any")), decisive
            )
            counts = _match_counts(
                [comparison.passed for comparison in comparisons], len(actual), matches, called=called
            )
            if len(expected) > 1:
                counts += f"; the reference of expected has {len(expected)} matches: the first counts"
        return judged(
            expectation,
            passed=decisive.passed,
            expected=_text(expected[0]),
            actual=decisive.actual,
            explanation=decisive.explanation + counts,
        )

    return score_comparison


def _without_value(expectation: Expectation, error: NoValue) -> TestResult:
    expected = next((parameter.value for parameter in expectation.parameters if parameter.name == "expected"), "")
    if isinstance(error, NotReported):
        return undecided(expectation, str(error), expected=expected)
    if isinstance(error, NoMatch):
        return judged(expectation, passed=False, expected=expected, actual="", explanation=str(error))
    return broken(expectation, str(error))


def _match_counts(passed: Sequence[bool], actual: int, matches: Matches, *, called: str) -> str:
    """Return how many values a reference or path matches and which of them decide; empty for a single one."""
    if actual == 1:
        return ""
    rule = {"first": "only the first counts", "any": "one is enough", "all": "all must"}[matches]
    holding = "" if matches == "first" else f"it holds for {sum(passed)}, "
    return f"; {called} has {actual} matches: {holding}{rule}"


def _compare_strings(operator: str, actual: JsonValue, expected: JsonValue) -> _Comparison:
    actual_text, expected_text = _text(actual), _text(expected)
    if expected is None:
        return _Comparison(False, actual_text, "the expected value is null: there is nothing to compare with")
    if actual is None:
        return _Comparison(False, actual_text, f"the actual value is null, expected {_short(expected_text)}")
    return _comparison(
        operator, actual_text, expected_text, holds=_STRING_OPERATORS[operator](actual_text, expected_text)
    )


def _compare_numbers(operator: str, actual: JsonValue, expected: JsonValue) -> _Comparison:
    expected_number, actual_number = parse_number(expected), parse_number(actual)
    if expected_number is None:
        return _Comparison(False, _text(actual), f"the expected value is not a number: {_short(_text(expected))}")
    if actual_number is None:
        return _Comparison(False, _text(actual), f"the actual value is not a number: {_short(_text(actual))}")
    holds = _NUMBER_OPERATORS[operator](actual_number, expected_number)
    return _comparison(operator, _text(actual), _text(expected), holds=holds)


def _comparison(operator: str, actual: str, expected: str, *, holds: bool) -> _Comparison:
    phrase = _PHRASES[operator][0 if holds else 1]
    return _Comparison(holds, actual, f"{_short(actual)} {phrase} {_short(expected)}")


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _short(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…")


@lru_cache(maxsize=_MAX_CACHED)
def criterion_of(name: str, parameters: tuple[Parameter, ...]) -> Criterion | str:
    """Return the criterion of the parameters, or a text that says what is wrong with them."""
    by_name = {parameter.name: parameter for parameter in parameters}
    missing = [parameter_name for parameter_name in PARAMETER_NAMES if parameter_name not in by_name]
    if missing:
        return f"the parameter {' and '.join(missing)} is missing"
    operator = by_name["operator"].value.strip()
    if operator not in OPERATORS[name]:
        return f"{operator!r} is not a valid operator of {name}. {suggest_operator(name, operator)}"
    if name == "numeric_comparison":
        for parameter in (by_name["actual"], by_name["expected"]):
            if not parameter.is_reference and parse_number(parameter.value) is None:
                return f"the {parameter.name} value is not a number: {_short(parameter.value)}"
    compare = _compare_numbers if name == "numeric_comparison" else _compare_strings
    try:
        return Criterion(operator, operand_reader(by_name["actual"]), operand_reader(by_name["expected"]), compare)
    except NoValue as error:
        return str(error)


def json_scorer(matches: Matches = "first") -> Scorer:
    """Return the scorer of the check `json`: the value at the path of the terms is compared with their `expected`.

    The path leads into the answer, which must be JSON; one that begins with `$.generatedData` leads into all that the
    agent returned. Without an operator, the path must match something.
    `matches` says which of several matches count, as for custom criteria, and the explanation says so.
    """
    compare = comparison_scorer(matches, called=_PATH)

    def score_json(expectation: Expectation, exchange: Exchange) -> TestResult:
        try:
            exchange, values = _read(expectation, exchange)
        except NoValue as error:
            return _without_json_value(expectation, exchange, error)
        comparison = comparison_of(expectation)
        if comparison and not (expectation.terms["operator"] == "contains" and isinstance(values[0], list)):
            return compare(comparison, exchange)._replace(name=expectation.name)
        return _judged(expectation, values, matches)

    return score_json


def _read(expectation: Expectation, exchange: Exchange) -> tuple[Exchange, Sequence[JsonValue]]:
    """Return the exchange with the JSON of its answer in canonical form, and the values at the path, at least one."""
    path = str(expectation.terms["path"])
    if (reference := reference_of(path)) != path:
        answer = exchange.generated.outcome
        try:
            value = read_json(answer)
        except orjson.JSONDecodeError as error:
            why = "it is in a code block of Markdown" if answer.lstrip().startswith("```") else error.msg
            raise NoMatch(f"the answer is not valid JSON: {why}") from None
        if is_too_deep(value):
            raise NoMatch("the answer is JSON that is nested too deep")
        canonical = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
        exchange = exchange._replace(generated=replace(exchange.generated, outcome=canonical))
    try:
        values = operand_reader(Parameter("actual", reference, is_reference=True))(exchange.generated)
    except NoMatch:
        raise NoMatch(f"{path} matches nothing in the answer") from None
    return exchange, values


def _without_json_value(expectation: Expectation, exchange: Exchange, error: NoValue) -> TestResult:
    wanted, answer = _wanted(expectation), exchange.generated.outcome
    if isinstance(error, NotReported):
        return undecided(expectation, str(error), expected=wanted, actual=answer)
    if isinstance(error, NoMatch):
        return judged(expectation, passed=False, expected=wanted, actual=answer, explanation=str(error))
    return broken(expectation, str(error), expected=wanted, actual=answer)


def _judged(expectation: Expectation, values: Sequence[JsonValue], matches: Matches) -> TestResult:
    counted = values[:1] if matches == "first" else values
    passed = [_holds(expectation, value) for value in counted]
    # With `any` the first value that holds decides, with `all` the first that does not.
    decisive = next((place for place, holds in enumerate(passed) if holds is (matches == "any")), 0)
    explanation = _explanation(expectation, counted[decisive], holds=passed[decisive])
    return judged(
        expectation,
        passed=passed[decisive],
        expected=_wanted(expectation),
        actual=_json_text(counted[decisive]),
        explanation=explanation + _match_counts(passed, len(values), matches, called=_PATH),
    )


def _holds(expectation: Expectation, value: JsonValue) -> bool:
    """Return whether a value exists, is null, or contains an item or a text."""
    operator, expected = expectation.terms.get("operator"), expectation.terms.get("expected")
    if operator == "contains":
        return expected in value if isinstance(value, list) else isinstance(value, str) and str(expected) in value
    return operator is None or value is None


def _explanation(expectation: Expectation, value: JsonValue, *, holds: bool) -> str:
    if expectation.terms.get("operator") == "contains" and isinstance(value, list):
        return (
            f"the list {'has' if holds else 'does not have'} the item {_json_text(expectation.terms.get('expected'))}"
        )
    return f"{expectation.terms['path']} is {_json_text(value)}"


def _json_text(value: JsonValue) -> str:
    return orjson.dumps(value).decode()


def _wanted(expectation: Expectation) -> str:
    return (expectation.label or "").removeprefix("json ")
