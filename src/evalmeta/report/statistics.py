"""The numbers of a run for people and for programs: flaky cases, intervals, latencies, tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.report.averages import measures_json
from evalmeta.report.text import count, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import Run
    from evalmeta.model.statistics import Interval, RunStatistics


_MANY_ANSWERS: Final = 20
_SHOWN_CASES: Final = 20


def statistics_lines(run: Run, statistics: RunStatistics) -> Iterator[str]:
    """Yields what a summary says of a run's numbers: nothing of a small run asked once, whose agent tells no tokens.

    Latencies are shown for several iterations, or from 20 answers on.
    """
    repeated = run.options.iterations > 1
    if repeated and statistics.interval is not None:
        low, high = map(percent, statistics.interval)
        yield f"95 % confidence interval of the pass rate: {low} to {high}"
    if statistics.flaky:
        yield f"flaky: {_flaky(statistics)}"
    if statistics.latency is not None and (repeated or statistics.timed >= _MANY_ANSWERS):
        p50, _, p95, _ = statistics.latency
        yield f"latency: p50 {_milliseconds(p50)}, p95 {_milliseconds(p95)} of {count(statistics.timed, 'answer')}"
    if statistics.tokens is not None:
        told = "" if statistics.told_tokens == statistics.answers else _told(statistics)
        yield f"tokens: {_known(statistics.tokens.input)} in, {_known(statistics.tokens.output)} out{told}"


def statistics_json(run: Run, statistics: RunStatistics) -> JsonObject:
    """Gives the numbers as JSON values; null is unknown. `cases` are there for several iterations."""
    found: dict[str, JsonValue] = {
        "passRateInterval": _interval_json(statistics.interval),
        "flaky": [each.number for each in statistics.flaky],
        "latencyMilliseconds": None if statistics.latency is None else statistics.latency._asdict(),
        "tokens": {
            "input": statistics.tokens.input if statistics.tokens else None,
            "output": statistics.tokens.output if statistics.tokens else None,
            "answers": statistics.told_tokens,
        },
        "answers": statistics.answers,
    }
    if run.options.iterations > 1:
        found["cases"] = [
            {
                "testNumber": each.number,
                "passed": each.passed,
                "failed": each.failed,
                "errors": each.errors,
                "undecided": each.undecided,
                "passRate": each.pass_rate,
                "passRateInterval": _interval_json(interval),
            }
            for each, interval in zip(statistics.cases, statistics.intervals, strict=True)
        ]
    if statistics.measures:
        found["measures"] = [*measures_json(statistics.measures)]
    return found


def _flaky(statistics: RunStatistics) -> str:
    flaky = statistics.flaky
    shown = ", ".join(f"{each.number} (passed {each.passed:,} of {each.decided:,})" for each in flaky[:_SHOWN_CASES])
    left = len(flaky) - _SHOWN_CASES
    return f"{'case' if len(flaky) == 1 else 'cases'} {shown}{f' and {left:,} more' if left > 0 else ''}"


def _told(statistics: RunStatistics) -> str:
    return f", told by {statistics.told_tokens:,} of {count(statistics.answers, 'answer')}"


def _known(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _milliseconds(duration: float) -> str:
    return f"{duration:,.0f} ms" if duration >= 10 else f"{duration:.2g} ms"  # noqa: PLR2004 - two digits at least


def _interval_json(interval: Interval | None) -> JsonObject | None:
    return None if interval is None else {"low": interval.low, "high": interval.high, "confidence": 0.95}
