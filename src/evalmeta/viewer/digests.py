"""What pages show of a run beyond its kept tally, computed once from all its results."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypedDict, cast

from evalmeta import limits
from evalmeta.api.runs.compared_states import states_by_number
from evalmeta.api.runs.comparisons import find_run, known_test
from evalmeta.engine.comparison import ComparedTest
from evalmeta.engine.gate import compare
from evalmeta.engine.statistics import percentiles, statistics_of, wilson
from evalmeta.errors import StoreError
from evalmeta.model.comparison import Standing
from evalmeta.model.evaluation import all_tags
from evalmeta.model.expectations import expectation_kind
from evalmeta.model.spending import cost_lines
from evalmeta.model.tally import DetailedTally, detail
from evalmeta.protocol.json_fields import integer
from evalmeta.report.report import Report
from evalmeta.report.results import check_lines
from evalmeta.report.summary import pass_chances, reasons_text
from evalmeta.store.kept_numbers import find_digest, keep_digest
from evalmeta.store.run_lists import RunFilter, list_runs
from evalmeta.store.stored_cases import count_answers
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.comparison import Comparison, KnownTest
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import CaseResult, Run, Summary
    from evalmeta.model.statistics import CaseCounts, Interval
    from evalmeta.store.run_lists import ListedRun
    from evalmeta.viewer.pages import Source

_MAX_FLAKY: Final = 20
_SUSPECT: Final = (Standing.SUSPECT, Standing.FLAKY_NOW, Standing.BACK)
_MAX_TAGS: Final = 200


class ExpectationCounts(TypedDict):
    """The results of one name: how many have which verdict."""

    name: str
    label: str
    verdicts: dict[str, int]


class Digest(TypedDict):
    """The numbers of a run; its counts, its coverage and its verdict are those of its kept tally, in `ListedRun`.

    The bounds of the 95 % interval of the pass rate are shares, 0 to 1, latencies are milliseconds. `checks` is what
    a check of another org's verdicts found. `tags` are those that most cases have; digests from before tags were kept
    have none.
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
    tags: list[str]


def digest_of(source: Source, listed: ListedRun, *, max_cases: int | None = None) -> Digest | None:
    """Return the numbers of a run.

    They are computed from all its results and then kept. None if that would take too long: the run is not over, or is
    not known yet and has more than `max_cases` results.
    """
    stamp = stamp_of(listed)
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


def changes_between(source: Source, pairs: Sequence[tuple[ListedRun, ListedRun]]) -> list[tuple[int, int] | None]:
    """Return for each pair of runs that are over how many cases are suspect, and how many broke; None for large ones.

    The answers to suspect cases that were asked again count, too. The numbers are kept, because comparing takes long.
    """
    changes, new = list[tuple[int, int] | None](), dict[tuple[str, str, str], dict[str, int]]()
    for before, after in pairs:
        worse = _worse_cases(source, (before, after), new)
        if worse and worse[0]:
            wanted = RunFilter(test=after.definition, confirms=after.id, since=after.started)
            if again := [run for run in list_runs(source.database, wanted) if run.status.is_over]:
                worse = _worse_cases(source, (before, after, *again), new)
        changes.append(worse)
    # Each transaction waits for the disk.
    with suppress(StoreError), source.database.transaction():
        for (name, stamp, org_url), counts in new.items():
            keep_digest(source.database, name, stamp, {**counts}, org_url=org_url)
    return changes


def _worse_cases(
    source: Source, runs: Sequence[ListedRun], new: dict[tuple[str, str, str], dict[str, int]]
) -> tuple[int, int] | None:
    """Return the numbers of suspect and broken cases, and add them to `new` if they were not kept."""
    name, stamp, org_url = " ".join(run.id for run in runs), " ".join(map(stamp_of, runs)), runs[1].org_url
    kept = find_digest(source.database, name, stamp, org_url=org_url)
    if kept is None:
        comparison = _compared(source, *runs)
        if comparison is None:
            return None
        suspect = sum(len(comparison.of(standing)) for standing in _SUSPECT)
        kept = new[name, stamp, org_url] = {"suspect": suspect, "broken": len(comparison.of(Standing.BROKEN))}
    return integer(kept, "suspect", 0), integer(kept, "broken", 0)


def _compared(source: Source, before: ListedRun, after: ListedRun, *again: ListedRun) -> Comparison | None:
    """Return the comparison of two runs; None if that would take too long."""
    most = max(before.done, after.done)
    states = states_by_number(source.database, [before], [after]) if most <= limits.MAX_VIEW_COMPARED else None
    if states is None and most <= limits.MAX_LIVE_CASES:
        states = _known(source, before), _known(source, after)
    if states is None:
        return None
    answers: dict[int, CaseCounts] = {}
    for case in (case for run in again for case in _known(source, run).cases):
        answers[case.number] = case + answers[case.number] if case.number in answers else case
    return compare(ComparedTest("", ("", ""), states[0].cases, states[1].cases, again=answers))


def _known(source: Source, run: ListedRun) -> KnownTest:
    return known_test(find_run(source.project, run.id, org_url=run.org_url))


def stamp_of(listed: ListedRun) -> str:
    """Return a text that changes when a run gets other results."""
    return f"{__version__} {listed.status} {listed.verdict} {listed.ended} {listed.done}"


def _digest(source: Source, listed: ListedRun) -> Digest:
    run = find_run(source.project, listed.id, org_url=listed.org_url)
    if listed.status.is_over and not listed.org_url and listed.is_plain:
        return _plain_digest(source, run, listed.summary)
    if listed.done <= limits.MAX_LIVE_CASES:
        # Results in memory are decoded once.
        run = replace(run, cases=tuple(run.cases))
    verdicts = defaultdict[str, Counter[str]](Counter)
    tags: Counter[str] = Counter()
    tally = detail(_counted(run.cases, verdicts, tags), run.options)
    statistics, report = statistics_of(tally), Report(run, tally.summary(), counted=tally)
    return _digest_of(
        report,
        verdicts,
        tags,
        interval=statistics.interval,
        chances=pass_chances(statistics),
        flaky=[counts.number for counts in statistics.flaky[:_MAX_FLAKY]],
        checks=[*check_lines(run, report.tally.differences)] if listed.org_url else [],
    )


def _plain_digest(source: Source, run: Run, summary: Summary) -> Digest:
    """Return the numbers of a run whose counts were kept: each case has one answer, whose verdict counts."""
    tally = DetailedTally(run.options)
    verdicts, tags = count_answers(source.database, run.id, tally)
    passed = summary.passed + summary.partly_judged
    decided = passed + summary.failed
    report = Report(run, summary, counted=tally)
    return _digest_of(report, verdicts, tags, interval=wilson(passed, decided) if decided else None)


def _digest_of(
    report: Report,
    verdicts: Mapping[str, Counter[str]],
    tags: Counter[str],
    *,
    interval: Interval | None,
    chances: str = "",
    flaky: Sequence[int] = (),
    checks: Sequence[str] = (),
) -> Digest:
    tally = report.tally
    latency, tokens = percentiles(tally.latencies), tally.tokens
    return Digest(
        outcome=report.outcome(),
        took=report.duration,
        interval=(interval.low, interval.high) if interval else None,
        p50=latency.p50 if latency else None,
        p95=latency.p95 if latency else None,
        input=tokens.input if tokens else None,
        output=tokens.output if tokens else None,
        told_tokens=tally.told_tokens,
        answers=tally.answers,
        costs=[*cost_lines(tally.spent)],
        chances=chances,
        flaky=[*flaky],
        expectations=_expectations(verdicts),
        checks=[*checks],
        tags=sorted(tag for tag, _ in tags.most_common(_MAX_TAGS)),
        reasons=[(name, reasons_text(reasons)) for name, reasons in report.undecided_reasons.items()],
    )


def _counted(
    cases: Iterable[CaseResult], verdicts: defaultdict[str, Counter[str]], tags: Counter[str]
) -> Iterator[CaseResult]:
    """Yield case results, and count the verdicts of each name, and the tags."""
    for case in cases:
        tags.update(all_tags(case.tags, case.metadata))
        for result in case.results:
            if not result.is_measured:
                verdicts[result.name][str(result.verdict)] += 1
        yield case


def _expectations(verdicts: Mapping[str, Counter[str]]) -> list[ExpectationCounts]:
    labels = {name: kind.label for name in verdicts if (kind := expectation_kind(name))}
    return [
        ExpectationCounts(name=name, label=labels.get(name, name), verdicts=dict(counts))
        for name, counts in verdicts.items()
    ]
