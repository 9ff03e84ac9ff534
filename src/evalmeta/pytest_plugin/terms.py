"""What an evaluation may ask for, in our words and in those of Ballerina's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Terms", "check_terms", "settle_terms"]


class Terms(NamedTuple):
    """What share of its tests an evaluation needs, 0 to 1, and how often it tests each parameter set."""

    min_pass_rate: float
    iterations: int


def settle_terms(*, rates: Mapping[str, float | None], times: Mapping[str, int | None]) -> Terms | str:
    """Gives what several words for the same two things say; or says what is wrong with it.

    Without any value all tests must pass, once each.
    """
    for values in (rates, times):
        given = {word: value for word, value in values.items() if value is not None}
        if len(set(given.values())) > 1:
            said = " and ".join(f"{word}={value}" for word, value in given.items())
            return f"{said} are two words for the same: give one of them"
    rate_word, rate = _given(rates, default=1.0)
    times_word, iterations = _given(times, default=1)
    return _rate_fault(rate, rate_word) or _times_fault(iterations, times_word) or Terms(rate, int(iterations))


def check_terms(*, min_pass_rate: float = 1.0, iterations: float = 1) -> str | None:
    """Says which of the two is beyond its limit; None when both are well."""
    return _rate_fault(min_pass_rate, "min_pass_rate") or _times_fault(iterations, "iterations")


def _rate_fault(rate: float, word: str) -> str | None:
    return None if 0 <= rate <= 1 else f"{word} is {rate}; 0 to 1 are allowed"


def _times_fault(times: float, word: str) -> str | None:
    if isinstance(times, int) and 1 <= times <= limits.MAX_ITERATIONS:
        return None
    return f"{word} is {times}; whole numbers from 1 to {limits.MAX_ITERATIONS} are allowed"


def _given(values: Mapping[str, float | None], *, default: float) -> tuple[str, float]:
    """Gives the first word with a value, and the value."""
    return next(((word, value) for word, value in values.items() if value is not None), (next(iter(values)), default))
