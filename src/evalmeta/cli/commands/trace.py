"""`evalmeta trace`: what traces of OpenTelemetry say of an agent."""

from __future__ import annotations

from typing import Final

import click

from evalmeta.cli.groups import LazyGroup

_COMMANDS: Final = {
    "import": ("trace_import:import_traces", "Show the turns in files of traces, and write them as tests."),
    "receive": ("trace_receive:receive", "Receive traces of agents as they run, and write them as tests."),
}


@click.group(cls=LazyGroup, module="evalmeta.cli.commands", rows=_COMMANDS)
def trace() -> None:
    """Read traces of OpenTelemetry: what an agent was asked, did and answered."""
