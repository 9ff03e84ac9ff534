"""`evalmeta test archive`: write runs into Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import api
from evalmeta.cli.completions import complete_runs
from evalmeta.cli.output import json_option, note, print_json
from evalmeta.package.project import find_project
from evalmeta.report.text import count, file_size

if TYPE_CHECKING:
    from evalmeta.api.runs.archives import Archived
    from evalmeta.model.json_value import JsonObject


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="RUN... FOLDER", shell_complete=complete_runs)
@click.option("--delete", is_flag=True, help="Then delete the runs here, unless something needs them.")
@json_option
def archive(names: tuple[str, ...], *, delete: bool, as_json: bool) -> None:
    """Write finished runs into Parquet files that can be read back.

    RUN is a run's id, latest:TEST or previous:TEST, or latest or previous for all runs of a
    command. FOLDER is a folder or an address such as s3://bucket/folder; it gets
    results.parquet and manifest.json, which are read back and checked. The same command can be
    repeated: an archive that was not completed is written again, and another one is never replaced.

    For s3, set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, or AWS_ENDPOINT_URL
    for another server. Requires the extra "archive".

    \b
    evalmeta test archive latest archives/2026-11-25
    evalmeta test archive 4KB000000000001GAA s3://evaluations/orders --delete
    evalmeta test results archives/2026-11-25
    """
    *runs, place = names
    if not runs:
        raise click.UsageError("Give at least one run and then the folder: evalmeta test archive latest FOLDER")
    for run_id in runs:
        api.runs.reruns.check_run_id(run_id)
    done = api.runs.archives.archive_runs(find_project(Path.cwd()), runs, place, delete=delete)
    if as_json:
        print_json(_as_json(done))
        return
    verb = "Archived" if done.is_new else "Already archived:"
    contents = f"{count(len(done.runs), 'run')} with {count(done.results, 'result')}"
    click.echo(f"{verb} {contents} into {done.folder} ({file_size(done.bytes)})")
    if delete:
        click.echo(f"Deleted {count(len(done.deleted), 'run')} here.")
    for run in done.kept:
        note(f"{run.id} stays here: it is {run.use}.")


def _as_json(done: Archived) -> JsonObject:
    return {
        "folder": done.folder,
        "runs": [run.id for run in done.runs],
        "results": done.results,
        "bytes": done.bytes,
        "new": done.is_new,
        "deleted": [run.id for run in done.deleted],
        "kept": [{"runId": run.id, "use": run.use} for run in done.kept],
    }
