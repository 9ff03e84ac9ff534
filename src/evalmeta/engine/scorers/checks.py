"""The checks of test specs: what an answer contains, equals or matches, and what functions of the project say."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.engine.scorers.function_imports import accepted_inputs, find_function, functions_root
from evalmeta.engine.scorers.results import broken, judged, measured, undecided
from evalmeta.engine.subjects.conversation import context_of, history_of, turn_messages
from evalmeta.engine.subjects.objects import Calls
from evalmeta.errors import EvalmetaError, SettingsError, SubjectError
from evalmeta.model.redaction import error_text
from evalmeta.model.run import TestResult, Verdict
from evalmeta.model.texts import Pattern, PatternSyntax, plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from evalmeta.engine.interfaces import Exchange, Scorer
    from evalmeta.engine.subjects.objects import Function
    from evalmeta.model.checks import Check
    from evalmeta.model.definition import Expectation


_SHOWN: Final = 100
_RETURNS: Final = "Return True or False, a number, or a mapping with passed, score and reason."


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
    contained = next((text for text in wanted if compared(text) in seen), None)
    explanation = f"the answer contains {_quoted(contained)}" if contained else "the answer contains none of the texts"
    shown = " or ".join(map(_quoted, wanted))
    return judged(expectation, passed=contained is not None, expected=shown, actual=answer, explanation=explanation)


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


class _Outcome(NamedTuple):
    """What a function says about an answer; without a verdict, the score is only reported."""

    passed: bool | None
    score: float | None = None
    reason: str = ""


async def score_by_check(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Judge by the function that the terms name (`"function": "module:name"`).

    evalmeta calls it with the answer, and with those of `CHECK_INPUTS` that it declares: the question, the history as a
    list of mappings with role, message and topic, the context variables by name, the topic, the actions as a list of
    mappings with name, input and output (None if the agent does not report them), and the GeneratedData.

    True passes and False fails, and so does an AssertionError. A number is reported and not judged. A mapping has
    `passed`, `score` or both, and optionally `reason`. Anything else, None included, and other exceptions are ERRORs.
    Functions that are not coroutine functions run in a thread.
    """
    name, answer = str(expectation.terms["function"]), exchange.generated.outcome
    try:
        outcome = _outcome(await _called(name, exchange))
    except EvalmetaError as error:
        why = " ".join((error_text(error), *error.actions))
        return broken(expectation, f"the function {name!r:.200} cannot judge: {why}", actual=answer)
    explanation = outcome.reason or f"{name} returned {outcome.score if outcome.passed is None else outcome.passed}"
    if outcome.passed is None:
        return measured(expectation, outcome.score, f"{explanation}; reported, not judged", actual=answer)
    verdict = Verdict.PASS if outcome.passed else Verdict.FAILURE
    score = float(outcome.passed) if outcome.score is None else outcome.score
    return TestResult(expectation.name, verdict, f"{name} passes", answer, score, explanation, expectation.label)


async def _called(name: str, exchange: Exchange) -> object:
    root = functions_root()
    function = find_function(name, root)
    call = partial(function, exchange.generated.outcome, **_inputs(function, exchange))
    try:
        # A partial of a coroutine function is one too.
        with closing(Calls(root or Path.cwd())) as calls:
            return await calls.call(call)
    except SubjectError as error:
        if isinstance(error.__cause__, AssertionError):
            return {"passed": False, "reason": str(error.__cause__).partition("\n")[0] or str(error)}
        raise


def _inputs(function: Function, exchange: Exchange) -> dict[str, object]:
    generated = exchange.generated
    turns = (message for turn in exchange.earlier for message in turn_messages(turn.utterance, turn.generated))
    actions = generated.actions
    calls = [{"name": action.name, "input": action.input, "output": action.output} for action in actions or ()]
    known: dict[str, object] = {
        "utterance": exchange.utterance,
        "history": [*history_of(exchange.case), *turns],
        "context": context_of(exchange.case),
        "topic": generated.topic,
        "actions": None if actions is None else calls,
        "generated": generated,
    }
    return {name: known[name] for name in accepted_inputs(function)}


def _outcome(returned: object) -> _Outcome:
    """Read what a function returned; raise SettingsError if it is neither a verdict nor a score."""
    if isinstance(returned, Mapping):
        passed, score, reason = (returned.get(key) for key in ("passed", "score", "reason"))
        if (passed is None or isinstance(passed, bool)) and (passed is not None or score is not None):
            return _Outcome(passed, None if score is None else _number(score), "" if reason is None else str(reason))
    elif isinstance(returned, bool):
        return _Outcome(returned)
    elif isinstance(returned, int | float):
        return _Outcome(None, _number(returned))
    shown = repr(returned)[:100]
    raise SettingsError(f"it returned {shown}.", actions=(_RETURNS,))


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingsError(f"its score is {value!r:.50}.", actions=("Return a finite number.",))
    return float(value)
