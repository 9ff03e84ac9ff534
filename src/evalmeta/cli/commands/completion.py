"""`evalmeta completion`: the script that completes commands and options in a shell."""

from __future__ import annotations

from typing import Final

import click
from click.shell_completion import get_completion_class

_SHELLS: Final = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes evalmeta's commands in your shell.

    \b
    evalmeta completion bash >> ~/.bashrc
    evalmeta completion zsh >> ~/.zshrc
    evalmeta completion fish > ~/.config/fish/completions/evalmeta.fish
    """
    program = context.find_root()
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click has no completion for {shell}.")
    click.echo(kind(program.command, {}, "evalmeta", "_EVALMETA_COMPLETE").source())
