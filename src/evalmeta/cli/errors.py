"""Turn errors into text and exit codes."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Final

import click

from evalmeta.cli.output import print_envelope, print_problems, print_warnings, wants_colour
from evalmeta.cli.suggestions import completed
from evalmeta.errors import EXIT_FAILED, EvalmetaError, Interrupted, StoreCorrupt, UsageError
from evalmeta.model.redaction import redacted
from evalmeta.report.problems import problem_json
from evalmeta.report.text import escape_commands
from evalmeta.version import __version__

_SHOWN_PROBLEMS: Final = 20
# Errors of a stream that cannot be written; errors of files have their name.
_UNWRITABLE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def report_error(error: BaseException, *, as_json: bool) -> int:
    """Print an error that ended a command, and return the exit code."""
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
            _discard_stdout()
            return EXIT_FAILED
        case OSError(filename=None) if error.errno in _UNWRITABLE:
            _discard_stdout()
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
    if problems and message.startswith(str(problems[0].location)):
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
            click.echo("  " + escape_commands(redacted(completed(action))).replace("\n", "\n  "), err=True)


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


def _discard_stdout() -> None:
    # Python flushes stdout at exit, which would fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _damage() -> EvalmetaError | None:
    """Return the damage to the project's database, which may have led to any error; None if there is none."""
    from evalmeta.package.project import find_project
    from evalmeta.store.database import check_integrity

    try:
        check_integrity(find_project(Path.cwd(), or_folder=True, with_settings=False).state_dir)
    except StoreCorrupt as damage:
        return damage
    except (EvalmetaError, OSError):
        return None
    return None


def _defect(error: BaseException) -> EvalmetaError:
    with tempfile.NamedTemporaryFile("w", prefix="evalmeta-", suffix=".log", delete=False, encoding="utf-8") as log:
        log.write(f"evalmeta {__version__}, Python {sys.version}\n")
        log.write(redacted("".join(traceback.format_exception(error))))
    return EvalmetaError(
        f"this is a defect in evalmeta: {type(error).__name__}: {error}",
        actions=[f"Report it with the log {log.name}; no file was written in part."],
    )
