"""Groups that import a command when it is called, and the options of a call that suggested commands repeat."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from evalmeta.errors import Suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from evalmeta.package.project import Project


class FullHelpGroup(click.Group):
    """A group whose help shows the summaries of its commands in full."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first paragraph of each command's help."""
        rows = [
            (name, " ".join((command.help or "").partition("\n\n")[0].split()))
            for name, command in sorted(self.commands.items())
            if not command.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class LazyGroup(click.Group):
    """A group that imports a command's module only when the command is called.

    `module` is the package of the commands' modules. `rows` has for each command its `module:attribute` within
    `module`, and the first sentence of its help. `unknown` says what to do about a word that is not a command and
    resembles none. `hints` says what to do about words that are commands elsewhere. `sections` are the titles of the
    commands' groups in the help, with their commands.
    """

    def __init__(
        self,
        *,
        module: str,
        rows: Mapping[str, tuple[str, str]],
        unknown: str = "",
        hints: Mapping[str, str] | None = None,
        sections: Mapping[str, Sequence[str]] | None = None,
        **settings: object,
    ) -> None:
        super().__init__(**settings)  # type: ignore[arg-type] # click's own settings, checked by click
        self._module = module
        self.rows = rows
        self._unknown = unknown
        self._hints = hints or {}
        self.sections = sections or {"Commands": tuple(rows)}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of their table."""
        return list(self.rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; return None if it does not exist."""
        if cmd_name not in self.rows:
            return None
        module, _, attribute = self.rows[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"{self._module}.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the summaries of the commands, which the table has so that no command is imported."""
        width = max(map(len, self.rows))
        for title, names in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), self.rows[name][1]) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:  # type: ignore[explicit-any]
        """Complete the name of a command, without importing any."""
        names = [name for name in self.rows if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=self.rows[name][1]) for name in names), *options]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first word names; the error about an unknown word names a similar command."""
        name = args[0]
        if name not in self.rows and not name.startswith("-") and not ctx.resilient_parsing:
            close = get_close_matches(name, self.rows, n=1)
            hint = self._hints.get(name) or (f"Did you mean {close[0]!r}?" if close else self._unknown)
            raise click.UsageError(f"No such command {name!r}. {hint}".strip(), ctx)
        return super().resolve_command(ctx, args)


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
