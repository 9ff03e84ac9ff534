"""What pages show of a run beyond its kept tally, computed once from all its results."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypedDict, cast

from evalmeta import limits
from evalmeta.api.runs.comparisons import find_run
from evalmeta.engine.comparison import ComparedTest
from evalmeta.engine.gate import compare
from evalmeta.engine.statistics import statistics_of
from evalmeta.errors import StoreError
from evalmeta.model.comparison import Standing
from evalmeta.model.expectations import expectation_kind
from evalmeta.model.spending import cost_lines
from evalmeta.model.statistics import CaseCounts, RunStatistics
from evalmeta.model.tally import detail
from evalmeta.protocol.json_fields import integer
from evalmeta.report.report import Report
from evalmeta.report.results import check_lines
from evalmeta.report.summary import pass_chances, reasons_text
from evalmeta.store.kept_numbers import find_digest, keep_digest
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import CaseResult
    from evalmeta.store.run_lists import ListedRun
    from evalmeta.viewer.pages import Source

_MAX_FLAKY: Final = 20


class ExpectationCounts(TypedDict):
    """The results of one name: how many have which verdict."""

    name: str
    label: str
    verdicts: dict[str, int]


class Digest(TypedDict):
    """The numbers of a run; its counts, its coverage and its verdict are those of its kept tally, in `ListedRun`.

    The bounds of the 95 % interval of the pass rate are shares, 0 to 1, latencies are milliseconds. `counts` is empty
    for runs of many cases. `checks` is what a check of another org's verdicts found.
    """

    outcome: str
    took: float
    interval: tuple[float, float] | None
    p50: float | None
    p95: float | None
    input: int | None
    output: int | None
    told_tokens: int
    answers: int
    costs: list[str]
    chances: str
    flaky: list[int]
    expectations: list[ExpectationCounts]
    reasons: list[tuple[str, str]]
    checks: list[str]
    counts: list[tuple[int, str, int, int, int, int, bool]]


def digest_of(source: Source, listed: ListedRun, *, max_cases: int | None = None) -> Digest | None:
    """Return the numbers of a run.

    They are computed from all its results and then kept. None if that would take too long: the run is not over, or is
    not known yet and has more than `max_cases` results.
    """
    stamp = _stamp(listed)
    if kept := find_digest(source.database, listed.id, stamp, org_url=listed.org_url):
        return cast("Digest", kept)
    if listed.done > (limits.MAX_LIVE_CASES if not listed.status.is_over else max_cases or listed.done):
        return None
    digest = _digest(source, listed)
    if listed.status.is_over:
        # Another program may be writing; the numbers are then computed again for the next page.
        with suppress(StoreError):
            keep_digest(source.database, listed.id, stamp, cast("JsonObject", digest), org_url=listed.org_url)
    return digest


def changes_between(source: Source, before: ListedRun, after: ListedRun) -> tuple[int, int]:
    """Return how many cases are suspect and how many broke between two runs that are over; zeros if it is not known.

    Comparing takes long, so that the numbers are kept.
    """
    pair, stamp = f"{before.id} {after.id}", f"{_stamp(before)} {_stamp(after)}"
    kept = find_digest(source.database, pair, stamp, org_url=after.org_url)
    if kept is None:
        first, last = (digest_of(source, run, max_cases=limits.MAX_LIVE_CASES) for run in (before, after))
        if first is None or last is None:
            return 0, 0
        earlier, later = (tuple(CaseCounts(*case) for case in digest["counts"]) for digest in (first, last))
        comparison = compare(ComparedTest("", ("", ""), earlier, later))
        kept = {standing.value: len(comparison.of(standing)) for standing in (Standing.SUSPECT, Standing.BROKEN)}
        with suppress(StoreError):
            keep_digest(source.database, pair, stamp, kept, org_url=after.org_url)
    return integer(kept, Standing.SUSPECT.value, 0), integer(kept, Standing.BROKEN.value, 0)


def _stamp(listed: ListedRun) -> str:
    return f"{__version__} {listed.status} {listed.verdict} {listed.ended} {listed.done}"


def _digest(source: Source, listed: ListedRun) -> Digest:
    run = find_run(source.project, listed.id, org_url=listed.org_url)
    if listed.done <= limits.MAX_LIVE_CASES:
        # Results in memory are decoded once.
        run = replace(run, cases=tuple(run.cases))
    verdicts: dict[str, Counter[str]] = {}
    tally = detail(_counted(run.cases, verdicts), run.options)
    statistics, report = statistics_of(tally), Report(run, tally.summary(), counted=tally)
    latency, tokens = statistics.latency, statistics.tokens
    return Digest(
        outcome=report.outcome(),
        took=report.duration,
        interval=(statistics.interval.low, statistics.interval.high) if statistics.interval else None,
        p50=latency.p50 if latency else None,
        p95=latency.p95 if latency else None,
        input=tokens.input if tokens else None,
        output=tokens.output if tokens else None,
        told_tokens=statistics.told_tokens,
        answers=statistics.answers,
        costs=[*cost_lines(statistics.spent)],
        chances=pass_chances(statistics),
        flaky=[counts.number for counts in statistics.flaky[:_MAX_FLAKY]],
        expectations=_expectations(verdicts),
        checks=[*check_lines(run, report.tally.differences)] if listed.org_url else [],
        reasons=[(name, reasons_text(reasons)) for name, reasons in report.undecided_reasons.items()],
        counts=_counts(statistics),
    )


def _counts(statistics: RunStatistics) -> list[tuple[int, str, int, int, int, int, bool]]:
    if len(statistics.cases) > limits.MAX_COMPARED_CASES:
        return []
    return [
        (case.number, case.utterance[:200], case.passed, case.failed, case.errors, case.undecided, case.is_averaged)
        for case in statistics.cases
    ]


def _counted(cases: Iterable[CaseResult], verdicts: dict[str, Counter[str]]) -> Iterator[CaseResult]:
    """Yield case results, and count the verdicts of each name."""
    for case in cases:
        for result in case.results:
            if not result.is_measured:
                verdicts.setdefault(result.name, Counter())[str(result.verdict)] += 1
        yield case


def _expectations(verdicts: dict[str, Counter[str]]) -> list[ExpectationCounts]:
    labels = {name: kind.label for name in verdicts if (kind := expectation_kind(name))}
    return [
        ExpectationCounts(name=name, label=labels.get(name, name), verdicts=dict(counts))
        for name, counts in verdicts.items()
    ]
