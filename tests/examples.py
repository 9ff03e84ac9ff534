"""How much of a large test runs by default; all of it runs in `make thorough`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _pytest.mark import ParameterSet

__all__ = ["DEFAULT_EXAMPLES", "EXAMPLES", "at_most", "slow_but"]

DEFAULT_EXAMPLES = 20
EXAMPLES = int(os.environ.get("EVALMETA_EXAMPLES", DEFAULT_EXAMPLES))
"""How many examples Hypothesis draws for a test; `make thorough` sets the variable."""


def at_most(thorough: int) -> int:
    """Return the number of examples of a test that never draws more than `thorough` of them."""
    return min(thorough, EXAMPLES)


def slow_but(default: str, cases: Iterable[str]) -> list[ParameterSet]:
    """Return the cases of a parametrized test as parameters, all marked slow but the default one."""
    return [pytest.param(case, marks=[] if case == default else pytest.mark.slow) for case in cases]
