"""Custom criteria: an operator between an actual and an expected value, either of them by reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta.engine.numbers import parse_number
from evalmeta.engine.scorers.criteria import NUMBERS, PHRASES, STRINGS, Unusable, criterion_of
from evalmeta.engine.scorers.results import broken, judged
from evalmeta.model.expectations import canonical_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.engine.scorer import Exchange, Scorer
    from evalmeta.engine.scorers.criteria import Criterion
    from evalmeta.model.definition import Expectation
    from evalmeta.model.jsonvalue import JsonValue
    from evalmeta.model.run import TestResult
    from evalmeta.model.scoring import Matches

__all__ = ["comparison_scorer"]

_KNOWN: Final = 1_024


class _Finding(NamedTuple):
    """What came of one actual value."""

    passed: bool
    actual: str
    explanation: str


def comparison_scorer(matches: Matches = "first") -> Scorer:
    """Makes the scorer of custom criteria: passes when the operator holds; the score is 1 or 0.

    Of several values that the reference of `actual` matches, the `first`, `any` one or
    `all` must hold; of several expected ones the first counts. An explanation says how
    many there were. A value that is null, or no number where one is compared, is a
    FAILURE that says so. An unknown operator, a missing parameter, a reference that
    matches nothing and an expected value that cannot be compared with are ERRORs.
    """
    # Of the same case in every iteration; to hash parameters takes longer than to compare.
    known: dict[int, tuple[Expectation, Criterion | str]] = {}

    def prepared(expectation: Expectation, name: str) -> Criterion | str:
        found = known.get(id(expectation))
        if found is not None and found[0] is expectation:
            return found[1]
        if len(known) >= _KNOWN:
            known.clear()
        criterion = criterion_of(name, expectation.parameters)
        known[id(expectation)] = expectation, criterion
        return criterion

    def score_comparison(expectation: Expectation, exchange: Exchange) -> TestResult:
        name = canonical_name(expectation.name)
        criterion = prepared(expectation, name)
        if isinstance(criterion, str):
            return broken(expectation, criterion)
        compare = _compare_numbers if name == "numeric_comparison" else _compare_strings
        try:
            actual, expected = criterion.actual(exchange.generated), criterion.expected(exchange.generated)
            findings = [compare(criterion.operator, value, expected[0]) for value in _counted(actual, matches)]
        except Unusable as error:
            return broken(expectation, str(error))
        finding = _deciding(findings, matches)
        return judged(
            expectation,
            passed=finding.passed,
            expected=_text(expected[0]),
            actual=finding.actual,
            explanation=finding.explanation + _remarks(findings, len(actual), len(expected), matches),
        )

    return score_comparison


def _counted(actual: Sequence[JsonValue], matches: Matches) -> Sequence[JsonValue]:
    return actual[:1] if matches == "first" else actual


def _deciding(findings: Sequence[_Finding], matches: Matches) -> _Finding:
    """Gives the finding that settles it: one that holds where any may, one that fails where all must."""
    if len(findings) == 1:
        return findings[0]
    settles = matches == "any"
    return next((each for each in findings if each.passed is settles), findings[0])


def _remarks(findings: Sequence[_Finding], actual: int, expected: int, matches: Matches) -> str:
    if actual == expected == 1:
        return ""
    remark = ""
    if actual > 1:
        holding = sum(each.passed for each in findings)
        said = {"first": "only the first counts", "any": "one is enough", "all": "all must"}[matches]
        held = "" if matches == "first" else f"it holds for {holding}, "
        remark = f"; the reference of actual has {actual} matches: {held}{said}"
    return remark + (f"; the reference of expected has {expected} matches: the first counts" if expected > 1 else "")


def _compare_strings(operator: str, actual: JsonValue, expected: JsonValue) -> _Finding:
    if expected is None:
        raise Unusable("the expected value is null: there is nothing to compare with")
    found, wanted = _text(actual), _text(expected)
    if actual is None:
        return _Finding(False, found, f"the actual value is null, expected {_short(wanted)}")
    return _explained(STRINGS[operator](found, wanted), operator, found, wanted)


def _compare_numbers(operator: str, actual: JsonValue, expected: JsonValue) -> _Finding:
    wanted, found = parse_number(expected), parse_number(actual)
    if wanted is None:
        raise Unusable(f"the expected value is no number: {_short(_text(expected))}")
    if found is None:
        return _Finding(False, _text(actual), f"the actual value is no number: {_short(_text(actual))}")
    return _explained(NUMBERS[operator](found, wanted), operator, _text(actual), _text(expected))


def _explained(passed: bool, operator: str, actual: str, expected: str) -> _Finding:  # noqa: FBT001
    phrase = PHRASES[operator][0 if passed else 1]
    return _Finding(passed, actual, f"{_short(actual)} {phrase} {_short(expected)}")


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _short(text: str) -> str:
    return repr(text if len(text) <= 100 else text[:99] + "…")  # noqa: PLR2004 - enough to recognise it
