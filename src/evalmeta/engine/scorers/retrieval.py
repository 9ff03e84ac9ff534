"""Retrieval: the agent found the documents that its answer has to be made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from evalmeta.engine.scorers.results import averaged, broken, threshold_of, undecided

if TYPE_CHECKING:
    from collections.abc import Collection

    from evalmeta.engine.scorer import Exchange
    from evalmeta.model.definition import Expectation
    from evalmeta.model.jsonvalue import JsonValue
    from evalmeta.model.run import TestResult

__all__ = ["score_document_recall"]

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
