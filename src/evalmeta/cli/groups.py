"""Groups that import a command when it is called, and commands with reports or with options of other tools."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from evalmeta.cli.suggestions import remember_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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


class ReportingCommand(click.Command):
    """A command with --report: before anything else, it removes the earlier reports that it will replace."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remove the files that --report names, also if the call is not valid; then parse the options."""
        from evalmeta.cli.runs.reports import remove_earlier_reports

        if not ctx.resilient_parsing:
            remove_earlier_reports(args)
        return super().parse_args(ctx, args)


class RenamedOptionsCommand(ReportingCommand):
    """A command that knows other tools' names of its options, and shows its options in sections.

    `renamed` has for each other name of an option its name here. `sections` are the titles of the sections, with the
    names of their parameters. The last one also has all others.
    """

    def __init__(
        self, *args: object, renamed: Mapping[str, str], sections: Mapping[str, Sequence[str]], **settings: object
    ) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type] # as above
        self._renamed = renamed
        self.sections = sections

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in their sections."""
        known = {name for names in self.sections.values() for name in names}
        *_, last = self.sections
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        for title, names in self.sections.items():
            params = [option for option in options if option.name in names]
            if title == last:
                params += [option for option in options if option.name not in known]
            rows = [row for param in params if (row := param.get_help_record(ctx))]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse and remember the options; the error about an unknown one names the option to use instead."""
        remember_words(ctx, args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if name := self._renamed.get(error.option_name):
                raise click.UsageError(f"{error.message} Use {name} instead.", ctx) from None
            raise
