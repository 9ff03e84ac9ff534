"""`evalmeta test`: run deployed definitions, look at what came out, and compare it."""

from __future__ import annotations

from typing import Final

import click

from evalmeta.cli.groups import LazyGroup

__all__ = ["test"]

_COMMANDS: Final = {
    "create": "evalmeta.cli.commands.test_create:create",
    "list": "evalmeta.cli.commands.test_jobs:list_tests",
    "run": "evalmeta.cli.commands.test_run:run",
    "resume": "evalmeta.cli.commands.test_jobs:resume",
    "results": "evalmeta.cli.commands.test_jobs:results",
    "cancel": "evalmeta.cli.commands.test_jobs:cancel",
    "compare": "evalmeta.cli.commands.test_compare:compare",
    "history": "evalmeta.cli.commands.test_history:history",
    "baseline": "evalmeta.cli.commands.test_baseline:baseline",
    "rescore": "evalmeta.cli.commands.test_rescore:rescore",
}


@click.group(cls=LazyGroup, rows=_COMMANDS)
def test() -> None:
    """Run agent tests and look at their results."""
