"""The state of an agent's session after a turn: the value at a path is as expected."""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.engine.references import TooManyMatches, compile_reference, resolve
from evalmeta.engine.scorers.comparisons import MATCHED_PATH, Comparison, deciding_comparison
from evalmeta.engine.scorers.results import broken, judged, undecided
from evalmeta.model.expected_values import Fault, read_value, text_of
from evalmeta.model.jsonpath import ReferenceSyntax
from evalmeta.model.session_state import state_reference

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.expected_values import ExpectedValue
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import TestResult
    from evalmeta.model.run_options import Matches


STATE_UNKNOWN: Final = (
    "the agent does not report the state of its session; if it has none, it must return an empty mapping"
)
"""Why a state is undecided."""
_MAX_DIFFERENCES: Final = 5


def state_scorer(matches: Matches = "first") -> Scorer:
    """Return the scorer of the check `state`: the value at the `path` of the terms is their `expected`.

    `expected` is compared as the arguments of a call are; if the terms set `literal`, no mapping in it is a matcher.
    A path that a reported state does not have is a FAILURE, and an unreported state is UNDECIDED. `matches` says which
    of several matches count, as for custom criteria.
    """

    def score_state(expectation: Expectation, exchange: Exchange) -> TestResult:
        terms, state = expectation.terms, exchange.generated.state
        path, is_literal = str(terms.get("path")), terms.get("literal") is True
        expected = _prepared(orjson.dumps(terms.get("expected"), default=dict), is_literal=is_literal)
        if isinstance(expected, str):
            return broken(expectation, f"the expected value of {path} cannot be compared: {expected}")
        wanted = str(expected)
        if state is None:
            return undecided(expectation, STATE_UNKNOWN, expected=wanted)
        try:
            values = resolve(compile_reference(state_reference(path)), state)
        except (ReferenceSyntax, TooManyMatches) as error:
            return broken(expectation, f"the path {path} cannot be followed: {error}", expected=wanted)
        if not values:
            why = f"{path}: expected {wanted}, but it is missing"
            actual = f"nothing; the state is {text_of(state)}"
            return judged(expectation, passed=False, expected=wanted, actual=actual, explanation=why)
        counted = values[:1] if matches == "first" else values
        comparisons = [_compared(expected, value, path) for value in counted]
        passed, actual, why = deciding_comparison(comparisons, len(values), matches, called=MATCHED_PATH)
        return judged(expectation, passed=passed, expected=wanted, actual=actual, explanation=why)

    return score_state


# Every case and iteration with the same value shares it.
@lru_cache(maxsize=1_024)
def _prepared(source: bytes, *, is_literal: bool) -> ExpectedValue | str:
    """Return the expected value of the JSON of terms, or why it cannot be compared."""
    faults = list[Fault]()
    expected = read_value(orjson.loads(source), (), faults, literal=is_literal)
    return faults[0].message if faults else expected


def _compared(expected: ExpectedValue, value: JsonValue, path: str) -> Comparison:
    passed = expected.accepts(value)
    why = (
        f"{path} is {text_of(value)}"
        if passed
        else "; ".join(islice(expected.differences(value, path), _MAX_DIFFERENCES))
    )
    return Comparison(passed, text_of(value), why)
