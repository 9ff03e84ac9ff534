"""Checks of an answer's text, and of what was measured with it: tokens, calls, latency and retrieved documents.

Measures are judged only where there is a threshold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from evalmeta import limits
from evalmeta.engine.references import parse_number
from evalmeta.engine.scorers.results import averaged, broken, first_few, judged, measured, threshold_of, undecided
from evalmeta.model.checks import Check, Pattern, PatternSyntax, plain_text

if TYPE_CHECKING:
    from evalmeta.engine.interfaces import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import TestResult


_SHOWN: Final = 100


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
    texts = expectation.terms.get("texts")
    wanted = [str(text) for text in texts] if isinstance(texts, list | tuple) else []
    answer = exchange.generated.outcome
    compared = _compared(expectation)
    seen = compared(answer)
    contained = next((text for text in wanted if compared(text) in seen), None)
    explanation = f"the answer contains {_quoted(contained)}" if contained else "the answer contains none of the texts"
    shown = " or ".join(map(_quoted, wanted))
    return judged(expectation, passed=contained is not None, expected=shown, actual=answer, explanation=explanation)


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


def measure_scorers() -> Mapping[str, Scorer]:
    """Return the scorers that report a number and judge nothing, by name: every result is UNDECIDED."""
    total = _measure_scorer(lambda generated: generated.tokens.total if generated.tokens else None, "tokens")
    given = _measure_scorer(lambda generated: generated.tokens.input if generated.tokens else None, "tokens")
    output = _measure_scorer(lambda generated: generated.tokens.output if generated.tokens else None, "tokens")
    calls = _measure_scorer(lambda generated: None if generated.actions is None else len(generated.actions), "calls")
    seconds = _measure_scorer(
        lambda generated: None if generated.latency_ms is None else generated.latency_ms / 1_000, "s", digits=3
    )
    return {
        "agent/total_token_count": total,
        "agent/input_token_count": given,
        "agent/output_token_count": output,
        "agent/latency_seconds": seconds,
        "token_usage_v1": total,
        "tool_call_count_v1": calls,
        "invocation_duration_v1": seconds,
    }


def _measure_scorer(measure: Callable[[GeneratedData], float | None], unit: str, *, digits: int = 0) -> Scorer:
    def score_measure(expectation: Expectation, exchange: Exchange) -> TestResult:
        number = measure(exchange.generated)
        if number is None:
            return measured(expectation, None, "the agent did not report it")
        actual = f"{number:.{digits}f}"
        return measured(expectation, float(number), f"{actual} {unit}; reported, not judged", actual=actual)

    return score_measure


def latency_scorer(*, judges: bool = True) -> Scorer:
    """Return the scorer of latency; the score is the latency in milliseconds.

    The answer passes if it took at most the expectedValue, in milliseconds. Without one, and with `judges=False`, the
    latency is measured and not judged. An unknown latency is UNDECIDED.
    """

    def score_latency(expectation: Expectation, exchange: Exchange) -> TestResult:
        latency = exchange.generated.latency_ms
        expected = (expectation.expected_value or "").strip()
        is_judged = judges and bool(expected)
        if latency is None:
            result = undecided(expectation, "no latency was measured", expected=expected)
            return result._replace(is_measured=not is_judged)
        actual = f"{latency:.0f}" if latency >= 1 else f"{latency:.3f}"
        if not is_judged:
            explanation = f"{actual} ms; reported, not judged"
            return measured(expectation, latency, explanation, expected=expected, actual=actual)
        threshold = _milliseconds(expected)
        if threshold is None:
            reason = f"the expectedValue is not a number of milliseconds: {expected!r}"
            return broken(expectation, reason, actual=actual)
        passed = latency <= threshold
        explanation = f"{actual} ms, {'within' if passed else 'over'} the threshold of {expected} ms"
        return judged(
            expectation, passed=passed, expected=expected, actual=actual, explanation=explanation, score=latency
        )

    return score_latency


def score_tokens(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Pass if the answer used at most as many tokens as the expectedValue says; unknown tokens are UNDECIDED."""
    tokens, expected = exchange.generated.tokens, expectation.expected_value or ""
    total = tokens.total if tokens else None
    if total is None:
        return undecided(expectation, "the agent does not report its tokens", expected=expected)
    passed = total <= int(expected)
    explanation = f"{total} tokens, {'within' if passed else 'over'} the threshold of {expected}"
    return judged(
        expectation, passed=passed, expected=expected, actual=str(total), explanation=explanation, score=float(total)
    )


def score_first_token(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Pass if the first part of a streamed answer came in time; an answer that was not streamed is UNDECIDED."""
    taken, expected = exchange.generated.first_token_ms, expectation.expected_value or ""
    if taken is None:
        return undecided(expectation, "the answer was not streamed", expected=expected)
    passed, actual = taken <= int(expected), f"{taken:.0f}"
    explanation = f"{actual} ms until the first token, {'within' if passed else 'over'} the threshold of {expected} ms"
    return judged(expectation, passed=passed, expected=expected, actual=actual, explanation=explanation, score=taken)


@lru_cache(maxsize=1024)
def _milliseconds(text: str) -> float | None:
    number = parse_number(text)
    return None if number is None else float(number)


def score_document_recall(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Score the share, 0 to 1, of the expected documents (`uris` of the terms) that the agent retrieved.

    A document counts once. The share is reported (UNDECIDED) unless the terms set a threshold,
    which the mean of a case must reach. There is no score if the agent reported no retrieval or
    no document is expected. `uris` that are not a list of texts are an ERROR.
    """
    uris = _uris(expectation.terms.get("uris"))
    if uris is None:
        return broken(expectation, "the expected documents (uris) are not a list of texts")
    passages = exchange.generated.retrieved
    expected = _list(uris)
    if not uris or passages is None:
        lack = "the agent did not report what it retrieved" if uris else "the case has no expected documents"
        result = undecided(expectation, lack, expected=expected if uris else "")
        return result._replace(threshold=threshold_of(expectation))
    retrieved = dict.fromkeys(passage.uri for passage in passages)
    missing = [uri for uri in uris if uri not in retrieved]
    number = len(uris) - len(missing)
    explanation = f"{number} of {len(uris)} expected documents were retrieved"
    explanation += f"; missing: {first_few(missing)}" if missing else ""
    score, actual = number / len(uris), _list(retrieved)
    return averaged(expectation, score=score, expected=expected, actual=actual, explanation=explanation)


def _uris(value: JsonValue) -> list[str] | None:
    """Return the distinct documents in order, none for null; None if the value is not a list of texts."""
    if value is None:
        return []
    if isinstance(value, str) or not isinstance(value, Sequence):
        return None
    texts = [text for text in value if isinstance(text, str)]
    return list(dict.fromkeys(texts)) if len(texts) == len(value) else None


def _list(uris: Collection[str]) -> str:
    return f"[{', '.join(uris)}]"
