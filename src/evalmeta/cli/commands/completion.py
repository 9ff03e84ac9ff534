"""`evalmeta completion`: the script that makes a shell complete commands and options."""

from __future__ import annotations

from typing import Final

import click

_SHELLS: Final = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that makes a shell complete evalmeta's commands and options.

    \b
    evalmeta completion bash >> ~/.bashrc
    evalmeta completion zsh >> ~/.zshrc
    evalmeta completion fish > ~/.config/fish/completions/evalmeta.fish
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - not needed for --help

    program = context.find_root()
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"click knows no completion for {shell}.")
    click.echo(kind(program.command, {}, "evalmeta", "_EVALMETA_COMPLETE").source())
