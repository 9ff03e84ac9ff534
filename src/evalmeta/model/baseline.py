"""What a baseline knows: for each test, the results of its cases in several runs, and what asked and judged them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from evalmeta.model.run_options import Setup

if TYPE_CHECKING:
    from evalmeta.model.statistics import CaseCounts


@dataclass(frozen=True, slots=True)
class KnownTest:
    """A test in a baseline.

    Attributes:
        cases: in order of number; their `runs` end with the latest run.
        subject: the name of the agent.
        options: the fingerprint of the options that decide what passes; empty if it is not known.
        setup: what answered and judged in the latest run.
    """

    cases: tuple[CaseCounts, ...]
    subject: str = ""
    options: str = ""
    setup: Setup = field(default_factory=Setup)


KnownTests: TypeAlias = Mapping[str, KnownTest]
"""The tests of a baseline by their names."""
