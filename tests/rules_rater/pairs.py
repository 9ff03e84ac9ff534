"""Labelled pairs: what was expected, what came, whether it is right, and which rule must fire if one must."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta.engine.raters.labels import read_pairs

if TYPE_CHECKING:
    from evalmeta.engine.raters.labels import Pair

__all__ = ["FILE", "FRESH", "PAIRS", "split"]

FILE: Final = Path(__file__).with_name("pairs.jsonl")
PAIRS: Final = read_pairs(FILE)
# Written before the rules of today, without reading the code of the earlier ones. The pairs of every second
# expectation are held out (`fresh-held-out`): they were measured once, when the rules were finished.
FRESH: Final = read_pairs(FILE.with_name("fresh_pairs.jsonl"))


def split(name: str) -> list[Pair]:
    """Return the pairs of one split.

    `calibration` and `judge-1`: the rules were tuned on them. `held-out`: written before
    the rules. `judge-2`: written after them by somebody else; two pairs led to a rule since.
    `facts`: templates filled with random facts, whose rules were tuned on them; `facts-held-out`:
    other templates, measured once after the rules.
    """
    return [pair for pair in (*PAIRS, *FRESH) if pair.split == name]
