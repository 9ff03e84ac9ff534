"""The files that --report and --trace name: checked and removed before a command, so that none is an earlier one."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import report
from evalmeta.errors import SettingsError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

URL: Final = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_PRINTING: Final = frozenset({"--help", "-h", "--dry-run"})
_REPORT: Final = "--report"
_TRACE: Final = "--trace"
_TRACE_SUFFIX: Final = ".jsonl"


def trace_file(target: str) -> Path:
    """Return the file that --trace names; raise UsageError if it cannot be one of traces."""
    path = Path(target)
    if path.suffix != _TRACE_SUFFIX or path.is_dir():
        raise UsageError(
            f"--trace {target} is not a file *.jsonl or a URL",
            actions=["Write it like traces.jsonl or http://127.0.0.1:4318."],
        )
    return path


class ReportingCommand(click.Command):
    """A command with --report and --trace: before anything else, it removes the earlier files that it will replace."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remove the files that --report and --trace name, also if the call is not valid; then parse the options."""
        if not ctx.resilient_parsing:
            remove_earlier_reports(args)
        return super().parse_args(ctx, args)


def remove_earlier_reports(words: Sequence[str]) -> None:
    """Remove the files that a call names with --report or --trace, so that none is taken for the report of this call.

    A call that only prints something removes nothing.
    """
    if _PRINTING.isdisjoint(words):
        named, others = split_reports(words)
        read = {os.path.realpath(other.partition("=")[2] if other.startswith("--") else other) for other in others}
        for option, path in named:
            _remove_report(option, path, is_read=os.path.realpath(path) in read)


def split_reports(words: Sequence[str]) -> tuple[list[tuple[str, Path]], list[str]]:
    """Return the files of --report and --trace with their option, and all other words."""
    named, others, rest = [], [], iter(words)
    for word in rest:
        option, sign, value = word.partition("=")
        if option in {_REPORT, _TRACE}:
            named += [(option, value)] if sign else [(option, value) for value in islice(rest, 1)]
        else:
            others.append(word)
    return [(option, Path(value)) for option, value in named if not URL.match(value)], others


def _remove_report(option: str, path: Path, *, is_read: bool) -> None:
    if is_read:
        message = f"{option} {path} would replace a file that this command reads"
        raise UsageError(message, actions=["Write the report to another file."])
    # A file with another extension is not a report, and is refused with the other options.
    with suppress(SettingsError):
        if option == _TRACE and path.suffix != _TRACE_SUFFIX:
            return
        report.format_of(path.name)
        file = Path(os.path.realpath(path))
        try:
            if os.path.isfile(file):  # noqa: PTH113 - a name that is too long is refused when it is written
                file.unlink()
        except OSError as error:
            message = f"the earlier report {path} cannot be removed: {error.strerror}"
            raise UsageError(message, actions=["Remove it, or write the report to another file."]) from None


def create_folder(folder: Path) -> None:
    """Create the folder of a report; raise UsageError if nothing can be written there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the folder {str(folder)!r} cannot be created: {error.strerror}", actions=["Choose another folder."]
        ) from None
    if not os.access(folder, os.W_OK):
        raise UsageError(f"the folder {str(folder)!r} is read-only", actions=["Choose another folder."])
