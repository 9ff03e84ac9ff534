"""`evalmeta test`: run agent tests, show their results, and compare them."""

from __future__ import annotations

from typing import Final

import click

from evalmeta.cli.groups import LazyGroup

_COMMANDS: Final = {
    "create": ("create:create", "Create a definition from a test spec or another file, and deploy it."),
    "list": ("jobs:list_tests", "List the agent tests in the org."),
    "run": ("run:run", "Run agent tests that are in the org, or in files of any format."),
    "resume": (
        "jobs:resume",
        "Complete what a command began: resume its runs, and start its tests that never started.",
    ),
    "results": (
        "jobs:results",
        "Show the results that a run has so far, or all runs of a command with `latest` or `previous`.",
    ),
    "cancel": ("jobs:cancel", "Cancel runs; their finished results are kept."),
    "compare": ("compare:compare", "Compare the cases of a run with those of an earlier run."),
    "history": ("compare:history", "List past runs, here and in other orgs, newest last."),
    "baseline": ("baseline:baseline", "Save the results of runs as a baseline to commit and compare with."),
    "merge": ("merge:merge", "Merge the runs of shards into one run of each test."),
    "mark": ("mark:mark", "Say whether the verdict of a result is right or wrong."),
    "marks": ("mark:marks", "List what people said of results, or export it to check raters."),
    "accept": ("mark:accept", "Make an answer of a run the new expectation of its test."),
    "archive": ("archive:archive", "Write finished runs into Parquet files that can be read back."),
    "prune": ("prune:prune", "Delete old runs with their results, and make the project's store smaller."),
    "rescore": ("jobs:rescore", "Score the answers of a run again with other rules, without asking the agent."),
}


@click.group(cls=LazyGroup, module="evalmeta.cli.commands.agent_test", rows=_COMMANDS)
def test() -> None:
    """Run agent tests and show their results."""
