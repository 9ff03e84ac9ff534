"""Measures: what an answer cost in tokens, calls and time, told and not judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.engine.scorers.results import measured

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalmeta.engine.scorer import Exchange, Scorer
    from evalmeta.model.definition import Expectation
    from evalmeta.model.generated import GeneratedData
    from evalmeta.model.run import TestResult

__all__ = ["input_tokens", "latency_seconds", "measure_scorer", "output_tokens", "tool_calls", "total_tokens"]

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
