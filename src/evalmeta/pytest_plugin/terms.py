"""What an evaluation may ask for."""

from __future__ import annotations

from evalmeta import limits

__all__ = ["check_terms"]


def check_terms(*, min_pass_rate: float = 1.0, iterations: float = 1) -> str | None:
    """Says which of the two is beyond its limit; None when both are well."""
    if not 0 <= min_pass_rate <= 1:
        return f"min_pass_rate is {min_pass_rate}; 0 to 1 are allowed"
    if not (isinstance(iterations, int) and 1 <= iterations <= limits.MAX_ITERATIONS):
        return f"iterations is {iterations}; whole numbers from 1 to {limits.MAX_ITERATIONS} are allowed"
    return None
