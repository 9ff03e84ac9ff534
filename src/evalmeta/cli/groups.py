"""Groups of commands that load a command's module when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LazyGroup"]


class LazyGroup(click.Group):
    """A group whose commands are rows: a name, and `module:attribute` where the command is.

    A module is loaded when its command is called, or when all are listed.
    """

    def __init__(self, *, rows: Mapping[str, str], **settings: object) -> None:
        super().__init__(**settings)  # type: ignore[arg-type] # click's own settings, checked by click
        self._rows = rows

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
