"""Groups of commands that load a command's module when it is called, and commands that say what they were not told."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping


class LazyGroup(click.Group):
    """A group whose commands are rows: a name, and `module:attribute` where the command is.

    A module is loaded when its command is called, or when all are listed. `otherwise` is
    said of a word that is no command and resembles none.
    """

    def __init__(self, *, rows: Mapping[str, str], otherwise: str = "", **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type] # click's own settings, checked by click
        self._rows = rows
        self._otherwise = otherwise

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names the commands in the order of the rows."""
        return list(self._rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        """Loads a command; None when no row names it."""
        if cmd_name not in self._rows:
            return None
        module, _, attribute = self._rows[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds a command; of one that is not there, says which may be meant.

        Raises:
            click.UsageError: no row names it.
        """
        name = args[0]
        if name not in self._rows and not name.startswith("-") and not ctx.resilient_parsing:
            close = get_close_matches(name, self._rows, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else self._otherwise
            raise click.UsageError(f"No such command {name!r}. {hint}".strip(), ctx)
        return super().resolve_command(ctx, args)


class Suggesting(click.Command):
    """A command that knows what others call its options: `instead` has the own one for each of theirs."""

    def __init__(self, *args: object, instead: Mapping[str, str], **settings: object) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type] # as above
        self._instead = instead

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the options.

        Raises:
            click.UsageError: there is no such option; says what it is called here.
        """
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if own := self._instead.get(error.option_name):
                raise click.UsageError(f"{error.message} Here it is {own}.", ctx) from None
            raise


class OptionsOnly(click.Command):
    """A command without arguments, which says by which option (`instead`) what it was given is named."""

    allow_extra_args = True

    def __init__(self, *args: object, instead: str, **settings: object) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type] # as above
        self._instead = instead

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Reads the options.

        Raises:
            click.UsageError: there is something else.
        """
        rest = super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            raise click.UsageError(f"Unexpected {ctx.args[0]!r}; to name it: {self._instead} {ctx.args[0]}", ctx)
        return rest
