"""`evalmeta test history`: list past runs with their pass rates."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from evalmeta import api
from evalmeta.cli.output import json_option, print_json, print_table
from evalmeta.package.project import find_project
from evalmeta.protocol.json_fields import to_timestamp
from evalmeta.report.text import one_line, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.store.history import PastRun


_RUNS: Final = 20
_HEADERS: Final = (
    *("Run", "Test", "Started (UTC)", "Status", "Kind", "Org"),
    *("Passed", "Failed", "Errors", "Undecided", "Pass rate", "Trend"),
)


@click.command()
@click.option("-n", "--api-name", "name", help="List only runs of this test.")
@click.option("--limit", type=click.IntRange(1), default=_RUNS, show_default=True, help="Number of runs to list.")
@json_option
def history(*, name: str | None, limit: int, as_json: bool) -> None:
    """List past runs, here and in other orgs, the latest last.

    The trend is the change of the pass rate, in percentage points, since the previous run
    of the same test. Runs that did not complete, runs of some of the cases ("part") and
    runs that scored earlier answers again ("rescored") have no trend.
    """
    runs = api.runs.history(find_project(Path.cwd()), definition=name, limit=limit)
    if as_json:
        print_json([_run_json(each) for each in runs])
        return
    if not runs:
        click.echo(f"There are no runs of {name} here." if name else "There are no runs here.")
    print_table(_HEADERS, _rows(runs))


def _rows(runs: Sequence[PastRun]) -> list[list[str]]:

    rows, rates = [], dict[str, float]()
    for each in runs:
        counts = [f"{number:,}" for number in (each.passed, each.failed, each.errors, each.undecided)]
        rate = each.pass_rate
        trend = _trend(rates.get(each.definition.casefold()), rate) if each.is_whole else ""
        place = [
            one_line(each.id),
            one_line(each.definition),
            _time(each.started),
            each.status.value,
            _kind(each),
            one_line(each.org_name),
        ]
        rows.append([*place, *counts, "" if rate is None else percent(rate), trend])
        if rate is not None and each.is_whole:
            rates[each.definition.casefold()] = rate
    return rows


def _kind(run: PastRun) -> str:
    words = {"part": run.is_partial, "rescored": run.answers_of is not None}
    return ", ".join(word for word, fits in words.items() if fits)


def _trend(before: float | None, rate: float | None) -> str:
    if before is None or rate is None:
        return ""
    points = round((rate - before) * 100, 1)
    return f"{'up' if points > 0 else 'down'} {abs(points):g}" if points else "same"


def _time(moment: float) -> str:

    return to_timestamp(moment)[:19].replace("T", " ")


def _run_json(run: PastRun) -> JsonObject:

    return {
        "runId": run.id,
        "definition": run.definition,
        "orgUrl": run.org_url or None,
        "orgName": run.org_name or None,
        "status": run.status.value,
        "startTime": to_timestamp(run.started),
        "endTime": None if run.ended is None else to_timestamp(run.ended),
        "total": run.total,
        "passed": run.passed,
        "failed": run.failed,
        "errors": run.errors,
        "undecided": run.undecided,
        "passRate": run.pass_rate,
        "partial": run.is_partial,
        "answersOf": run.answers_of,
    }
