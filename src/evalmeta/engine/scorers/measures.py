"""Measures: what an answer cost in tokens, calls and time, told and not judged.

Latency: how long the agent took, and whether that is within a threshold if there is one.

Retrieval: the agent found the documents that its answer has to be made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from evalmeta.engine.scorers.results import averaged, broken, judged, measured, threshold_of, undecided
from evalmeta.engine.statistics import parse_number

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from evalmeta.engine.scorer import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import TestResult


_MILLISECONDS: Final = 1_000


def measure_scorer(measure: Callable[[GeneratedData], float | None], *, unit: str, digits: int = 0) -> Scorer:
    """Makes a scorer that judges nothing: every result is UNDECIDED and tells a number, or that the agent told none."""

    def score_measure(expectation: Expectation, exchange: Exchange) -> TestResult:
        number = measure(exchange.generated)
        if number is None:
            return measured(expectation, None, "the agent did not tell")
        actual = f"{number:.{digits}f}"
        return measured(expectation, float(number), f"{actual} {unit}, measured and not judged", actual=actual)

    return score_measure


def total_tokens(generated: GeneratedData) -> int | None:
    """Gives the tokens of question and answer together; None when either is unknown."""
    return generated.tokens.total if generated.tokens else None


def input_tokens(generated: GeneratedData) -> int | None:
    """Gives the tokens that the agent was given; None when it did not tell."""
    return generated.tokens.input if generated.tokens else None


def output_tokens(generated: GeneratedData) -> int | None:
    """Gives the tokens that the agent made; None when it did not tell."""
    return generated.tokens.output if generated.tokens else None


def latency_seconds(generated: GeneratedData) -> float | None:
    """Gives the seconds that the answer took; None when nobody measured them."""
    return None if generated.latency_ms is None else generated.latency_ms / _MILLISECONDS


def tool_calls(generated: GeneratedData) -> int:
    """Gives how many actions the agent took."""
    return len(generated.actions)


def latency_scorer(*, judges: bool = True) -> Scorer:
    """Makes the scorer of latency; the score is the latency in milliseconds.

    It passes when the answer took at most the expectedValue, in milliseconds, or when
    none is set. With `judges=False` the latency is measured and every result UNDECIDED,
    whatever the expectedValue. So is one that nobody measured.
    """

    def score_latency(expectation: Expectation, exchange: Exchange) -> TestResult:
        latency = exchange.generated.latency_ms
        expected = (expectation.expected_value or "").strip()
        if latency is None:
            return undecided(expectation, "no latency was measured", expected=expected)
        actual = f"{latency:.0f}" if latency >= 1 else f"{latency:.3f}"
        if not judges:
            explanation = f"{actual} ms, measured and not judged"
            return measured(expectation, latency, explanation, expected=expected, actual=actual)
        if not expected:
            explanation = f"{actual} ms, no threshold is set"
            return judged(expectation, passed=True, expected="", actual=actual, explanation=explanation, score=latency)
        threshold = _milliseconds(expected)
        if threshold is None:
            return broken(expectation, f"the expectedValue is no number of milliseconds: {expected!r}", actual=actual)
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


@lru_cache(maxsize=1024)
def _milliseconds(text: str) -> float | None:
    number = parse_number(text)
    return None if number is None else float(number)


_SHOWN: Final = 10


def score_document_recall(expectation: Expectation, exchange: Exchange) -> TestResult:
    """Gives the share, 0 to 1, of the documents that the terms expect (`uris`) among those that the agent retrieved.

    A document counts once, however often it is named or retrieved. The share is measured
    (UNDECIDED, and told) unless the terms set a threshold, which the mean of a case must
    reach. When the agent told of no retrieval, or no document is expected, there is no score.
    `uris` that are no list of texts give ERROR.
    """
    uris = _uris(expectation.terms.get("uris"))
    if uris is None:
        return broken(expectation, "the expected documents (uris) are no list of texts")
    passages = exchange.generated.retrieved
    expected = _list(uris)
    if not uris:
        return _unscored(expectation, "the case gives no expected documents")
    if passages is None:
        return _unscored(expectation, "the agent did not tell what it retrieved", expected=expected)
    retrieved = dict.fromkeys(passage.uri for passage in passages)
    missing = [uri for uri in uris if uri not in retrieved]
    found = len(uris) - len(missing)
    told = f"{found} of {len(uris)} expected documents were retrieved"
    return averaged(
        expectation,
        score=found / len(uris),
        expected=expected,
        actual=_list(retrieved),
        explanation=f"{told}; missing: {_some(missing)}" if missing else told,
    )


def _unscored(expectation: Expectation, explanation: str, *, expected: str = "") -> TestResult:
    result = undecided(expectation, explanation, expected=expected)
    return result._replace(threshold=threshold_of(expectation))


def _uris(value: JsonValue) -> list[str] | None:
    """Gives the distinct documents in their order; none for null."""
    if value is None:
        return []
    if isinstance(value, str) or not isinstance(value, Sequence):
        return None
    texts = [each for each in value if isinstance(each, str)]
    return list(dict.fromkeys(texts)) if len(texts) == len(value) else None


def _list(uris: Collection[str]) -> str:
    return f"[{', '.join(uris)}]"


def _some(uris: Sequence[str]) -> str:
    shown = ", ".join(uris[:_SHOWN])
    return f"{shown} and {len(uris) - _SHOWN} more" if len(uris) > _SHOWN else shown
