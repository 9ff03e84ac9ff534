"""What commands print: results to stdout, everything else to stderr, errors with their exit codes.

Colour is only used where it is wanted.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Final, TextIO

import click

from evalmeta.cli.groups import completed
from evalmeta.errors import EXIT_FAILED, EvalmetaError, Interrupted, StoreCorrupt, Suggestion, UsageError
from evalmeta.model.redaction import redacted
from evalmeta.package.forceignore import FORCEIGNORE_FILE
from evalmeta.report.problems import problem_json, render_human, warning_counts
from evalmeta.report.text import JsonDocument, aligned, blocks, count, escape_commands, escape_unsafe, stream_json
from evalmeta.version import __version__

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
_CHECK_COLOURS: Final = {**_COLOURS, "ok": "green"}


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
    try:
        click.echo(escape_commands(indent + completed(text)), err=True, color=wants_colour(err=True))
    except OSError as error:
        # A remark that nobody can read, because the terminal has gone or the disk is full, does not end the command.
        if error.errno not in _UNWRITABLE:
            raise
        _discard(sys.stderr)


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

    def style(text: str, name: str) -> str:
        return click.style(text, fg=_COLOURS.get(name), underline=name == "file" or None)

    text = render_human(problems, files=files, style=style)
    click.echo(text, err=err, color=wants_colour(err=err), nl=False)


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
    head, *lines = aligned([headers, *rows])
    click.echo(click.style(head, bold=True), color=wants_colour())
    click.echo("\n".join(lines))


def print_check(subject: str, status: str, message: str, action: str = "") -> None:
    """Print the result of a check, and what to do about it."""
    head = click.style(f"{status:<8}", fg=_CHECK_COLOURS[status])
    message = message.replace("\n", "\n         ")
    click.echo(f"{head} {subject}: {message}", color=wants_colour())
    if action:
        action = completed(action).replace("\n", "\n           ")
        click.echo(f"         → {action}")


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


_SHOWN_PROBLEMS: Final = 20
# Errors of a stream that cannot be written; errors of files have their name.
_UNWRITABLE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def report_error(error: BaseException, *, as_json: bool) -> int:
    """Print an error that ended a command, and return the exit code; the error is lost if nothing can be printed."""
    try:
        return _reported(error, as_json=as_json)
    except OSError as unwritable:
        if unwritable.errno not in {*_UNWRITABLE, errno.EPIPE}:
            raise
        for stream in (sys.stdout, sys.stderr):
            _discard(stream)
        return error.exit_code if isinstance(error, EvalmetaError) else EXIT_FAILED


def _reported(error: BaseException, *, as_json: bool) -> int:
    match error:
        case click.exceptions.NoArgsIsHelpError() if not as_json:
            click.echo(error.format_message())
            return UsageError.exit_code
        case click.ClickException():
            return _report_usage_error(error, as_json=as_json)
        case click.Abort() | KeyboardInterrupt():
            known: EvalmetaError = Interrupted("interrupted")
        case EvalmetaError():
            known = error
        case BrokenPipeError():
            _discard(sys.stdout)
            return EXIT_FAILED
        case OSError(filename=None) if error.errno in _UNWRITABLE:
            _discard(sys.stdout)
            way_out = "Free some disk space, or write the output elsewhere, and run the command again."
            known = EvalmetaError(f"the output cannot be written: {error.strerror}", actions=[way_out])
            as_json = False
        case _:
            known = _damage() or _defect(error)
    print_error(known, as_json=as_json)
    return known.exit_code


def print_error(error: EvalmetaError, *, as_json: bool) -> None:
    """Print an error: what happened, where, and what to do next. Secrets in it are redacted."""
    problems = error.problems
    message: str = getattr(error, "message", None) or str(error)
    if as_json:
        actions = [redacted(completed(action)) for action in error.actions]
        print_envelope(
            name=error.name,
            message=redacted(message),
            exitCode=error.exit_code,
            status=error.exit_code,
            actions=actions,
            data=[problem_json(problem) for problem in problems],
            warnings=[],
        )
        return
    errors = [problem for problem in problems if problem.is_error] or problems
    first, _, rest = message.partition("\n")
    if rest.startswith(tuple(map(str, errors[:1]))):
        # The problems below have the location and the hint of each line.
        message = first
    if any(problem.is_error for problem in problems) and message.startswith(str(problems[0].location)):
        # The problems below say what is wrong and where.
        message = f"{problems[0].location.path} is not valid"
    head = click.style(f"Error ({error.name}):", fg="red", bold=True)
    click.echo(f"{head} {escape_commands(redacted(message))}", err=True, color=wants_colour(err=True))
    if errors:
        print_problems(errors[:_SHOWN_PROBLEMS], err=True)
    if len(errors) > _SHOWN_PROBLEMS:
        click.echo(f"and {len(errors) - _SHOWN_PROBLEMS:,} more, which --json lists", err=True)
    if errors is not problems:
        print_warnings(problems)
    hints = {problem.hint for problem in problems}
    if actions := [action for action in error.actions if action not in hints]:
        click.echo("\nTry this:", err=True)
        for action in actions:
            click.echo(indent(escape_commands(redacted(completed(action))), "  "), err=True)


def _report_usage_error(error: click.ClickException, *, as_json: bool) -> int:
    # click quotes the words that it does not understand, which may be secrets.
    message = redacted(error.format_message())
    if as_json:
        print_error(UsageError(message), as_json=True)
    elif isinstance(error, click.BadParameter):
        # The message names the option and its valid values, so the usage would only hide it.
        click.echo(f"Error: {message}", err=True)
    else:
        click.UsageError(message, ctx=error.ctx if isinstance(error, click.UsageError) else None).show()
    return UsageError.exit_code


def _discard(stream: TextIO) -> None:
    # Python flushes streams at exit, which would fail again.
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def _damage() -> EvalmetaError | None:
    """Return the damage to the project's database, which may have led to any error; None if there is none."""
    from evalmeta.package.project import find_project
    from evalmeta.store.sqlite import check_integrity

    try:
        check_integrity(find_project(Path.cwd(), or_folder=True, with_settings=False).state_dir)
    except StoreCorrupt as damage:
        return damage
    except (EvalmetaError, OSError):
        return None
    return None


def _defect(error: BaseException) -> EvalmetaError:
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="evalmeta-", suffix=".log", delete=False, encoding="utf-8") as log:
        log.write(f"evalmeta {__version__}, Python {sys.version}\n")
        log.write(redacted("".join(traceback.format_exception(error))))
    return EvalmetaError(
        f"this is a defect in evalmeta: {type(error).__name__}: {error}",
        actions=[f"Report it with the log {log.name}; no file was written in part."],
    )
