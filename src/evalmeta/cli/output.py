"""What commands print: results to stdout, everything else to stderr, colour only where it is wanted."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import click

from evalmeta.cli.suggestions import completed
from evalmeta.errors import Suggestion
from evalmeta.package.forceignore import FORCEIGNORE_FILE
from evalmeta.report.problems import render_human, warning_counts
from evalmeta.report.text import JsonDocument, blocks, count, escape_commands, escape_unsafe, stream_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rich.console import Console

    from evalmeta.api.specs import Source
    from evalmeta.formats.diagnostics import Loss
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.problem import Problem
    from evalmeta.report.text import JsonList


json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")


_COLOURS: Final = {"error": "red", "warning": "yellow"}


def wants_colour(*, err: bool = False) -> bool:
    """Return whether to colour: on a terminal, unless NO_COLOR is set; FORCE_COLOR turns it on anywhere."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    stream = sys.stderr if err else sys.stdout
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def console(*, err: bool) -> Console:
    """Return a rich console for stdout or stderr."""
    from rich.console import Console

    return Console(file=sys.stderr if err else sys.stdout, no_color=not wants_colour(err=err), highlight=False)


def note(text: str, *, indent: str = "") -> None:
    """Print a remark to stderr; the command of a `Suggestion` repeats the call's org and selection."""
    click.echo(escape_commands(indent + completed(text)), err=True, color=wants_colour(err=True))


def warn(text: str) -> None:
    """Print a warning to stderr."""
    note(f"Warning: {text}")


def print_stream(pieces: Iterable[str]) -> None:
    """Print a text that comes in pieces and ends its own lines."""
    for block in blocks(pieces):
        click.echo(block, nl=False)


def print_json(result: JsonValue | JsonList, *, status: int = 0, warnings: Sequence[str] = ()) -> None:
    """Print the envelope `{status, result, warnings}` of the sf CLI."""
    print_envelope(status=status, result=result, warnings=list(warnings))


def print_envelope(**fields: JsonValue | JsonList) -> None:
    """Print a JSON object of these fields."""
    print_stream(map(escape_unsafe, stream_json(JsonDocument(fields))))
    click.echo()


def print_problems(problems: Sequence[Problem], *, files: int = 0, err: bool = False) -> None:
    """Print problems with their hints."""
    text = render_human(problems, files=files, style=_style)
    click.echo(text, err=err, color=wants_colour(err=err), nl=False)


def _style(text: str, name: str) -> str:
    return click.style(text, fg=_COLOURS.get(name), underline=name == "file" or None)


def print_warnings(problems: Sequence[Problem], *, paths: Sequence[str] = ()) -> None:
    """Print to stderr one line for each code of warnings; the last of a command that lists them has the command.

    `paths` are what to check if several files have a warning; by default, the project.
    """
    texts: dict[tuple[str, ...], list[str]] = {}
    for text, files in warning_counts(problems):
        # Only the check of a whole project reads its .forceignore.
        is_checked = len(files) == 1 and not files[0].endswith(FORCEIGNORE_FILE)
        where = "" if is_checked else f" in {files[0] if len(files) == 1 else count(len(files), 'file')}"
        texts.setdefault(tuple(files if is_checked else paths), []).append(f"Warning: {text}{where}.")
    for checked, [*others, last] in texts.items():
        for other in others:
            note(other)
        note(Suggestion(f"{last} Show{' them' if others else ''}", "validate", *checked))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns, or nothing if there are no rows."""
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    head, *lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (headers, *rows)
    )
    click.echo(click.style(head, bold=True), color=wants_colour())
    click.echo("\n".join(lines))


def print_source_notes(source: Source) -> None:
    """Print to stderr the warnings about a file, and what a definition cannot hold of it."""
    for problem in source.notes:
        note(f"{problem} {problem.hint}".rstrip())
    print_losses(source.losses)


def print_losses(losses: Sequence[Loss]) -> None:
    """Print to stderr what the other format cannot hold."""
    for loss in losses:
        note(f"Lost: {loss}")


def print_styled(lines: Iterable[tuple[str, str]], colours: Mapping[str, str], *, err: bool = False) -> None:
    """Print lines with their styles; `colours` maps styles to colours, and titles are bold."""
    for style, text in lines:
        styled = click.style(text, fg=colours.get(style), bold=style == "title" or None)
        click.echo(styled, err=err, color=wants_colour(err=err))
