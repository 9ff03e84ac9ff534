"""What other formats tell of a judged metric beside its name, read from an expectation's terms."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.errors import RaterError

if TYPE_CHECKING:
    from evalmeta.model.definition import Expectation
    from evalmeta.model.jsonvalue import JsonObject, JsonValue

__all__ = ["JudgedTerms", "NamedRubric", "read_terms"]

_AGGREGATES: Final = ("majority", "share")


class NamedRubric(NamedTuple):
    """One thing that is asked of the agent's work, and what results call it."""

    id: str
    text: str


class JudgedTerms(NamedTuple):
    """The terms of a judged metric; what is not given is None or empty.

    Attributes:
        threshold: what the score must reach, on the score's own scale.
        samples: how often a rater that rates by samples takes one.
        aggregate: `majority` of the samples, or the `share` that says yes.
    """

    threshold: float | None = None
    samples: int | None = None
    aggregate: str = "majority"
    facts: tuple[str, ...] = ()
    guidelines: tuple[str, ...] = ()
    rubrics: tuple[NamedRubric, ...] = ()


def read_terms(expectation: Expectation) -> JudgedTerms:
    """Reads the terms of an expectation; keys that judged metrics do not know are left alone.

    Raises:
        RaterError: one of them is not what it has to be.
    """
    terms = expectation.terms
    return JudgedTerms(
        _threshold(terms.get("threshold")),
        _samples(terms.get("num_samples")),
        _aggregate(terms.get("aggregate")),
        _texts(terms, "facts"),
        _texts(terms, "guidelines"),
        _rubrics(terms.get("rubrics")),
    )


def _threshold(value: JsonValue) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise RaterError(f"its threshold is {value!r:.50}, which is no number")
    return float(value)


def _samples(value: JsonValue) -> int | None:
    most = limits.MAX_RATER_SAMPLES
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise RaterError(f"its num_samples is {value!r:.50}, which is no whole number from 1 to {most}")
    return value


def _aggregate(value: JsonValue) -> str:
    if value is None:
        return _AGGREGATES[0]
    if not isinstance(value, str) or value not in _AGGREGATES:
        raise RaterError(f"its aggregate is {value!r:.50}; known are {' and '.join(_AGGREGATES)}")
    return value


def _texts(terms: JsonObject, name: str) -> tuple[str, ...]:
    """Gives a list of texts, blank ones left out."""
    value = terms.get(name)
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise RaterError(f"its {name} are no list of texts")
    return tuple(each for each in map(str, value) if each.strip())


def _rubrics(value: JsonValue) -> tuple[NamedRubric, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise RaterError("its rubrics are no list")
    return tuple(map(_rubric, value))


def _rubric(value: JsonValue) -> NamedRubric:
    name, text = (value.get("id"), value.get("text")) if isinstance(value, dict) else (None, None)
    if not isinstance(name, str) or not isinstance(text, str):
        raise RaterError('one of its rubrics is not of the form {"id": "...", "text": "..."}')
    return NamedRubric(name, text)
