"""Complete the commands that evalmeta suggests with the org and the files of the current call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from evalmeta.errors import Suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from evalmeta.package.project import Project

_ORG_COMMANDS: Final = frozenset({"deploy", "diff", "retrieve", "status", "test"})
_SELECTING_COMMANDS: Final = frozenset({"deploy", "retrieve"})


@dataclass(slots=True)
class CallOptions:
    """The options of the current call that suggested commands repeat, as words.

    `words` are all words of a command that runs tests; None for other commands.
    """

    target: tuple[str, ...] = ()
    selection: tuple[str, ...] = ()
    words: tuple[str, ...] | None = None


def remember_target(ctx: click.Context, _: click.Parameter, name: str | None) -> str | None:
    """Remember the org that a call names, as the callback of --target-org."""
    ctx.ensure_object(CallOptions).target = ("--target-org", name) if name else ()
    return name


def remember_words(ctx: click.Context, words: Iterable[str]) -> None:
    """Remember all words of a call of `test run` after the command."""
    ctx.ensure_object(CallOptions).words = tuple(words)


def remember_selection(source_dirs: Iterable[Path], manifest: Path | None, metadata: Iterable[str]) -> None:
    """Remember the files that a call selects."""
    pairs = [
        *(("--source-dir", str(path)) for path in source_dirs),
        *(("--manifest", str(path)) for path in (manifest,) if path),
        *(("--metadata", text) for text in metadata),
    ]
    options = click.get_current_context().ensure_object(CallOptions)
    options.selection = tuple(word for pair in pairs for word in pair)


def completed(text: str) -> str:
    """Return a text; the command of a `Suggestion` repeats the call's org and, where it takes one, its selection."""
    ctx = click.get_current_context(silent=True)
    options = ctx.find_object(CallOptions) if ctx else None
    if options is None or not isinstance(text, Suggestion) or text.command[0] not in _ORG_COMMANDS:
        return text
    command, *rest = text.command
    target = () if "--target-org" in rest else options.target
    is_subcommand = bool(rest) and not rest[0].startswith("-")
    selection = options.selection if command in _SELECTING_COMMANDS and not is_subcommand else ()
    return Suggestion(text.purpose, *text.command, *target, *selection)


def run_hint(project: Project) -> Suggestion:
    """Suggest the command that runs the tests of a project: in its org, or in files."""
    return Suggestion("Run the tests", *(("test", "run", "--wait") if project.is_dx else ("run",)))
