"""The checks of test specs that definitions do not know by name, and the comparisons that mean the same.

A check is an expectation with a label, such as `contains "Paris"`. The text that it expects is its expectedValue; its
other settings are its terms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.model.definition import Expectation, Parameter

if TYPE_CHECKING:
    from evalmeta.model.json_value import JsonValue


_TEXT_OPERATORS: Final = {
    "contains": "contains",
    "equals": "equals",
    "starts_with": "startswith",
    "ends_with": "endswith",
}
TEXT_CHECKS: Final = frozenset((*_TEXT_OPERATORS, "contains_any", "not_contains"))
"""The checks that compare texts, unchanged if the term `exact` is set."""
_NUMBER_OPERATORS: Final = {
    "greater_than": "greater_than",
    "at_least": "greater_than_or_equal",
    "less_than": "less_than",
    "at_most": "less_than_or_equal",
}
JSON_OPERATORS: Final = ("equals", "contains", *_NUMBER_OPERATORS)
"""The operators of the check `json`."""

_OUTCOME: Final = "$.generatedData.outcome"
_WHOLE: Final = "$.generatedData"


def comparison_of(check: Expectation) -> Expectation | None:
    """Return the comparison of a definition that judges the same as a check; None if definitions have none."""
    if check.name in _TEXT_OPERATORS:
        return _comparison(
            check, "string_comparison", _TEXT_OPERATORS[check.name], _OUTCOME, check.expected_value or ""
        )
    operator, expected = check.terms.get("operator"), check.terms.get("expected")
    if check.name != "json" or not isinstance(operator, str) or expected is None:
        return None
    reference = reference_of(str(check.terms["path"]))
    if operator in _NUMBER_OPERATORS or (operator == "equals" and _is_number(expected)):
        name, known = "numeric_comparison", _NUMBER_OPERATORS.get(operator, operator)
    else:
        name, known = "string_comparison", operator
    return _comparison(check, name, known, reference, _text(expected))


def reference_of(path: str) -> str:
    """Return the reference for a path into an answer that is JSON; one into `$.generatedData` is returned unchanged."""
    path = path.strip()
    return path if path.startswith((f"{_WHOLE}.", f"{_WHOLE}[")) else f"{_OUTCOME}{path.removeprefix('$')}"


def _comparison(check: Expectation, name: str, operator: str, reference: str, expected: str) -> Expectation:
    parameters = (
        Parameter("operator", operator, is_reference=False),
        Parameter("actual", reference, is_reference=True),
        Parameter("expected", expected, is_reference=False),
    )
    return Expectation(name, label=check.label, parameters=parameters)


def comparison_with(check: Expectation, operator: str, reference: str, expected: str) -> Expectation:
    """Return a string_comparison with the label of a check."""
    return _comparison(check, "string_comparison", operator, reference, expected)


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
