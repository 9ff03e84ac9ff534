"""The tally of a run: one pass over its case results gives all counts that summaries, statistics and reports need.

Whether a run has passed is decided here (`run_verdict`) and in `Summary.verdict`, and nowhere else.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.aggregation import AveragedCase, counted_verdict, coverage_of, is_averaged, mean_name
from evalmeta.model.expectations import OUTCOME, canonical_name
from evalmeta.model.generated_data import GeneratedData, Tokens
from evalmeta.model.run import CaseResult, Coverage, Run, RunStatus, Summary, TestResult, Verdict
from evalmeta.model.spending import Spent, merged
from evalmeta.model.statistics import CaseCounts, JudgeCheck, Measure

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evalmeta.model.evaluation import Quarantine
    from evalmeta.model.run_options import RunOptions


# Before Python 3.12, `Verdict.UNDECIDED` calls a function.
_PASS: Final = Verdict.PASS
_ERROR: Final = Verdict.ERROR
_UNDECIDED: Final = Verdict.UNDECIDED
_INDEX: Final = {Verdict.PASS: 0, Verdict.FAILURE: 1, Verdict.ERROR: 2, Verdict.UNDECIDED: 3}
_PARTLY: Final = 4
_REASON_CHARS: Final = 300
_FUNCTION: Final = "function"
JUDGE: Final = "llm:"
"""How the names of raters that are language models begin."""

DETAILS: Final = re.compile(r"[:;] ")
"""What separates a reason from its details."""


def summarise(cases: Iterable[CaseResult], options: RunOptions) -> Summary:
    """Count case results in one pass."""
    tally = Tally(options)
    for case in cases:
        tally.add(case)
    return tally.summary()


def detail(cases: Iterable[CaseResult], options: RunOptions) -> DetailedTally:
    """Count case results in one pass, with what statistics and reports need."""
    tally = DetailedTally(options)
    for case in cases:
        tally.add(case)
    return tally


def run_verdict(summary: Summary, status: RunStatus, *, is_complete: bool) -> Verdict | None:
    """Return the verdict on a run: PASS if it has passed; None while it is in progress.

    ERROR means that results ended in errors, or that the run did not complete.
    """
    if not status.is_over:
        return None
    return summary.verdict if is_complete else Verdict.ERROR


def has_passed(run: Run, summary: Summary) -> bool:
    """Return whether a run is complete, and its results let it pass."""
    return run_verdict(summary, run.status, is_complete=run.is_complete) is Verdict.PASS


class Tally:
    """Count case results one by one; memory only grows with the number of cases if results are averaged."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._verdicts: Counter[Verdict] = Counter()
        self._undecided: Counter[str] = Counter()
        self._averaged: dict[int, AveragedCase] = {}
        self._partly_judged = self._judged = self._results = self._outside = 0
        self._quarantined = self._quarantined_passed = 0

    def add(self, case: CaseResult) -> None:
        """Count one case result; with `undecided="fail"`, a case with an undecided result has failed."""
        self._count(case)

    def _count(self, case: CaseResult) -> tuple[Verdict | None, bool]:
        """Count a case result; return its verdict, and whether results were not judged.

        The verdict is None if it is averaged, or if the case is in quarantine.
        """
        if case.is_quarantined:
            self._quarantined += 1
            self._quarantined_passed += case.verdict is _PASS
            return None, False
        judged, total, outside = coverage_of(case)
        self._judged += judged
        self._results += total
        self._outside += outside
        is_partial = judged < total
        if is_partial:
            for result in case.results:
                if result.verdict is _UNDECIDED and not result.is_measured:
                    self._add_undecided(result)
        verdict = counted_verdict(case, self._options)
        if verdict is not _ERROR and is_averaged(case):
            averaged = self._averaged.setdefault(case.number, AveragedCase(case.label))
            averaged.add(case, self._options, is_partial=is_partial)
            return None, is_partial
        if is_partial and verdict is _PASS:
            self._partly_judged += 1
        else:
            self._verdicts[verdict] += 1
        return verdict, is_partial

    def _add_undecided(self, result: TestResult) -> None:
        self._undecided[result.name] += 1

    def summary(self) -> Summary:
        """Return the counts so far."""
        verdicts, partly_judged = self._verdicts.copy(), self._partly_judged
        averaged = {number: case.verdict() for number, case in self._averaged.items()}
        for number, case in self._averaged.items():
            partly = case.partial if averaged[number] is _PASS else 0
            partly_judged += partly
            verdicts[averaged[number]] += case.iterations - partly
        return Summary(
            total=verdicts.total() + partly_judged + self._quarantined,
            passed=verdicts[Verdict.PASS],
            failed=verdicts[Verdict.FAILURE],
            errors=verdicts[Verdict.ERROR],
            undecided=verdicts[Verdict.UNDECIDED],
            partly_judged=partly_judged,
            min_pass_rate=self._options.min_pass_rate,
            undecided_results=tuple(sorted(self._undecided.items())),
            averages=tuple(
                average for number, case in sorted(self._averaged.items()) for average in case.averages(number)
            ),
            averaged=averaged,
            coverage=Coverage(self._judged, self._results, self._outside),
            min_decided=self._options.min_decided,
            quarantined=self._quarantined,
            quarantined_passed=self._quarantined_passed,
        )


class Difference(NamedTuple):
    """A result that another org and evalmeta judge differently."""

    case: CaseResult
    result: TestResult


class QuarantinedCase(NamedTuple):
    """The quarantine of a case, and the verdicts of its results that do not count; none if it had ended."""

    quarantine: Quarantine
    verdicts: Counter[Verdict]


class Reasons:
    """Why results of one name are undecided; reasons that differ only in their details are one reason."""

    __slots__ = ("_counts", "_texts")

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._texts: dict[str, str] = {}

    def add(self, reason: str) -> None:
        """Count a reason, which may be empty."""
        reason = reason[:_REASON_CHARS]
        start = DETAILS.split(reason, maxsplit=1)[0]
        self._counts[start] += 1
        if self._texts.setdefault(start, reason) != reason:
            self._texts[start] = start

    def counts(self) -> Counter[str]:
        """Return the reasons with their counts, the commonest first; one that never differs has its details."""
        merged = Counter[str]()
        for start, number in self._counts.items():
            merged[self._texts[start]] = number
        return Counter(dict(merged.most_common()))


class DetailedTally(Tally):
    """A tally with five numbers for each case, and eight bytes for each latency.

    Attributes:
        check: the check of the run's judge; None if it was not checked.
        ended: the end of the last case; None if there are no cases.
        has_results: whether a case has results; `has_judged`, whether one of them is not only measured.
        reasons: why results are undecided, by name.
        differences: the results that another org and evalmeta judge differently.
        latencies: those of answers, in milliseconds, in no order.
        answers: the number of answers; `told_tokens` of them report tokens.
        quarantined: the cases with a quarantine, also with one that had ended, by number.
        asked_again: the number of case results whose case was asked again because the worker that asked it had died.
    """

    def __init__(self, options: RunOptions) -> None:
        super().__init__(options)
        self.check = JudgeCheck.read(options.setup.judge_check)
        self._counts: dict[int, list[int]] = {}
        self._utterances: dict[int, str] = {}
        self._labels: dict[int, str] = {}
        self._checks: dict[int, str] = {}
        self._turns: dict[int, int] = {}
        self._measures: dict[str, tuple[float, int]] = {}
        self._functions: dict[str, tuple[int, int]] = {}
        self._by_judge: dict[int, Counter[Verdict]] = {}
        self._input: int | None = None
        self._output: int | None = None
        self.ended: float | None = None
        self.has_results = self.has_judged = False
        self.reasons: dict[str, Reasons] = {}
        self.differences: list[Difference] = []
        self.latencies = array("d")
        self.first_tokens = array("d")
        self.answers = self.told_tokens = 0
        self.quarantined: dict[int, QuarantinedCase] = {}
        self.asked_again = 0
        self._spent: tuple[Spent, ...] = ()
        self._unreported = 0

    def add(self, case: CaseResult) -> None:
        """Count one case result."""
        # A case that ends in an error may have asked only its first turns.
        if len(case.earlier) > self._turns.get(case.number, -1):
            self._turns[case.number], self._utterances[case.number] = len(case.earlier), _asked(case)
            self._labels[case.number] = case.label if case.earlier else ""
        if case.checks:
            self._checks[case.number] = case.checks
        self.add_spent(case.spent, len(case.earlier) + (case.generated is not None))
        if case.asked_again:
            self.asked_again += 1
        counts = self._counts.setdefault(case.number, [0, 0, 0, 0, 0])
        verdict, is_partial = self._count(case)
        if verdict is not None:
            counts[_INDEX[verdict]] += 1
            counts[_PARTLY] += is_partial and verdict is _PASS
        self.ended = case.ended if self.ended is None else max(self.ended, case.ended)
        for turn in case.earlier:
            self._add_generated(turn.generated)
        if case.generated is not None:
            self._add_generated(case.generated)
        if case.quarantine is not None:
            known = self.quarantined.setdefault(case.number, QuarantinedCase(case.quarantine, Counter()))
            known.verdicts[case.verdict] += case.is_quarantined
        for result in () if case.is_quarantined else case.results:
            self._add_result(case, result)

    def _add_result(self, case: CaseResult, result: TestResult) -> None:
        self.has_results = True
        if result.verdicts and result.verdicts.differ:
            self.differences.append(Difference(case, result))
        if not result.is_measured:
            self.has_judged = True
            if result.name == _FUNCTION and result.verdict in {_PASS, Verdict.FAILURE}:
                passed, count = self._functions.get(name := mean_name(result), (0, 0))
                self._functions[name] = passed + (result.verdict is _PASS), count + 1
            if self.check and (result.rater or "").startswith(JUDGE) and canonical_name(result.name) == OUTCOME:
                self._by_judge.setdefault(case.number, Counter())[result.verdict] += 1
        elif result.score is not None:
            name = mean_name(result)
            total, count = self._measures.get(name, (0.0, 0))
            self._measures[name] = total + result.score, count + 1

    def _add_undecided(self, result: TestResult) -> None:
        super()._add_undecided(result)
        self.add_reason(result.name, result.explanation)

    def add_reason(self, name: str, reason: str) -> None:
        """Count why a result of a name is undecided."""
        self.reasons.setdefault(name, Reasons()).add(reason)

    def _add_generated(self, generated: GeneratedData) -> None:
        first, tokens = generated.first_token_ms, generated.tokens
        self.add_answer(generated.latency_ms, first, *((tokens.input, tokens.output) if tokens else (None, None)))

    def add_answer(
        self, latency_ms: float | None, first_token_ms: float | None, tokens_in: int | None, tokens_out: int | None
    ) -> None:
        """Count an answer; None for what is not known of it."""
        self.answers += 1
        if latency_ms is not None:
            self.latencies.append(latency_ms)
        if first_token_ms is not None:
            self.first_tokens.append(first_token_ms)
        if tokens_in is None and tokens_out is None:
            return
        self.told_tokens += 1
        self._input = _sum(self._input, tokens_in)
        self._output = _sum(self._output, tokens_out)

    def add_spent(self, spent: tuple[Spent, ...], answers: int) -> None:
        """Count what a case result cost, which has a number of answers."""
        if not spent:
            # Most agents report no tokens.
            self._unreported += answers
            return
        self._spent = merged((*self._spent, *spent))
        if not any(row.role == "agent" for row in spent):
            self._unreported += answers

    @property
    def spent(self) -> tuple[Spent, ...]:
        """Return what the results cost, a row for each role and model; answers that say nothing have no price."""
        unreported = Spent("agent", replies=self._unreported, unknown=self._unreported)
        return merged((*self._spent, unreported)) if self._unreported else self._spent

    @property
    def tokens(self) -> Tokens | None:
        """Return the sums over the answers that report tokens; None if none does."""
        return Tokens(self._input, self._output) if self.told_tokens else None

    def measures(self) -> tuple[Measure, ...]:
        """Return the means of measured results, in the order of their first results."""
        return tuple(Measure(name, total / count, count) for name, (total, count) in self._measures.items())

    def functions(self) -> tuple[Measure, ...]:
        """Return the shares of results that passed, of each function that judges answers, in the order of the first."""
        return tuple(Measure(name, passed / count, count) for name, (passed, count) in self._functions.items())

    def judged_by_model(self) -> tuple[CaseCounts, ...]:
        """Return how many answers to each case a language model passed and failed; empty if it was not checked."""
        judged = self._by_judge.items()
        return tuple(CaseCounts(number, "", times[_PASS], times[Verdict.FAILURE]) for number, times in judged)

    def cases(self) -> Iterator[CaseCounts]:
        """Yield the counts of each case, in order of number."""
        for number, known in sorted(self._counts.items()):
            counts, averaged = known.copy(), self._averaged.get(number)
            if averaged:
                verdict = averaged.verdict()
                counts[_INDEX[verdict]] += averaged.iterations
                counts[_PARTLY] += averaged.partial if verdict is _PASS else 0
            passed, failed, errors, undecided, partly_judged = counts
            asked, label = self._utterances[number], self._labels[number]
            quarantined = self.quarantined.get(number)
            yield CaseCounts(
                *(number, label or asked, passed, failed, errors, undecided, averaged is not None),
                checks=self._checks.get(number, ""),
                asked=asked if label else "",
                partly_judged=partly_judged,
                quarantined=quarantined.verdicts.total() if quarantined else 0,
            )


def _asked(case: CaseResult) -> str:
    return " / ".join((*(turn.utterance for turn in case.earlier), case.utterance))


def _sum(total: int | None, value: int | None) -> int | None:
    return total if value is None else (total or 0) + value
