"""Numbers in words: counts, shares and seconds as people read them."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["count", "percent", "seconds"]

_MINUTE: Final = 60
_SHOW_MILLISECONDS: Final = 10


def count(number: int, noun: str) -> str:
    """Gives `1 case`, `2 cases`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def percent(share: float) -> str:
    """Gives a share of 0 to 1 in percent, rounded down: only a whole share is 100 %."""
    return f"{math.floor(share * 10_000 + 1e-6) / 100:g} %"


def seconds(duration: float) -> str:
    """Gives `0.412 s`, `12.5 s` or `2 min 5 s`."""
    if duration < _SHOW_MILLISECONDS:
        return f"{round(duration, 3):g} s"
    if duration < _MINUTE:
        return f"{duration:.1f} s"
    minutes, rest = divmod(round(duration), _MINUTE)
    return f"{minutes:,} min {rest} s"
