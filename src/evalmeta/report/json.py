"""Runs as JSON: the results objects of the Connect API, with unescaped texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from evalmeta.protocol.connect import write_run
from evalmeta.protocol.json_fields import object_at
from evalmeta.report.averages import averages_json
from evalmeta.report.summary import statistics_json
from evalmeta.report.text import escape_unsafe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.json_value import JsonObject
    from evalmeta.report.report import Report


def render(reports: Sequence[Report]) -> str:
    r"""Return one run as an object, and any other number of runs as a list.

    Texts are complete; characters that could act on a terminal are written as escapes such as `\u009b`.
    """
    runs = [run_json(report) for report in reports]
    document = runs[0] if len(runs) == 1 else runs
    return escape_unsafe(orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())


def run_json(report: Report) -> JsonObject:
    """Return a run's results object, with its `averages` and `statistics` under `evalmeta` where they are known."""
    run = write_run(report.run, escape=False)
    own = dict(object_at(run, "evalmeta"))
    if report.summary.averages:
        own["averages"] = [*averages_json(report.summary.averages)]
    if report.statistics is not None:
        own["statistics"] = statistics_json(report.run, report.statistics)
    return {**run, "evalmeta": own}
