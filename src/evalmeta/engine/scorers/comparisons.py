"""Custom criteria: an operator compares an actual and an expected value, each a literal or a reference.

The check `json` compares a value in an answer that is JSON in the same way.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from operator import contains, eq, ge, gt, le, lt
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.engine.references import NoMatch, NotReported, NoValue, Unusable, operand_reader, parse_number
from evalmeta.engine.scorers.results import broken, judged, undecided
from evalmeta.model.checks import comparison_of, reference_of
from evalmeta.model.definition import Expectation, Parameter
from evalmeta.model.expectations import OPERATORS, PARAMETER_NAMES, canonical_name, suggest_operator
from evalmeta.model.json_value import JsonValue, is_too_deep, read_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from decimal import Decimal

    from evalmeta.engine.interfaces import Exchange, Scorer
    from evalmeta.engine.references import Read
    from evalmeta.model.run import TestResult
    from evalmeta.model.run_options import Matches


MATCHED_PATH: Final = "the path"
"""What matches several values, in explanations."""
_MAX_CACHED: Final = 1_024
_MAX_SHOWN: Final = 100
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
    compare: Callable[[str, JsonValue, JsonValue], Comparison]


class Comparison(NamedTuple):
    """Whether a value is as expected, its text, and why."""

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
        except Unusable as error:
            return broken(expectation, str(error))
        except NoValue as error:
            wanted = next(parameter.value for parameter in expectation.parameters if parameter.name == "expected")
            return _without_value(expectation, error, expected=wanted)
        decisive = compare(operator, actual[0], expected[0])
        if len(actual) > 1:
            others = () if matches == "first" else actual[1:]
            comparisons = [decisive, *(compare(operator, value, expected[0]) for value in others)]
            decisive = deciding_comparison(comparisons, len(actual), matches, called=called)
        explanation = decisive.explanation
        if len(expected) > 1:
            explanation += f"; the reference of expected has {len(expected)} matches: the first counts"
        shown = _text(expected[0])
        return judged(
            expectation, passed=decisive.passed, expected=shown, actual=decisive.actual, explanation=explanation
        )

    return score_comparison


def _without_value(expectation: Expectation, error: NoValue, *, expected: str, actual: str = "") -> TestResult:
    if isinstance(error, NotReported):
        return undecided(expectation, str(error), expected=expected, actual=actual)
    if isinstance(error, NoMatch):
        return judged(expectation, passed=False, expected=expected, actual=actual, explanation=str(error))
    return broken(expectation, str(error), expected=expected, actual=actual)


def deciding_comparison(comparisons: Sequence[Comparison], values: int, matches: Matches, *, called: str) -> Comparison:
    """Return the comparison that decides; it explains why if a reference or path matches several values."""
    if values == 1:
        return comparisons[0]
    # With `any` the first value that holds decides, with `all` the first that does not.
    holds = [comparison.passed for comparison in comparisons]
    decisive = comparisons[holds.index(matches == "any") if (matches == "any") in holds else 0]
    rule = {"first": "only the first counts", "any": "one is enough", "all": "all must"}[matches]
    holding = "" if matches == "first" else f"it holds for {sum(holds)}, "
    return decisive._replace(explanation=f"{decisive.explanation}; {called} has {values} matches: {holding}{rule}")


def _compare_strings(operator: str, actual: JsonValue, expected: JsonValue) -> Comparison:
    actual_text, expected_text = _text(actual), _text(expected)
    if expected is None:
        return Comparison(False, actual_text, "the expected value is null: there is nothing to compare with")
    if actual is None:
        return Comparison(False, actual_text, f"the actual value is null, expected {_short(expected_text)}")
    holds = _STRING_OPERATORS[operator](actual_text, expected_text)
    return _comparison(operator, actual_text, expected_text, holds=holds)


def _compare_numbers(operator: str, actual: JsonValue, expected: JsonValue) -> Comparison:
    expected_number, actual_number = parse_number(expected), parse_number(actual)
    if expected_number is None:
        return Comparison(False, _text(actual), f"the expected value is not a number: {_short(_text(expected))}")
    if actual_number is None:
        return Comparison(False, _text(actual), f"the actual value is not a number: {_short(_text(actual))}")
    holds = _NUMBER_OPERATORS[operator](actual_number, expected_number)
    return _comparison(operator, _text(actual), _text(expected), holds=holds)


def _comparison(operator: str, actual: str, expected: str, *, holds: bool) -> Comparison:
    phrase = _PHRASES[operator][0 if holds else 1]
    return Comparison(holds, actual, f"{_short(actual)} {phrase} {_short(expected)}")


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
    compare = comparison_scorer(matches, called=MATCHED_PATH)

    def score_json(expectation: Expectation, exchange: Exchange) -> TestResult:
        try:
            exchange, values = _read(expectation, exchange)
        except NoValue as error:
            return _without_value(expectation, error, expected=_wanted(expectation), actual=exchange.generated.outcome)
        # What is in a code block was taken out of it.
        comparison = comparison_of(replace(expectation, terms={**expectation.terms, "fenced": False}))
        if comparison and not (expectation.terms["operator"] == "contains" and isinstance(values[0], list)):
            return compare(comparison, exchange)._replace(name=expectation.name)
        # A schema describes every value at its path.
        counted = "all" if expectation.terms.get("operator") == "schema" and matches == "first" else matches
        comparisons = [_inspected(expectation, value) for value in (values[:1] if counted == "first" else values)]
        passed, actual, explanation = deciding_comparison(comparisons, len(values), counted, called=MATCHED_PATH)
        wanted = _wanted(expectation)
        return judged(expectation, passed=passed, expected=wanted, actual=actual, explanation=explanation)

    return score_json


def _read(expectation: Expectation, exchange: Exchange) -> tuple[Exchange, Sequence[JsonValue]]:
    """Return the exchange with the JSON of its answer in canonical form, and the values at the path, at least one."""
    path = str(expectation.terms["path"])
    if (reference := reference_of(path)) != path:
        answer = exchange.generated.outcome
        if expectation.terms.get("fenced"):
            answer = _unfenced(answer)
        try:
            value = read_json(answer)
        except orjson.JSONDecodeError as error:
            why = "it is in a code block of Markdown (fenced: true)" if answer.lstrip().startswith("```") else error.msg
            raise NoMatch(f"the answer is not valid JSON: {why}") from None
        if is_too_deep(value):
            raise NoMatch("the answer is JSON that is nested too deep")
        if path == "$" and expectation.terms.get("operator") == "schema":
            return exchange, [value]
        canonical = orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
        exchange = exchange._replace(generated=replace(exchange.generated, outcome=canonical))
    try:
        values = operand_reader(Parameter("actual", reference, is_reference=True))(exchange.generated)
    except NoMatch:
        raise NoMatch(f"{path} matches nothing in the answer") from None
    return exchange, values


def _unfenced(answer: str) -> str:
    """Return the content of the only code block of JSON in Markdown; the whole answer if it has none."""
    blocks: list[list[str]] = []
    is_json = is_inside = False
    for line in answer.splitlines():
        text = line.strip()
        if is_inside and text == "```":
            is_json = is_inside = False
        elif not is_inside and text.startswith("```"):
            is_inside, is_json = True, text[3:].strip().lower() in {"", "json"}
            blocks += [[]] * is_json
        elif is_json:
            blocks[-1].append(line)
    if len(blocks) > 1:
        raise NoMatch(f"the answer has {len(blocks)} code blocks that may be JSON, so it is not clear which one counts")
    return "\n".join(blocks[0]) if blocks else answer


def _inspected(expectation: Expectation, value: JsonValue) -> Comparison:
    """Return whether a value exists, is as a schema requires, is null, or contains an item or a text."""
    operator, expected = expectation.terms.get("operator"), expectation.terms.get("expected")
    text = orjson.dumps(value).decode()
    if operator == "schema":
        from evalmeta.model.json_schema import fault_of

        fault = fault_of(expected, value, path=str(expectation.terms["path"]))
        return Comparison(not fault, text, fault or f"{expectation.terms['path']} is as the schema requires")
    if operator == "contains" and isinstance(value, list):
        has = "has" if expected in value else "does not have"
        return Comparison(expected in value, text, f"the list {has} the item {orjson.dumps(expected).decode()}")
    holds = operator is None or value is None
    if operator == "contains":
        holds = isinstance(value, str) and str(expected) in value
    return Comparison(holds, text, f"{expectation.terms['path']} is {text}")


def _wanted(expectation: Expectation) -> str:
    return (expectation.label or "").removeprefix("json ")
