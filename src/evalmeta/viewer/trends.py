"""The page of trends: pass rate, latency and tokens of a test over time, with its deployments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from evalmeta import limits
from evalmeta.protocol.metadata_api import DeployResult
from evalmeta.protocol.soap import read_results
from evalmeta.store.jobs import Jobs
from evalmeta.store.run_lists import distinct_values, recent_runs
from evalmeta.viewer.digests import digest_of
from evalmeta.viewer.pages import Page, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.store.run_lists import ListedRun
    from evalmeta.viewer.pages import Query, Source

_WIDTH: Final = 1_000
_HEIGHT: Final = 160


class Point(NamedTuple):
    """A run in a trend; None for what is unknown. Latencies are in milliseconds."""

    run: ListedRun
    rate: float | None
    p50: float | None
    p95: float | None
    tokens: int | None


class Chart(NamedTuple):
    """A chart: its lines as points of an SVG polyline, the places of deployments, and the same as JSON.

    Attributes:
        lines: a name, and the points of the line.
        most: the value at the top.
        deploys: the horizontal places of deployments, 0 to 1,000.
        data: the values, for the script that draws the chart with a cursor.
    """

    title: str
    unit: str
    lines: Sequence[tuple[str, str]]
    most: float
    deploys: Sequence[float]
    data: str


def trends_page(source: Source, query: Query) -> Page:
    """Return the trends of a test; of the first one without a choice."""
    tests = distinct_values(source.database, "definition", user=source.user)
    test = text_of(query, "test") or next(iter(tests), "")
    found = recent_runs(source.database, of_each=limits.VIEW_TREND_RUNS, test=test, user=source.user)
    runs = [run for run in found.get(test, []) if run.status.is_over and not run.options.is_partial]
    points = [_point(source, run) for run in runs]
    deploys = _deploys(source, test, since=runs[0].started) if runs else []
    charts = [
        _chart("Pass rate", "%", points, deploys, {"pass rate": [_percent(point.rate) for point in points]}, most=100),
        _chart(
            "Latency",
            "ms",
            points,
            deploys,
            {"p50": [point.p50 for point in points], "p95": [point.p95 for point in points]},
        ),
        _chart("Tokens per run", "", points, deploys, {"tokens": [point.tokens for point in points]}),
    ]
    values = {
        "tests": tests,
        "test": test,
        "points": points,
        "charts": [chart for chart in charts if chart],
        "deploys": deploys,
    }
    command = f"evalmeta test history {test}" if test else "evalmeta test history"
    return Page("trends.html.j2", f"Trend of {test}" if test else "Trends", values, command=command)


def _point(source: Source, run: ListedRun) -> Point:
    digest = digest_of(source, run, max_cases=limits.MAX_LIVE_CASES)
    if digest is None:
        return Point(run, run.summary.pass_rate, None, None, None)
    known = [number for number in (digest["input"], digest["output"]) if number is not None]
    return Point(run, run.summary.pass_rate, digest["p50"], digest["p95"], sum(known) if known else None)


def _deploys(source: Source, test: str, *, since: float) -> list[float]:
    """Return the times of deployments that changed a test."""
    jobs = Jobs(source.database)
    done = jobs.applied(since=since, limit=limits.VIEW_TREND_RUNS)
    return [job.ended for job in done if job.ended and _has_changed(test, jobs.reply(job.id) or b"")]


def _has_changed(test: str, reply: bytes) -> bool:
    """Return whether a deployment, by its reply, created or changed a test."""
    if f"<fullName>{test}</fullName>".encode() not in reply:
        return False
    [result] = read_results(DeployResult, reply)
    return any(success.full_name == test and success.changed for success in result.details.component_successes)


def _percent(rate: float | None) -> float | None:
    return None if rate is None else 100 * rate


def _chart(
    title: str,
    unit: str,
    points: Sequence[Point],
    deploys: Sequence[float],
    series: Mapping[str, Sequence[float | None]],
    most: float = 0,
) -> Chart | None:
    values = [value for line in series.values() for value in line if value is not None]
    if len(points) < 2 or not values:  # noqa: PLR2004 - a line has two points
        return None
    most = most or max(values) * 1.1 or 1
    first, last = points[0].run.started, max(points[-1].run.started, *deploys, points[0].run.started + 1)

    def across(moment: float) -> float:
        return round(_WIDTH * (moment - first) / (last - first), 1)

    places = [across(point.run.started) for point in points]
    lines = [
        (
            name,
            " ".join(
                f"{place},{round(_HEIGHT - _HEIGHT * value / most, 1)}"
                for place, value in zip(places, line, strict=True)
                if value is not None
            ),
        )
        for name, line in series.items()
    ]
    data = {
        "times": [point.run.started for point in points],
        "runs": [point.run.id for point in points],
        "series": series,
        "deploys": list(deploys),
        "most": most,
        "unit": unit,
    }
    return Chart(title, unit, lines, most, [across(deploy) for deploy in deploys], orjson.dumps(data).decode())
