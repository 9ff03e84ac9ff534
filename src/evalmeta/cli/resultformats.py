"""The option `--result-format`: built-in names at once, names that packages add when one is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evalmeta.report import FORMATS, format_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

__all__ = ["result_format_option"]


class _ResultFormat(click.ParamType):  # type: ignore[explicit-any, type-arg]
    """The name of a format; installed packages are looked at only for a name that is not built in."""

    name = "format"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value if value in FORMATS else click.Choice(format_names()).convert(value, param, ctx)

    def shell_complete(  # type: ignore[explicit-any]
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return click.Choice(format_names()).shell_complete(ctx, param, incomplete)


def result_format_option(command: Callable[..., int]) -> Callable[..., int]:  # type: ignore[explicit-any]
    """Adds `--result-format`."""
    return click.option(
        "--result-format",
        type=_ResultFormat(),
        metavar=f"[{'|'.join(FORMATS)}]",
        default="human",
        show_default=True,
        help="How to report; installed packages may add formats.",
    )(command)
