"""Options whose values are numbers within a range, which help and errors show in words."""

from __future__ import annotations

from typing import NoReturn

import click


def _in_words(least: float | None, most: float | None, *, is_above: bool) -> str:
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
    """A number within a range."""

    name = "number"

    def _describe_range(self) -> str:
        return _in_words(self.min, self.max, is_above=self.min_open)
