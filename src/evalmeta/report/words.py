"""Numbers in words: counts, shares and seconds as people read them."""

from __future__ import annotations

import math
from typing import Final

__all__ = ["count", "decimal", "percent", "seconds", "told_apart"]

_MINUTE: Final = 60
_SHOW_MILLISECONDS: Final = 10
_SMALLEST: Final = 0.001


def count(number: int, noun: str) -> str:
    """Gives `1 case`, `2 cases`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def decimal(number: float) -> str:
    """Gives `0.667`, `1,234.5`: at most three places, or two digits of what is smaller."""
    if not math.isfinite(number) or 0 < abs(number) < _SMALLEST:
        return f"{number:.2g}"
    return f"{number:,.3f}".rstrip("0").rstrip(".")


def told_apart(first: float, second: float) -> tuple[str, str]:
    """Gives two numbers as `decimal` does, or in full where they would look the same and are not."""
    short = decimal(first), decimal(second)
    return short if short[0] != short[1] or first == second else (f"{first!r}", f"{second!r}")


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
