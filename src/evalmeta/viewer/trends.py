"""The page of trends: pass rate, latency and tokens of a test over time, with its deployments."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta import limits
from evalmeta.protocol.metadata_api import DeployResult
from evalmeta.protocol.soap import read_results
from evalmeta.report.html import duration_text, time_text
from evalmeta.report.report import STATE_WORDS
from evalmeta.report.text import one_line, percent
from evalmeta.store.jobs import Jobs
from evalmeta.store.run_lists import ListedRun, distinct_values, recent_runs
from evalmeta.viewer.digests import digest_of
from evalmeta.viewer.pages import Page, Query, Source, text_of
from evalmeta.viewer.runs import RESULT, RUN, STARTED
from evalmeta.viewer.tables import Column, Table, layout_of, sorted_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


# The most lines across a chart, and the steps between them as shares of a power of ten.
_SCALE_LINES: Final = 4
_COMMIT_CHARS: Final = 7
# The name of a commit or branch in a chart: its characters, and the percent of the width that it needs. At the right
# end, it stands on the left of its line.
_NOTE_CHARS: Final = 12
_NOTE_WIDTH: Final = 10
_SCALE_STEPS: Final = (1, 2, 2.5, 5, 10)
_TIME_LINES: Final = 6
_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE
_DAY: Final = 24 * _HOUR
_TIME_STEPS: Final = (
    *(1, 2, 5, 10, 15, 30, _MINUTE, 2 * _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE),
    *(_HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR, _DAY, 2 * _DAY, 4 * _DAY, 7 * _DAY, 14 * _DAY, 30 * _DAY),
    *(61 * _DAY, 91 * _DAY, 182 * _DAY, 365 * _DAY),
)


class Point(NamedTuple):
    """A run in a trend; None for what is unknown. Latencies are in milliseconds."""

    run: ListedRun
    rate: float | None
    p50: float | None
    p95: float | None
    tokens: int | None


class Series(NamedTuple):
    """Values of runs: a line of a chart, and a column of the table."""

    title: str
    value: Callable[[Point], float | None]


class Measure(NamedTuple):
    """What a chart shows: its series, how a value is written, and the value at the top; 0 for that of the data."""

    title: str
    series: Sequence[Series]
    text: Callable[[float], str]
    top: float = 0


def _column(measure: Measure, series: Series) -> Column[Point]:
    def text(point: Point) -> str:
        value = series.value(point)
        return "" if value is None else measure.text(value)

    return Column(series.title, "text", text, "number", rank=series.value)


MEASURES: Final = (
    Measure("Pass rate", (Series("Pass rate", lambda point: point.rate),), percent, top=1),
    Measure("Latency", (Series("p50", lambda point: point.p50), Series("p95", lambda point: point.p95)), duration_text),
    Measure("Tokens per run", (Series("Tokens", lambda point: point.tokens),), "{:,.0f}".format),
)


COLUMNS: Final[tuple[Column[Point], ...]] = (
    *(column.of(lambda point: point.run) for column in (RESULT, RUN, STARTED)),
    *(_column(measure, series) for measure in MEASURES for series in measure.series),
    Column(
        "Commit",
        "commit",
        lambda point: point.run.options.origin,
        plain=lambda point: point.run.options.origin.revision,
    ),
)


class Place(NamedTuple):
    """A place in a chart, in percent of its width and height from the left and the top, and a text about it."""

    x: float
    y: float
    text: str
    run: ListedRun | None = None


class Note(NamedTuple):
    """A commit or branch in a chart, at its first run: its place, and a name, empty if there is no room for it."""

    place: Place
    name: str
    is_left: bool


class Chart(NamedTuple):
    """A chart: its lines by name, what it shows in words, the labels of both axes, deployments, and commits."""

    title: str
    lines: Sequence[tuple[str, Sequence[Place]]]
    summary: str
    scale: Sequence[Place]
    times: Sequence[Place]
    deploys: Sequence[Place]
    notes: Sequence[Note]


def trends_page(source: Source, query: Query) -> Page:
    """Return the trends of a test; of the first one without a choice."""
    tests = distinct_values(source.database, "definition", user=source.user)
    test = text_of(query, "test") or next(iter(tests), "")
    recent = recent_runs(source.database, of_each=limits.VIEW_TREND_RUNS, test=test, user=source.user, confirming=False)
    runs = [run for run in recent.get(test, []) if run.status.is_over and not run.options.is_partial]
    points = [_point(source, run) for run in runs]
    deploys = _deploys(source, test, since=runs[0].started) if runs else []
    layout = layout_of(query, "trends", {"test": test}, COLUMNS)
    values = {
        "tests": tests,
        "test": test,
        "runs": Table(COLUMNS, sorted_rows(points[::-1], COLUMNS, layout), layout=layout),
        "charts": [chart for measure in MEASURES if (chart := chart_of(measure, points, deploys))],
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


def chart_of(measure: Measure, points: Sequence[Point], deploys: Sequence[float]) -> Chart | None:
    """Return a chart; None if it would not have a line."""
    values = [value for series in measure.series for _, value in _known(series, points)]
    if len(points) < 2 or not values:  # noqa: PLR2004 - a line has two points
        return None
    most = measure.top or max(values) or 1
    step = _scale_step(most / _SCALE_LINES)
    first = points[0].run.started
    frame = _Frame(first, max(points[-1].run.started, *deploys, first + 1), top=step * math.ceil(most / step))
    lowest, highest = measure.text(min(values)), measure.text(max(values))
    return Chart(
        measure.title,
        lines=[(series.title, _line(measure, series, points, frame)) for series in measure.series],
        summary=f"{measure.title} of {len(points)} runs, {lowest} to {highest}; the table below has all values",
        scale=[frame.place(first, step * at, measure.text(step * at)) for at in range(round(frame.top / step) + 1)],
        times=[frame.place(moment, 0, text) for moment, text in _times(frame.first, frame.last)],
        deploys=[frame.place(deploy, 0, f"deployed {time_text(deploy)}") for deploy in deploys],
        notes=[*_notes([point.run for point in points], frame)],
    )


def _notes(runs: Sequence[ListedRun], frame: _Frame) -> Iterator[Note]:
    """Yield a note for each run of another commit or branch than the run before."""
    last_named = -math.inf
    for before, run in pairwise([None, *runs]):
        origin = run.options.origin if run else None
        if run is None or origin is None or not (origin.revision or run.branch):
            continue
        is_new_branch = bool(run.branch) and (before is None or before.branch != run.branch)
        if not is_new_branch and before and before.options.origin.revision == origin.revision:
            continue
        commit = origin.revision[:_COMMIT_CHARS]
        subject = f' "{one_line(origin.subject)}"' if origin.subject else ""
        parts = [f"commit {commit}{subject}" if commit else "", f"branch {one_line(run.branch)}" if run.branch else ""]
        place = frame.place(run.started, 0, f"{', '.join(filter(None, parts))}: run {run.id}", run)
        name = one_line(run.branch, chars=_NOTE_CHARS) if is_new_branch else commit
        is_left = place.x > 100 - _NOTE_WIDTH
        has_room = place.x - last_named >= (2 if is_left else 1) * _NOTE_WIDTH
        last_named = place.x if has_room else last_named
        yield Note(place, name if has_room else "", is_left)


class _Frame(NamedTuple):
    """The span of time across a chart, and the value at its top."""

    first: float
    last: float
    top: float

    def place(self, moment: float, value: float, text: str, run: ListedRun | None = None) -> Place:
        """Return the place of a value at a time."""
        x, y = (moment - self.first) / (self.last - self.first), 1 - value / self.top
        return Place(round(100 * x, 2), round(100 * y, 2), text, run)


def _line(measure: Measure, series: Series, points: Sequence[Point], frame: _Frame) -> list[Place]:
    """Return the runs whose value is known."""
    name = f"{series.title} " if len(measure.series) > 1 else ""
    places = []
    for run, value in _known(series, points):
        words = f", {STATE_WORDS[run.verdict]}" if run.verdict else ""
        text = f"{name}{measure.text(value)}: run {run.id}{words}, {time_text(run.started)}"
        places.append(frame.place(run.started, value, text, run))
    return places


def _known(series: Series, points: Sequence[Point]) -> Iterator[tuple[ListedRun, float]]:
    for point in points:
        value = series.value(point)
        if value is not None and math.isfinite(value):
            yield point.run, value


def _scale_step(least: float) -> float:
    """Return the smallest round number that is not less."""
    power = 10 ** math.floor(math.log10(least))
    return float(next(power * factor for factor in _SCALE_STEPS if power * factor >= least * (1 - 1e-9)))


def _times(first: float, last: float) -> Iterator[tuple[float, str]]:
    """Yield round moments in a span of time, and each as text."""
    step = next((step for step in _TIME_STEPS if (last - first) / step <= _TIME_LINES), _TIME_STEPS[-1])
    form = "%H:%M:%S" if step < _MINUTE else "%m-%d %H:%M" if step < _DAY else "%Y-%m-%d"
    for moment in range(step * math.ceil(first / step), math.floor(last) + 1, step):
        yield moment, datetime.fromtimestamp(moment, UTC).strftime(form)
