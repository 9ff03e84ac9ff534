"""`evalmeta test merge`: the runs of shards become one run of each test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalmeta import api
from evalmeta.cli.options import FOLDER
from evalmeta.cli.output import note, warn
from evalmeta.cli.runs.baselines import BaselineOption, baseline_option
from evalmeta.cli.runs.report_files import ReportingCommand
from evalmeta.cli.runs.reports import Output, report_options, report_outcome
from evalmeta.package.project import find_project
from evalmeta.report.text import count

if TYPE_CHECKING:
    from evalmeta.api.runs.merging import Merged


@click.command("merge", cls=ReportingCommand)
@click.argument("shards", nargs=-1, required=True, metavar="SHARD...", type=click.Path(path_type=str))
@click.option(
    "-o", "--output-store", type=FOLDER, help="Save the runs in this state folder.  [default: the project's store]"
)
@click.option("--allow-missing", is_flag=True, help="Merge what is there if shards are missing or not finished.")
@baseline_option
@report_options
def merge(
    *,
    shards: tuple[str, ...],
    output_store: Path | None,
    allow_missing: bool,
    baseline: BaselineOption | None,
    output: Output,
) -> int:
    """Merge the runs of shards into one run of each test.

    SHARD is the state folder in which `evalmeta test run --shard` ran, a project folder with
    one, its JSON report, or a folder with several of those, such as the downloaded artifacts
    of a CI matrix. Of a store, the newest suite of every shard counts. If a shard is missing or not finished, or
    if tests, options, agents or commits differ, all of that is listed and nothing is saved.
    The report and the exit code are those of one run of all cases.

    \b
    evalmeta test merge shards
    evalmeta test merge shards/1 shards/2 --baseline evalmeta-baseline.json --report junit.xml
    evalmeta test merge shards -o merged
    """
    project = find_project(Path.cwd(), or_folder=True)
    if output_store is not None:
        project = replace(project, home=output_store.absolute(), store_url="")
    comparator = baseline.open(project) if baseline else None
    merged = api.runs.merging.merge_shards(project, shards, allow_missing=allow_missing)
    for gap in merged.missing:
        warn(f"{gap}; the merged run is without it")
    if output.detail != "verdict":
        note(_what(merged))
    checking = api.runs.verification.Checking()
    outcome = api.runs.reruns.fetch_suite(merged.suite, checking, output.printer())
    return report_outcome(project, outcome, output, comparator, is_whole_call=False)


def _what(merged: Merged) -> str:
    what = count(len(merged.suite.runs), "run")
    if merged.is_new:
        return f"Merged {count(merged.shards, 'run')} of shards into {what}."
    return f"These {count(merged.shards, 'run')} of shards were merged before, into {what}; nothing was saved."
