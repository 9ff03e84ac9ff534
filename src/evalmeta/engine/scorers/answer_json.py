"""The check of an answer that is JSON: a value in it is compared as custom criteria compare it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.engine.scorers.comparisons import comparison_scorer, match_counts
from evalmeta.engine.scorers.operands import NoMatch, NotReported, NoValue, operand_reader
from evalmeta.engine.scorers.results import broken, judged, undecided
from evalmeta.model.checks import comparison_of, reference_of
from evalmeta.model.definition import Parameter
from evalmeta.model.json_value import is_too_deep, read_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.engine.interfaces import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import TestResult
    from evalmeta.model.run_options import Matches


_CALLED: Final = "the path"


def json_scorer(matches: Matches = "first") -> Scorer:
    """Return the scorer of the check `json`: the value at the path of the terms is compared with their `expected`.

    The path leads into the answer, which must be JSON; one that begins with `$.generatedData` leads into all that the
    agent returned. Without an operator, the path must match something.
    `matches` says which of several matches count, as for custom criteria, and the explanation says so.
    """
    compare = comparison_scorer(matches, called=_CALLED)

    def score_json(expectation: Expectation, exchange: Exchange) -> TestResult:
        try:
            exchange, values = _read(expectation, exchange)
        except NoValue as error:
            return _without_value(expectation, exchange, error)
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


def _without_value(expectation: Expectation, exchange: Exchange, error: NoValue) -> TestResult:
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
        actual=_text(counted[decisive]),
        explanation=explanation + match_counts(passed, len(values), matches, called=_CALLED),
    )


def _holds(expectation: Expectation, value: JsonValue) -> bool:
    """Return whether a value exists, is null, or contains an item or a text."""
    operator, expected = expectation.terms.get("operator"), expectation.terms.get("expected")
    if operator == "contains":
        return expected in value if isinstance(value, list) else isinstance(value, str) and str(expected) in value
    return operator is None or value is None


def _explanation(expectation: Expectation, value: JsonValue, *, holds: bool) -> str:
    if expectation.terms.get("operator") == "contains" and isinstance(value, list):
        return f"the list {'has' if holds else 'does not have'} the item {_text(expectation.terms.get('expected'))}"
    return f"{expectation.terms['path']} is {_text(value)}"


def _text(value: JsonValue) -> str:
    return orjson.dumps(value).decode()


def _wanted(expectation: Expectation) -> str:
    return (expectation.label or "").removeprefix("json ")
