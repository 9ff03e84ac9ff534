"""The input of every report: a run and its summary, and the facts that all formats share."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.aggregation import coverage_of, verdict_in
from evalmeta.model.run import DEFAULT_MIN_DECIDED, CaseResult, Run, RunStatus, Summary, Verdict
from evalmeta.model.tally import DETAILS, DetailedTally, detail, has_passed
from evalmeta.report.results import missed_text
from evalmeta.report.text import count, one_line, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalmeta.model.comparison import Comparison
    from evalmeta.model.evaluation import Quarantine
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.matrix import Matrix
    from evalmeta.model.run_options import RunOptions
    from evalmeta.model.statistics import RunStatistics


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
# The usual paths of Salesforce DX projects have up to 100 characters.
_MOST_PATH_CHARS: Final = 100
_SHOWN_REASONS: Final = 2
_NO_REASON: Final = "no rater could judge it"


@dataclass(frozen=True)
class BaselineVerdict:
    """What the comparison with a baseline decides about a run, whatever its pass rate is, and why, on one line."""

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


class CaseTimes(NamedTuple):
    """In how many iterations each case has a result, failed, and ended in an error, by case number."""

    results: Counter[int]
    failed: Counter[int]
    broken: Counter[int]


class RunFailure(NamedTuple):
    """Why a run as a whole failed: in formats that list cases, one more of them."""

    name: str
    verdict: Verdict
    why: str


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
        test: what identifies the content of the test, of a run that is merged with others; None for all other runs.
        matrix: the agents of the command side by side; only the first of several runs has it.
    """

    run: Run
    summary: Summary
    file: str | None = None
    lines: Mapping[int, int] = field(default_factory=dict[int, int])
    files: Mapping[int, str] = field(default_factory=dict[int, str])
    statistics: RunStatistics | None = None
    baseline: BaselineVerdict | None = None
    counted: DetailedTally | None = None
    test: JsonObject | None = None
    matrix: Matrix | None = None

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

    @property
    def case_count(self) -> int:
        """Return the number of cases that have results."""
        # A complete run has as many of each case, unless cases have their own iterations: they need not be read.
        iterations = self.run.options.common_iterations
        if self.counted is None and self.run.is_complete and iterations:
            return len(self.run.cases) // iterations
        return len(self.times.results)

    @property
    def is_repeated(self) -> bool:
        """Return whether the run has several iterations."""
        return self.run.options.is_repeated

    @property
    def has_passed(self) -> bool:
        """Return whether the run is complete and its summary succeeded."""
        return has_passed(self.run, self.summary)

    @property
    def counts_as_passed(self) -> bool:
        """Return whether the run passed, or only has failures that the baseline forgives."""
        if self.baseline is None or why_incomplete(self.run) or self.summary.errors:
            return self.has_passed
        return self.baseline.passed

    @property
    def is_brief(self) -> bool:
        """Return whether one line says all about a run of a suite: it passed, and so did its cases."""
        unusual = self.summary.failed or self.run.doubts or self.tally.differences or self.tally.quarantined
        return self.has_passed and self.counts_as_passed and not unusual and not self.is_repeated

    @property
    def duration(self) -> float:
        """Return the seconds that the run took; until the end of its last case if the run itself has no end."""
        ended = self.tally.ended if self.run.ended is None else self.run.ended
        return 0.0 if ended is None else max(0.0, ended - self.run.started)

    @property
    def verdict_counts(self) -> dict[Verdict, int]:
        """Return the number of case results by verdict; partly judged ones are PASS."""
        counts = self.tally.summary()
        numbers = (counts.passed + counts.partly_judged, counts.failed, counts.errors, counts.undecided)
        return dict(zip(VERDICT_WORDS, numbers, strict=True))

    @property
    def forgiven_failures(self) -> int:
        """Return the number of failures that the baseline forgives."""
        if self.baseline is None:
            return 0
        return sum(times for number, times in self.times.failed.items() if self.baseline.forgives(number))

    @property
    def run_failures(self) -> list[RunFailure]:
        """Return why the run as a whole failed: it is incomplete, judged too little, or is worse than its baseline."""
        why, baseline = why_incomplete(self.run), self.baseline
        failures = [RunFailure("the run", Verdict.ERROR, why)] if why else []
        if baseline and not baseline.passed:
            failures.append(RunFailure("the comparison with the baseline", Verdict.FAILURE, baseline.text))
        if not (why or baseline) and self.summary.verdict is Verdict.UNDECIDED:
            failures.append(RunFailure("the judged results", Verdict.FAILURE, self.decision()))
        return failures

    @property
    def undecided_reasons(self) -> dict[str, Counter[str]]:
        """Return why results are undecided, by name: short reasons with their counts, the commonest first.

        Reasons that differ only in their details, after a colon or semicolon, are counted together.
        """
        return {name: self._reasons(name, number) for name, number in self.summary.undecided_results}

    def _reasons(self, name: str, number: int) -> Counter[str]:
        known = self.tally.reasons.get(name)
        # Results that were counted and not kept have no reasons.
        if known is None:
            return Counter({_NO_REASON: number})
        reasons = Counter[str]()
        for reason, times in known.counts().items():
            reasons[one_line(reason) or _NO_REASON] += times
        return reasons

    def verdict_of(self, case: CaseResult) -> Verdict:
        """Return the verdict by which a case is counted in the run's summary."""
        return verdict_in(self.summary.averaged, case, self.run.options)

    def is_partly_judged(self, case: CaseResult) -> bool:
        """Return whether a case result counts as partly judged: its judged results passed, and some are undecided."""
        return self.verdict_of(case) is Verdict.PASS and coverage_of(case).share < 1

    def is_known(self, case: CaseResult) -> bool:
        """Return whether the baseline has this failure of a case already."""
        return bool(self.baseline and case.number in self.baseline.known and self.verdict_of(case) is Verdict.FAILURE)

    def why_not_counted(self, case: CaseResult) -> str:
        """Return why a result does not count: the quarantine of its case, or its failure is in the baseline or chance.

        The text is empty for all other results.
        """
        if case.quarantine is not None and case.is_quarantined:
            return quarantine_text(case.quarantine)
        baseline = self.baseline
        if baseline is None or self.verdict_of(case) is not Verdict.FAILURE or not baseline.forgives(case.number):
            return ""
        label = baseline.comparison.before
        return (
            f"known failure, in {label}" if case.number in baseline.known else f"not significantly worse than {label}"
        )

    def place_of(self, number: int) -> tuple[str | None, int | None]:
        """Return the file and the line of a case; None for what is unknown."""
        return self.files.get(number, self.file), self.lines.get(number)

    def location(self, case: CaseResult) -> str | None:
        """Return `file:line` of a case, or the file alone if the line is unknown."""
        file, line = self.place_of(case.number)
        return f"{file}:{line}" if file and line else file

    @property
    def has_long_path(self) -> bool:
        """Return whether the path of the file is too long to be shown with every case."""
        return self.file is not None and len(self.file) > _MOST_PATH_CHARS

    def place_in_list(self, case: CaseResult) -> str | None:
        """Return the location of a case for lists of cases: with a long path, the name of the test and the line.

        `NAME:7` would be case 7 for `--case`.
        """
        file, line = self.place_of(case.number)
        if not self.has_long_path or file != self.file:
            return self.location(case)
        return f"{self.run.definition} line {line}" if line else self.run.definition

    def decision(self) -> str:
        """Return one line that says whether the run passed and why, or how far it is."""
        run, summary = self.run, self.summary
        if not run.status.is_over:
            state = "waiting" if run.status is RunStatus.NEW else "in progress"
            why = f"; {run.error}" if run.error else ""
            return f"{state}: {len(run.cases):,} of {count(run.total, 'case result')} so far{why}"
        if not self.has_passed:
            return f"not passed: {'; '.join(self._failures())}"
        if summary.counts_nothing:
            return f"nothing counted: {count(len(self.tally.quarantined), 'case')} in quarantine"
        if summary.pass_rate is None:
            return "passed: no case was judged"
        judged = f"; {coverage_text(summary)}" if summary.coverage.share < 1 else ""
        if not summary.failed:
            return f"passed: all judged cases passed{judged}"
        rates = f"the pass rate of {percent(summary.pass_rate)} meets the required {percent(summary.min_pass_rate)}"
        return f"passed: {rates}, although {self._times(Verdict.FAILURE, 'failed')}{judged}"

    def outcome(self) -> str:
        """Return the decision on the run as its baseline changes it; without a baseline, that of the run."""
        baseline = self.baseline
        if baseline is None or not self.run.status.is_over:
            return self.decision()
        if not baseline.passed:
            own = f"; {'; '.join(self._failures())}" if self.summary.errors or why_incomplete(self.run) else ""
            return f"not passed: {baseline.text}{own}"
        if self.has_passed or not self.counts_as_passed:
            return self.decision()
        label, failed = baseline.comparison.before, self._times(Verdict.FAILURE, "failed")
        is_known = baseline.known.issuperset(self.times.failed)
        return f"passed: {failed}, {'as in' if is_known else 'not significantly worse than'} {label}"

    def _failures(self) -> Iterator[str]:
        """Yield the reasons why the run did not pass."""
        summary, why = self.summary, why_incomplete(self.run)
        if why:
            yield why
        if summary.errors:
            yield self._times(Verdict.ERROR, "ended in an error")
        if summary.pass_rate is None and summary.undecided:
            yield self._why_undecided()
        elif not summary.judges_enough:
            yield too_few_text(summary)
        if summary.pass_rate is None or summary.pass_rate >= summary.min_pass_rate:
            return
        if summary.min_pass_rate >= 1:
            yield self._times(Verdict.FAILURE, "failed")
        else:
            rate, required = percent(summary.pass_rate), percent(summary.min_pass_rate)
            yield f"the pass rate of {rate} is below the required {required}"
            if summary.judges_enough and summary.coverage.share < 1:
                yield coverage_text(summary)
        missed = [average for average in summary.averages if average.verdict is Verdict.FAILURE]
        yield from map(missed_text, missed[:_SHOWN_AVERAGES])
        if len(missed) > _SHOWN_AVERAGES:
            yield f"{count(len(missed) - _SHOWN_AVERAGES, 'more average')} missed"

    def _why_undecided(self) -> str:
        if not self.tally.has_judged:
            is_measured, nothing = self.tally.has_results, "the cases have no expectations"
            return "no case was judged: the results are only measured" if is_measured else nothing
        total = Counter[str]()
        for reasons in self.undecided_reasons.values():
            for reason, number in reasons.items():
                total[DETAILS.split(reason, maxsplit=1)[0]] += number
        shown = ", ".join(reason for reason, _ in total.most_common(_SHOWN_REASONS))
        others = len(total) - _SHOWN_REASONS
        return f"no case was judged: {shown}" + (f" (and {count(others, 'more reason')})" if others > 0 else "")

    def _times(self, verdict: Verdict, what: str) -> str:
        """Return `1 case failed`; with several iterations `1 case failed in 2 of 3 iterations`, or all of them."""
        if not self.is_repeated:
            return f"{count(self.summary.failed if verdict is Verdict.FAILURE else self.summary.errors, 'case')} {what}"
        numbers = self.times.failed if verdict is Verdict.FAILURE else self.times.broken
        iterations, text = [self.times.results[number] for number in numbers], f"{count(len(numbers), 'case')} {what}"
        of_cases = sum(iterations)
        if len(numbers) == 1:
            return f"{text} in {numbers.total():,} of {count(of_cases, 'iteration')}"
        if numbers.total() == of_cases:
            is_common = len({*iterations}) == 1
            return f"{text} in all {count(iterations[0], 'iteration') if is_common else 'their iterations'}"
        return f"{text} in at least one iteration ({numbers.total():,} of their {count(of_cases, 'case result')})"


# Reporters of other packages call these as functions.
decision = Report.decision
verdict_of = Report.verdict_of


def iterations_of_runs(options: Iterable[RunOptions]) -> str:
    """Return `3 iterations`, or `up to 5 iterations` if some cases run more often than others."""
    numbers = {own.common_iterations or -own.most_iterations for own in options}
    most = count(max(map(abs, numbers)), "iteration")
    return most if len(numbers) == 1 and min(numbers) > 0 else f"up to {most}"


def why_incomplete(run: Run) -> str | None:
    """Return why a run did not complete; None for a complete run."""
    if run.is_complete:
        return None
    if run.is_cut:
        missing, what = run.total - len(run.cases), "case result" if run.options.is_repeated else "case"
        # Of cases from an iterator, nobody knows how many there are.
        return f"{count(missing, what) if missing > 0 else 'more cases'} not run: {run.error}"
    state = f"the run is {run.status} with {len(run.cases):,} of {count(run.total, 'case result')}"
    return f"{state}: {run.error}" if run.error else state


def quarantine_text(quarantine: Quarantine) -> str:
    """Return until when a case is in quarantine, and why."""
    return f"in quarantine until {quarantine.until}: {quarantine.reason}"


def ended_text(quarantine: Quarantine) -> str:
    """Return since when a case counts whose quarantine has ended."""
    return f"its quarantine ended on {quarantine.until}, so it counts"


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
