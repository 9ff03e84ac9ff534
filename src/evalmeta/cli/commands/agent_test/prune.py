"""`evalmeta test prune`: delete old runs."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.options import Age, IntRange
from evalmeta.cli.output import json_option, note, print_json, print_table
from evalmeta.package.project import find_project
from evalmeta.protocol.json_fields import to_timestamp
from evalmeta.report.text import count, file_size, one_line

if TYPE_CHECKING:
    from evalmeta.api.runs.saved import Pruned
    from evalmeta.model.json_value import JsonObject
    from evalmeta.store.retention import OldRun

_SHOWN: Final = 20
_MOST: Final = 1_000_000


@click.command()
@click.option("--keep", type=IntRange(1, _MOST), metavar="N", help="Keep the latest N complete runs of each test.")
@click.option("--older-than", "age", type=Age(), metavar="AGE", help="Only delete older runs: 90d, 12w or 36h.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@json_option
def prune(*, keep: int | None, age: float | None, dry_run: bool, as_json: bool) -> None:
    """Delete old runs with their results, and make the project's store smaller.

    Give --keep, --older-than or both; runs must match both. Only complete runs of all cases
    are counted, and what began after the oldest of the latest N is kept too. Also kept are
    runs in progress, in incomplete suites, in a baseline, judged again by a later run, or
    judged by people. Of runs in other orgs, only the local copy is deleted. Other commands
    can use the store at the same time.

    \b
    evalmeta test prune --keep 50
    evalmeta test prune --older-than 90d --dry-run
    """
    before = None if age is None else time.time() - age
    pruned = api.runs.saved.prune_runs(find_project(Path.cwd()), keep=keep, before=before, is_dry_run=dry_run)
    if as_json:
        print_json(_as_json(pruned))
        return
    if dry_run and pruned.deleted:
        print_table(["Run", "Test", "Started", "Results"], [_row(run) for run in pruned.deleted[:_SHOWN]])
        if len(pruned.deleted) > _SHOWN:
            note(f"... and {len(pruned.deleted) - _SHOWN:,} more")
    results = count(sum(run.results for run in pruned.deleted), "result")
    verb = "Would delete" if dry_run else "Deleted"
    click.echo(f"{verb} {count(len(pruned.deleted), 'run')} with {results}; {pruned.left:,} stay.{_sizes(pruned)}")
    if pruned.kept:
        uses = Counter(run.use for run in pruned.kept).most_common()
        verb = "stays" if len(pruned.kept) == 1 else "stay"
        note(f"{count(len(pruned.kept), 'old run')} {verb}: {', '.join(f'{number:,} {use}' for use, number in uses)}.")


def _sizes(pruned: Pruned) -> str:
    if pruned.bytes_after >= pruned.bytes_before:
        return f" The store has {file_size(pruned.bytes_after)}."
    return f" The store had {file_size(pruned.bytes_before)} and has {file_size(pruned.bytes_after)}."


def _row(run: OldRun) -> tuple[str, str, str, str]:
    return run.id, one_line(run.definition), to_timestamp(run.started), f"{run.results:,}"


def _as_json(pruned: Pruned) -> JsonObject:
    return {
        "deleted": [*map(_run_json, pruned.deleted)],
        "kept": [{**_run_json(run), "use": run.use} for run in pruned.kept],
        "left": pruned.left,
        "bytesBefore": pruned.bytes_before,
        "bytesAfter": pruned.bytes_after,
    }


def _run_json(run: OldRun) -> JsonObject:
    return {
        "runId": run.id,
        "org": run.org_url or None,
        "test": run.definition,
        "started": to_timestamp(run.started),
        "results": run.results,
    }
