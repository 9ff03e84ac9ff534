"""The input of every report: a run and its summary, and the facts that all formats share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.aggregation import coverage_of, verdict_in
from evalmeta.model.run import DEFAULT_MIN_DECIDED, RunStatus, Verdict
from evalmeta.model.tally import DETAILS, detail
from evalmeta.model.tally import has_passed as run_has_passed
from evalmeta.report.results import missed_text
from evalmeta.report.text import count, one_line, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.model.comparison import Comparison
    from evalmeta.model.evaluation import Quarantine
    from evalmeta.model.run import CaseResult, Run, Summary
    from evalmeta.model.statistics import RunStatistics
    from evalmeta.model.tally import DetailedTally


VERDICT_WORDS: Final = {
    Verdict.PASS: "ok",
    Verdict.FAILURE: "FAILED",
    Verdict.ERROR: "ERROR",
    Verdict.UNDECIDED: "undecided",
}
PARTLY: Final = "PARTLY"
"""The state of partly judged cases, which the verdicts of cases do not have."""
STATE_WORDS: Final[dict[str, str]] = {
    **{str(verdict): word for verdict, word in VERDICT_WORDS.items()},
    PARTLY: "partly",
}
_SHOWN_AVERAGES: Final = 3
_SHOWN_REASONS: Final = 2
_NO_REASON: Final = "no rater could judge it"


@dataclass(frozen=True)
class BaselineVerdict:
    """What the comparison with a baseline decides about a run.

    Attributes:
        comparison: the cases of the run against those of the baseline.
        passed: whether the run passes, whatever its pass rate is.
        text: why, on one line.
    """

    comparison: Comparison
    passed: bool
    text: str

    @cached_property
    def known(self) -> frozenset[int]:
        """Return the numbers of the cases that failed in the baseline and do not pass less often now."""
        # The number of a removed case may be that of another case now.
        cases = [case for case in self.comparison.cases if case.after]
        return frozenset(case.number for case in cases if case.before and case.before.failed and case.change != "worse")

    def forgives(self, number: int) -> bool:
        """Return whether the failure of a case does not count."""
        return self.passed or number in self.known


@dataclass(frozen=True)
class Report:
    """One run to be reported.

    Attributes:
        run: the run with its cases, which may be read from a database each time they are iterated over.
        summary: the counts over these cases.
        file: the path of the definition's file, if it is known here.
        lines: the line of each case in its file, by case number; may be empty.
        files: the paths of other files with some of the cases, by case number.
        statistics: the numbers over these cases, where they were collected.
        baseline: what decides instead of the pass rate; None if the run is judged on its own.
        counted: the tally of these cases, where they were counted already.
    """

    run: Run
    summary: Summary
    file: str | None = None
    lines: Mapping[int, int] = field(default_factory=dict[int, int])
    files: Mapping[int, str] = field(default_factory=dict[int, str])
    statistics: RunStatistics | None = None
    baseline: BaselineVerdict | None = None
    counted: DetailedTally | None = None

    @cached_property
    def tally(self) -> DetailedTally:
        """Return the tally of the run's case results, which formats need before they write the first case."""
        return self.counted or detail(self.run.cases, self.run.options)

    @cached_property
    def times(self) -> CaseTimes:
        """Return how often each case has a result, failed and ended in an error."""
        times = CaseTimes(Counter(), Counter(), Counter())
        for case in self.tally.cases():
            times.results[case.number] = case.decided + case.errors + case.undecided + case.quarantined
            if case.failed:
                times.failed[case.number] = case.failed
            if case.errors:
                times.broken[case.number] = case.errors
        return times


class CaseTimes(NamedTuple):
    """In how many iterations each case has a result, failed, and ended in an error, by case number."""

    results: Counter[int]
    failed: Counter[int]
    broken: Counter[int]


def why_incomplete(run: Run) -> str | None:
    """Return why a run did not complete; None for a complete run."""
    if run.is_complete:
        return None
    state = f"the run is {run.status} with {len(run.cases):,} of {count(run.total, 'case result')}"
    return f"{state}: {run.error}" if run.error else state


def has_passed(report: Report) -> bool:
    """Return whether the run is complete and its summary succeeded."""
    return run_has_passed(report.run, report.summary)


def counts_as_passed(report: Report) -> bool:
    """Return whether the run passed, or only has failures that the baseline forgives."""
    if report.baseline is None or why_incomplete(report.run) or report.summary.errors:
        return has_passed(report)
    return report.baseline.passed


def is_brief(report: Report) -> bool:
    """Return whether one line says all about a run of a suite: it passed, and so did its cases."""
    run, passed = report.run, has_passed(report) and counts_as_passed(report)
    return (
        passed
        and not (report.summary.failed or run.doubts or report.tally.differences or report.tally.quarantined)
        and (run.options.iterations == 1)
    )


def why_not_counted(report: Report, case: CaseResult) -> str:
    """Return why a result does not count: the quarantine of its case, or its failure is in the baseline or chance.

    The text is empty for all other results.
    """
    if case.quarantine is not None and case.is_quarantined:
        return quarantine_text(case.quarantine)
    baseline = report.baseline
    if baseline is None or verdict_of(report, case) is not Verdict.FAILURE or not baseline.forgives(case.number):
        return ""
    label = baseline.comparison.before
    return f"known failure, in {label}" if case.number in baseline.known else f"not significantly worse than {label}"


def quarantine_text(quarantine: Quarantine) -> str:
    """Return until when a case is in quarantine, and why."""
    return f"in quarantine until {quarantine.until}: {quarantine.reason}"


def ended_text(quarantine: Quarantine) -> str:
    """Return since when a case counts whose quarantine has ended."""
    return f"its quarantine ended on {quarantine.until}, so it counts"


def is_known(report: Report, case: CaseResult) -> bool:
    """Return whether the baseline has this failure of a case already."""
    baseline = report.baseline
    return bool(baseline and case.number in baseline.known and verdict_of(report, case) is Verdict.FAILURE)


def forgiven_failures(report: Report) -> int:
    """Return the number of failures that the baseline forgives."""
    failed, baseline = report.times.failed, report.baseline
    return sum(times for number, times in failed.items() if baseline and baseline.forgives(number))


def verdict_counts(report: Report) -> dict[Verdict, int]:
    """Return the number of the run's case results by verdict; partly judged ones are PASS."""
    counts = report.tally.summary()
    numbers = (counts.passed + counts.partly_judged, counts.failed, counts.errors, counts.undecided)
    return dict(zip(VERDICT_WORDS, numbers, strict=True))


class RunFailure(NamedTuple):
    """Why a run as a whole failed: in formats that list cases, one more of them."""

    name: str
    verdict: Verdict
    why: str


def run_failures(report: Report) -> list[RunFailure]:
    """Return why a run as a whole failed: it did not complete, judged too little, or is worse than its baseline."""
    why, baseline = why_incomplete(report.run), report.baseline
    failures = [RunFailure("the run", Verdict.ERROR, why)] if why else []
    if baseline and not baseline.passed:
        failures.append(RunFailure("the comparison with the baseline", Verdict.FAILURE, baseline.text))
    if not (why or baseline) and report.summary.verdict is Verdict.UNDECIDED:
        failures.append(RunFailure("the judged results", Verdict.FAILURE, decision(report)))
    return failures


def decision(report: Report) -> str:
    """Return one line that says whether the run passed and why, or how far it is."""
    run, summary = report.run, report.summary
    if not run.status.is_over:
        state = "waiting" if run.status is RunStatus.NEW else "in progress"
        why = f"; {run.error}" if run.error else ""
        return f"{state}: {len(run.cases):,} of {count(run.total, 'case result')} so far{why}"
    if not has_passed(report):
        return f"not passed: {'; '.join(_failures(report))}"
    if summary.counts_nothing:
        return f"nothing counted: {count(len(report.tally.quarantined), 'case')} in quarantine"
    if summary.pass_rate is None:
        return "passed: no case was judged"
    judged = f"; {coverage_text(summary)}" if summary.coverage.share < 1 else ""
    if not summary.failed:
        return f"passed: all judged cases passed{judged}"
    rates = f"the pass rate of {percent(summary.pass_rate)} meets the required {percent(summary.min_pass_rate)}"
    return f"passed: {rates}, although {_times(report, Verdict.FAILURE, 'failed')}{judged}"


def outcome(report: Report) -> str:
    """Return the decision on a run as its baseline changes it; without a baseline, that of the run."""
    baseline = report.baseline
    if baseline is None or not report.run.status.is_over:
        return decision(report)
    if not baseline.passed:
        own = f"; {'; '.join(_failures(report))}" if report.summary.errors or why_incomplete(report.run) else ""
        return f"not passed: {baseline.text}{own}"
    if has_passed(report) or not counts_as_passed(report):
        return decision(report)
    label, failed = baseline.comparison.before, _times(report, Verdict.FAILURE, "failed")
    is_known = baseline.known.issuperset(report.times.failed)
    return f"passed: {failed}, {'as in' if is_known else 'not significantly worse than'} {label}"


def coverage_text(summary: Summary) -> str:
    """Return `130 of 200 results were judged (65 %)`, with the required share if there is one."""
    judged, total, _ = summary.coverage
    required = f"; required: at least {percent(summary.min_decided)}" if summary.min_decided else ""
    verb = "was" if total == 1 else "were"
    return f"{judged:,} of {count(total, 'result')} {verb} judged ({percent(summary.coverage.share)}{required})"


def too_few_text(summary: Summary) -> str:
    """Return why a run fails that did not judge enough results."""
    if summary.min_decided is not None:
        return f"only {coverage_text(summary)}"
    judged, total, outside = summary.coverage
    which = f"{count(total - outside, 'result')}{' that need no LLM rater' if outside else ''}"
    verb, least = "was" if total - outside == 1 else "were", percent(DEFAULT_MIN_DECIDED)
    return f"only {judged:,} of {which} {verb} judged (required by default: at least {least})"


def undecided_reasons(report: Report) -> dict[str, Counter[str]]:
    """Return why results are undecided, by name: short reasons with their counts, the commonest first.

    Reasons that differ only in their details, after a colon or semicolon, are counted together.
    """
    return {name: _reasons(report, name, number) for name, number in report.summary.undecided_results}


def _reasons(report: Report, name: str, number: int) -> Counter[str]:
    known = report.tally.reasons.get(name)
    # Results that were counted and not kept have no reasons.
    if known is None:
        return Counter({_NO_REASON: number})
    reasons = Counter[str]()
    for reason, times in known.counts().items():
        reasons[one_line(reason) or _NO_REASON] += times
    return reasons


def duration(report: Report) -> float:
    """Return the seconds a run took; until the end of its last case if the run itself has no end."""
    run = report.run
    ended = report.tally.ended if run.ended is None else run.ended
    return 0.0 if ended is None else max(0.0, ended - run.started)


def location(report: Report, case: CaseResult) -> str | None:
    """Return `file:line` of a case, or the file alone if the line is unknown."""
    file, line = place_of(report, case.number)
    return f"{file}:{line}" if file and line else file


def place_of(report: Report, number: int) -> tuple[str | None, int | None]:
    """Return the file and the line of a case; None for what is unknown."""
    return report.files.get(number, report.file), report.lines.get(number)


def is_partly_judged(report: Report, case: CaseResult) -> bool:
    """Return whether a case result counts as partly judged: what was judged passed, and some results are undecided."""
    return coverage_of(case).share < 1 and verdict_of(report, case) is Verdict.PASS


def verdict_of(report: Report, case: CaseResult) -> Verdict:
    """Return the verdict by which a case is counted in the run's summary."""
    return verdict_in(report.summary.averaged, case, report.run.options)


def _failures(report: Report) -> Iterator[str]:
    """Yield the reasons why a run did not pass."""
    summary, why = report.summary, why_incomplete(report.run)
    if why:
        yield why
    if summary.errors:
        yield _times(report, Verdict.ERROR, "ended in an error")
    if summary.pass_rate is None and summary.undecided:
        yield _why_undecided(report)
    elif not summary.judges_enough:
        yield too_few_text(summary)
    if summary.pass_rate is None or summary.pass_rate >= summary.min_pass_rate:
        return
    if summary.min_pass_rate >= 1:
        yield _times(report, Verdict.FAILURE, "failed")
    else:
        rate, required = percent(summary.pass_rate), percent(summary.min_pass_rate)
        yield f"the pass rate of {rate} is below the required {required}"
        if summary.judges_enough and summary.coverage.share < 1:
            yield coverage_text(summary)
    missed = [average for average in summary.averages if average.verdict is Verdict.FAILURE]
    yield from map(missed_text, missed[:_SHOWN_AVERAGES])
    if len(missed) > _SHOWN_AVERAGES:
        yield f"{count(len(missed) - _SHOWN_AVERAGES, 'more average')} missed"


def _why_undecided(report: Report) -> str:
    if report.tally.has_judged:
        return f"no case was judged: {_commonest_reasons(report)}"
    is_measured = report.tally.has_results
    return "no case was judged: the results are only measured" if is_measured else "the cases have no expectations"


def _commonest_reasons(report: Report) -> str:
    total = Counter[str]()
    for reasons in undecided_reasons(report).values():
        for reason, number in reasons.items():
            total[DETAILS.split(reason, maxsplit=1)[0]] += number
    shown = ", ".join(reason for reason, _ in total.most_common(_SHOWN_REASONS))
    others = len(total) - _SHOWN_REASONS
    return f"{shown} (and {count(others, 'more reason')})" if others > 0 else shown


def _times(report: Report, verdict: Verdict, what: str) -> str:
    """Return `1 case failed`; with several iterations `1 case failed in 2 of 3 iterations`, or all of them."""
    times = report.times
    numbers = times.failed if verdict is Verdict.FAILURE else times.broken
    of_cases = sum(times.results[number] for number in numbers)
    text, iterations = f"{count(len(numbers), 'case')} {what}", report.run.options.iterations
    if iterations == 1:
        return text
    if len(numbers) == 1:
        return f"{text} in {numbers.total():,} of {count(iterations, 'iteration')}"
    if numbers.total() == of_cases:
        return f"{text} in all {count(iterations, 'iteration')}"
    return f"{text} in at least one iteration ({numbers.total():,} of their {count(of_cases, 'case result')})"
