"""Measures: tokens, calls, latency and retrieved documents, judged only where there is a threshold."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from evalmeta.engine.jsonpath import parse_number
from evalmeta.engine.scorers.results import averaged, broken, first_few, judged, measured, threshold_of, undecided

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from evalmeta.engine.interfaces import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import TestResult


def measure_scorers() -> Mapping[str, Scorer]:
    """Return the scorers that report a number and judge nothing, by name: every result is UNDECIDED."""
    total = _measure_scorer(lambda generated: generated.tokens.total if generated.tokens else None, "tokens")
    seconds = _measure_scorer(
        lambda generated: None if generated.latency_ms is None else generated.latency_ms / 1_000, "s", digits=3
    )
    return {
        "agent/total_token_count": total,
        "agent/input_token_count": _measure_scorer(
            lambda generated: generated.tokens.input if generated.tokens else None, "tokens"
        ),
        "agent/output_token_count": _measure_scorer(
            lambda generated: generated.tokens.output if generated.tokens else None, "tokens"
        ),
        "agent/latency_seconds": seconds,
        "token_usage_v1": total,
        "tool_call_count_v1": _measure_scorer(
            lambda generated: None if generated.actions is None else len(generated.actions), "calls"
        ),
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
        return judged(
            expectation,
            passed=passed,
            expected=expected,
            actual=actual,
            explanation=f"{actual} ms, {'within' if passed else 'over'} the threshold of {expected} ms",
            score=latency,
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
    return averaged(
        expectation,
        score=number / len(uris),
        expected=expected,
        actual=_list(retrieved),
        explanation=f"{explanation}; missing: {first_few(missing)}" if missing else explanation,
    )


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
