"""What commands print: results to stdout, everything else to stderr, colour only where it is wanted."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

import click

from evalmeta.cli.suggestions import repeated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from evalmeta.api.org_targets import Target
    from evalmeta.errors import EvalmetaError
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.problem import Problem
    from evalmeta.package.project import Project


_SHOWN_PROBLEMS: Final = 20

json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")


def wants_colour(*, err: bool = False) -> bool:
    """Tells whether to colour: on a terminal, unless NO_COLOR is set; FORCE_COLOR turns it on anywhere."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    stream = sys.stderr if err else sys.stdout
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def console(*, err: bool) -> Console:
    """Makes rich's view of stdout, or of stderr."""
    from rich.console import Console  # noqa: PLC0415 - not needed for --help

    return Console(file=sys.stderr if err else sys.stdout, no_color=not wants_colour(err=err), highlight=False)


def note(text: str) -> None:
    """Prints a remark to stderr; commands that it suggests repeat the call's org and selection."""
    click.echo(repeated(text), err=True, color=wants_colour(err=True))


def say_target(project: Project, target: Target | None = None) -> None:
    """Says in one line which org a command works with; None is the embedded one."""
    from evalmeta.api.org_targets import token_variable  # noqa: PLC0415 - not needed for --help

    if target is None:
        note(f"Target: the embedded org of {project.root.name} ({_short(project)})")
    elif target.login.name == target.login.url:
        note(f"Target: {target.login.url}, with {token_variable()}")
    else:
        note(f"Target: {target.login.name}, {target.login.username} at {target.login.url}")


def print_json(result: JsonValue, *, status: int = 0, warnings: Sequence[str] = ()) -> None:
    """Prints the envelope `{status, result, warnings}` of the sf CLI."""
    import orjson  # noqa: PLC0415 - not needed for --help

    envelope = {"status": status, "result": result, "warnings": list(warnings)}
    click.echo(orjson.dumps(envelope, option=orjson.OPT_INDENT_2).decode())


def print_error(error: EvalmetaError, *, as_json: bool) -> None:
    """Prints an error: what, where, and what to do next; whatever still looks like a secret is left out."""
    from evalmeta.model.redaction import redacted  # noqa: PLC0415 - only when there is one

    problems: Sequence[Problem] = getattr(error, "problems", ())
    if as_json:
        _print_error_json(error, problems)
        return
    colour = wants_colour(err=True)
    head = click.style(f"Error ({error.name}):", fg="red", bold=True)
    click.echo(f"{head} {redacted(_headline(error, problems))}", err=True, color=colour)
    if problems:
        print_problems(problems[:_SHOWN_PROBLEMS], err=True)
    if len(problems) > _SHOWN_PROBLEMS:
        click.echo(f"and {len(problems) - _SHOWN_PROBLEMS:,} more, which --json lists", err=True)
    hints = {problem.hint for problem in problems}
    if actions := [action for action in error.actions if action not in hints]:
        click.echo("\nTry this:", err=True)
        for action in actions:
            click.echo("  " + redacted(repeated(action)).replace("\n", "\n  "), err=True)


def print_problems(problems: Sequence[Problem], *, files: int = 0, err: bool = False) -> None:
    """Prints findings with their hints."""
    from evalmeta.report.problems import render  # noqa: PLC0415 - only when there are any

    click.echo(render("human", problems, files=files), err=err, color=wants_colour(err=err), nl=False)


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints aligned columns; nothing when there are no rows."""
    if not rows:
        return
    widths = [max(len(row[place]) for row in (headers, *rows)) for place in range(len(headers))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    head = "  ".join(header.ljust(width) for header, width in zip(headers, widths, strict=True)).rstrip()
    click.echo(click.style(head, bold=True), color=wants_colour())
    click.echo("\n".join(lines))


def _headline(error: EvalmetaError, problems: Sequence[Problem]) -> str:
    """Gives what goes before the problems, which say themselves what is wrong and where."""
    text: str = getattr(error, "message", None) or str(error)
    first = next(iter(problems), None)
    return f"{first.location.path} does not fit its format" if first and text.startswith(str(first.location)) else text


def _print_error_json(error: EvalmetaError, problems: Sequence[Problem]) -> None:
    import orjson  # noqa: PLC0415 - not needed for --help

    from evalmeta.model.redaction import redacted  # noqa: PLC0415 - likewise
    from evalmeta.report.problems import problem_json  # noqa: PLC0415 - likewise

    body = {
        "name": error.name,
        "message": redacted(getattr(error, "message", None) or str(error)),
        "exitCode": error.exit_code,
        "status": error.exit_code,
        "actions": [redacted(repeated(action)) for action in error.actions],
        "data": [problem_json(each) for each in problems],
        "warnings": [],
    }
    click.echo(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode())


def _short(project: Project) -> str:
    state = project.state_dir
    return state.relative_to(project.root).as_posix() if state.is_relative_to(project.root) else str(state)
