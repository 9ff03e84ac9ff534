"""The input of every report: a run and its summary, and the facts that all formats share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.aggregation import verdict_in
from evalmeta.model.run import RunStatus, Verdict
from evalmeta.report.averages import missed_text
from evalmeta.report.facts import DETAILS, collect_facts
from evalmeta.report.text import count, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.model.run import CaseResult, Run, Summary
    from evalmeta.model.statistics import Comparison, RunStatistics
    from evalmeta.report.facts import Facts


VERDICT_WORDS: Final = {
    Verdict.PASS: "ok",
    Verdict.FAILURE: "FAILED",
    Verdict.ERROR: "ERROR",
    Verdict.UNDECIDED: "undecided",
}
_SHOWN_AVERAGES: Final = 3
_SHOWN_REASONS: Final = 2


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
    """

    run: Run
    summary: Summary
    file: str | None = None
    lines: Mapping[int, int] = field(default_factory=dict[int, int])
    files: Mapping[int, str] = field(default_factory=dict[int, str])
    statistics: RunStatistics | None = None
    baseline: BaselineVerdict | None = None

    @cached_property
    def facts(self) -> Facts:
        """Return the counts of the run's case results, which formats need before they write the first case."""
        return collect_facts(self.run, self.summary.averaged)


def why_incomplete(run: Run) -> str | None:
    """Return why a run did not complete; None for a complete run."""
    missing = run.total - len(run.cases)
    if run.status is RunStatus.COMPLETED and missing <= 0 and not run.error:
        return None
    state = f"the run is {run.status} with {len(run.cases):,} of {count(run.total, 'case result')}"
    return f"{state}: {run.error}" if run.error else state


def has_passed(report: Report) -> bool:
    """Return whether the run is complete and its summary succeeded."""
    return report.summary.succeeded and why_incomplete(report.run) is None


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
        and not (report.summary.failed or run.doubts or report.facts.differences)
        and (run.options.iterations == 1)
    )


def known_failure(report: Report, case: CaseResult) -> str:
    """Return that a failure of a case is in the baseline, or may be chance; empty for all other results."""
    baseline = report.baseline
    if baseline is None or verdict_of(report, case) is not Verdict.FAILURE or not baseline.forgives(case.number):
        return ""
    label = baseline.comparison.before
    return f"known failure, in {label}" if case.number in baseline.known else f"not significantly worse than {label}"


def is_known(report: Report, case: CaseResult) -> bool:
    """Return whether the baseline has this failure of a case already."""
    baseline = report.baseline
    return bool(baseline and case.number in baseline.known and verdict_of(report, case) is Verdict.FAILURE)


def forgiven_failures(report: Report) -> int:
    """Return the number of failures that the baseline forgives."""
    failed, baseline = report.facts.failed, report.baseline
    return sum(times for number, times in failed.items() if baseline and baseline.forgives(number))


class RunFailure(NamedTuple):
    """Why a run as a whole failed: in formats that list cases, one more of them."""

    name: str
    verdict: Verdict
    why: str


def run_failures(report: Report) -> list[RunFailure]:
    """Return why a run as a whole failed: it did not complete, or the comparison with the baseline fails it."""
    why, baseline = why_incomplete(report.run), report.baseline
    found = [RunFailure("the run", Verdict.ERROR, why)] if why else []
    if baseline and not baseline.passed:
        found.append(RunFailure("the comparison with the baseline", Verdict.FAILURE, baseline.text))
    return found


def decision(report: Report) -> str:
    """Return one line that says whether the run passed and why, or how far it is."""
    run, summary = report.run, report.summary
    if not run.status.is_over:
        state = "waiting" if run.status is RunStatus.NEW else "in progress"
        why = f"; {run.error}" if run.error else ""
        return f"{state}: {len(run.cases):,} of {count(run.total, 'case result')} so far{why}"
    if not has_passed(report):
        return f"not passed: {'; '.join(_failures(report))}"
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
    is_known = baseline.known.issuperset(report.facts.failed)
    return f"passed: {failed}, {'as in' if is_known else 'not significantly worse than'} {label}"


def coverage_text(summary: Summary) -> str:
    """Return `130 of 200 results were judged (65 %)`, with the required share if there is one."""
    judged, total = summary.coverage
    required = "" if summary.min_decided is None else f"; required: at least {percent(summary.min_decided)}"
    verb = "was" if total == 1 else "were"
    return f"{judged:,} of {count(total, 'result')} {verb} judged ({percent(summary.coverage.share)}{required})"


def too_few_text(summary: Summary) -> str:
    """Return why a run fails that did not judge enough results."""
    return f"only {coverage_text(summary)}"


def undecided_reasons(report: Report) -> dict[str, Counter[str]]:
    """Return why results are undecided, by name: short reasons with their counts, the commonest first.

    Reasons that differ only in their details, after a colon or semicolon, are counted together.
    """
    return {name: report.facts.reasons_of(name, number) for name, number in report.summary.undecided_results}


def duration(report: Report) -> float:
    """Return the seconds a run took; until the end of its last case if the run itself has no end."""
    run = report.run
    ended = report.facts.ended if run.ended is None else run.ended
    return 0.0 if ended is None else max(0.0, ended - run.started)


def location(report: Report, case: CaseResult) -> str | None:
    """Return `file:line` of a case, or the file alone if the line is unknown."""
    file, line = place_of(report, case.number)
    return f"{file}:{line}" if file and line else file


def place_of(report: Report, number: int) -> tuple[str | None, int | None]:
    """Return the file and the line of a case; None for what is unknown."""
    return report.files.get(number, report.file), report.lines.get(number)


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
    missed = [each for each in summary.averages if each.verdict is Verdict.FAILURE]
    yield from map(missed_text, missed[:_SHOWN_AVERAGES])
    if len(missed) > _SHOWN_AVERAGES:
        yield f"{count(len(missed) - _SHOWN_AVERAGES, 'more average')} missed"


def _why_undecided(report: Report) -> str:
    if report.facts.has_judged:
        return f"no case was judged: {_commonest_reasons(report)}"
    is_measured = report.facts.has_results
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
    facts = report.facts
    found = facts.failed if verdict is Verdict.FAILURE else facts.broken
    of_cases = sum(facts.numbers[number] for number in found)
    text, iterations = f"{count(len(found), 'case')} {what}", report.run.options.iterations
    if iterations == 1:
        return text
    if len(found) == 1:
        return f"{text} in {found.total():,} of {count(iterations, 'iteration')}"
    if found.total() == of_cases:
        return f"{text} in all {count(iterations, 'iteration')}"
    return f"{text} in at least one iteration ({found.total():,} of their {count(of_cases, 'case result')})"
