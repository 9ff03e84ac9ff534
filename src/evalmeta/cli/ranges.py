"""Options whose values are numbers within a range, which help and errors show in words."""

from __future__ import annotations

import math
from typing import NoReturn

import click


def _in_words(least: float | None, most: float | None, *, is_above: bool) -> str:
    if least is None:
        return ""
    if most is None:
        return f"at least {least:,g}"
    return f"above {least:,g} and at most {most:,g}" if is_above else f"from {least:,g} to {most:,g}"


class _InWords(click.ParamType):  # type: ignore[explicit-any, type-arg] # as click's
    def fail(self, message: str, param: click.Parameter | None = None, ctx: click.Context | None = None) -> NoReturn:
        """Raise click's error, with its range as a sentence."""
        number, is_outside, allowed = message.partition(" is not in the range ")
        raise click.BadParameter(
            f"it must be {allowed.rstrip('.')}, not {number}" if is_outside else message, ctx, param
        )


class IntRange(_InWords, click.IntRange):
    """A whole number within a range."""

    name = "integer"

    def _describe_range(self) -> str:
        return _in_words(self.min, self.max, is_above=self.min_open)


class FloatRange(_InWords, click.FloatRange):
    """A finite number, within a range if there is one."""

    name = "number"

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; "nan", which is not outside of any range, and infinite numbers are refused."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            allowed = self._describe_range() or "a finite number"
            self.fail(f"{number:g} is not in the range {allowed}.", param, ctx)
        return number

    def _describe_range(self) -> str:
        return _in_words(self.min, self.max, is_above=self.min_open)
