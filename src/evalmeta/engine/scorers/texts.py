"""The checks of an answer's text: whether it contains, equals or matches an expected text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.engine.scorers.results import broken, judged, undecided
from evalmeta.model.pattern import Pattern, PatternSyntax
from evalmeta.model.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.engine.interfaces import Exchange, Scorer
    from evalmeta.model.checks import Check
    from evalmeta.model.definition import Expectation
    from evalmeta.model.run import TestResult


def text_scorer(check: Check) -> Scorer:
    """Return the scorer of a check that has a test: it compares the answer with the expectedValue.

    It compares texts as `plain_text` returns them, or unchanged if the terms set `exact`. Upper and lower case differ.
    """
    holds, fails = check.reasons
    test = check.test or str.__eq__

    def score_text(expectation: Expectation, exchange: Exchange) -> TestResult:
        answer, expected = exchange.generated.outcome, expectation.expected_value or ""
        compared = _compared(expectation)
        passed = test(compared(answer), compared(expected))
        explanation = f"the answer {holds if passed else fails} {_quoted(expected)}"
        if not passed:
            explanation += _near_miss(test, answer, expected, compared)
        return judged(expectation, passed=passed, expected=expected, actual=answer, explanation=explanation)

    return score_text


def _compared(expectation: Expectation) -> Callable[[str], str]:
    """Return what makes a text of it that is compared."""
    return str if expectation.terms and expectation.terms.get("exact") is True else plain_text


def _near_miss(test: Callable[[str, str], bool], answer: str, expected: str, compared: Callable[[str], str]) -> str:
    """Return in which detail a failing answer differs, if it would pass without it."""
    if test(plain_text(answer), plain_text(expected)):
        return "; only quotes, dashes, white space or the encoding of letters differ (exact: true)"
    answer, expected = compared(answer), compared(expected)
    if test(answer.strip(), expected.strip()):
        return "; only blanks at the beginning or end differ"
    if test(answer.strip().casefold(), expected.strip().casefold()):
        return "; only upper and lower case differ"
    if test is str.__eq__:
        place = next((at for at, pair in enumerate(zip(answer, expected, strict=False), 1) if pair[0] != pair[1]), None)
        return f"; they differ from character {place or min(len(answer), len(expected)) + 1} on"
    return ""


def score_not_contains(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Pass if the expectedValue is not in the answer; unless the terms set `exact`, in no upper or lower case."""
    answer, unwanted = exchange.generated.outcome, expectation.expected_value or ""
    compared = _compared(expectation)
    seen, wanted = compared(answer), compared(unwanted)
    has_same_case = wanted in seen
    passed = not has_same_case and (compared is str or wanted.casefold() not in seen.casefold())
    explanation = f"the answer {'does not contain' if passed else 'contains'} {_quoted(unwanted)}"
    if not (passed or has_same_case):
        explanation += " in other upper and lower case"
    shown = f"an answer without {_quoted(unwanted)}"
    return judged(expectation, passed=passed, expected=shown, actual=answer, explanation=explanation)


def score_contains_any(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Pass if at least one text of the terms is in the answer."""
    answer, wanted = exchange.generated.outcome, _texts(expectation)
    compared = _compared(expectation)
    seen = compared(answer)
    found = next((text for text in wanted if compared(text) in seen), None)
    explanation = f"the answer contains {_quoted(found)}" if found else "the answer contains none of the texts"
    shown = " or ".join(map(_quoted, wanted))
    return judged(expectation, passed=found is not None, expected=shown, actual=answer, explanation=explanation)


def _texts(expectation: Expectation) -> Sequence[str]:
    texts = expectation.terms.get("texts")
    return [str(text) for text in texts] if isinstance(texts, list | tuple) else []


def score_matches(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Pass if the regular expression of the expectedValue matches a part of the answer.

    An answer of more than `limits.MAX_SEARCHED_CHARS` is UNDECIDED.
    """
    answer, text = exchange.generated.outcome, expectation.expected_value or ""
    if len(answer) > limits.MAX_SEARCHED_CHARS:
        why = f"the answer has {len(answer):,} characters; at most {limits.MAX_SEARCHED_CHARS:,} are searched"
        return undecided(expectation, why, expected=text, actual=answer)
    try:
        passed = Pattern(text).is_in(answer)
    except PatternSyntax as error:
        return broken(expectation, f"{text!r} is not a valid regular expression: {error}", actual=answer)
    explanation = f"{'a' if passed else 'no'} part of the answer matches {text}"
    return judged(expectation, passed=passed, expected=text, actual=answer, explanation=explanation)


def _quoted(text: str) -> str:
    return json.dumps(text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…", ensure_ascii=False)


_SHOWN: Final = 100
