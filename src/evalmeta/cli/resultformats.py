"""The options of everything that reports on runs; formats that packages add are looked at when one is asked for."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import click

from evalmeta.cli.output import json_option
from evalmeta.cli.runreports import Output, prepare_folder
from evalmeta.report import FORMATS, format_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.shell_completion import CompletionItem

__all__ = ["report_options", "result_format_option"]

_T = TypeVar("_T")
_Command: TypeAlias = "Callable[..., _T]"  # type: ignore[explicit-any]


class _ResultFormat(click.ParamType):  # type: ignore[explicit-any, type-arg]
    """The name of a format; installed packages are looked at only for a name that is not built in."""

    name = "format"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return value if value in FORMATS else click.Choice(format_names()).convert(value, param, ctx)

    def shell_complete(  # type: ignore[explicit-any]
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return click.Choice(format_names()).shell_complete(ctx, param, incomplete)


def result_format_option(command: _Command[_T]) -> _Command[_T]:
    """Adds `--result-format`."""
    return click.option(
        "--result-format",
        type=_ResultFormat(),
        metavar=f"[{'|'.join(FORMATS)}]",
        default="human",
        show_default=True,
        help="How to report; installed packages may add formats.",
    )(command)


def report_options(command: _Command[_T]) -> _Command[_T]:
    """Adds `--result-format`, `--output-dir` and `--json`, and gives the command what they say as `output`.

    The folder is there before the command begins.
    """

    @wraps(command)
    def run(*, result_format: str, output_dir: Path | None, as_json: bool, **others: object) -> _T:
        prepare_folder(output_dir)
        return command(output=Output(result_format, output_dir, as_json), **others)

    output_dir = click.option(
        "-d",
        "--output-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Also write each run to a file test-result-ID there.",
    )
    decorated: _Command[_T] = run
    for option in (json_option, output_dir, result_format_option):
        decorated = option(decorated)
    return decorated
