"""`evalmeta test`: run deployed definitions, look at what came out, and compare it."""

from __future__ import annotations

from typing import Final

import click

from evalmeta.cli.groups import LazyGroup

__all__ = ["test"]

_COMMANDS: Final = {
    "create": "evalmeta.cli.commands.agent_test.create:create",
    "list": "evalmeta.cli.commands.agent_test.jobs:list_tests",
    "run": "evalmeta.cli.commands.agent_test.run:run",
    "resume": "evalmeta.cli.commands.agent_test.jobs:resume",
    "results": "evalmeta.cli.commands.agent_test.jobs:results",
    "cancel": "evalmeta.cli.commands.agent_test.jobs:cancel",
    "compare": "evalmeta.cli.commands.agent_test.compare:compare",
    "history": "evalmeta.cli.commands.agent_test.history:history",
    "baseline": "evalmeta.cli.commands.agent_test.baseline:baseline",
    "rescore": "evalmeta.cli.commands.agent_test.rescore:rescore",
}


@click.group(cls=LazyGroup, rows=_COMMANDS)
def test() -> None:
    """Run agent tests and look at their results."""
