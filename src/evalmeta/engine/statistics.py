"""The statistics of a run, with intervals and percentiles.

Source of the percentiles: R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American
Statistician 50 (1996), definition 1.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Final

from evalmeta.engine.intervals import clustered, pass_at_k, wilson
from evalmeta.model.aggregation import AveragedCases, counted_verdict
from evalmeta.model.generated_data import Tokens
from evalmeta.model.run import Verdict
from evalmeta.model.statistics import CaseCounts, Interval, Latency, Measure, RunStatistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.run import CaseResult, RunOptions

_INDEX: Final = {Verdict.PASS: 0, Verdict.FAILURE: 1, Verdict.ERROR: 2, Verdict.UNDECIDED: 3}


def collect(cases: Iterable[CaseResult], options: RunOptions) -> RunStatistics:
    """Return the statistics of case results, in one pass; with `undecided="fail"`, undecided cases have failed."""
    collector = _Collector(options)
    for case in cases:
        collector.add(case)
    return collector.statistics()


class _Collector:
    """Collect four numbers for each case, and eight bytes for each latency."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._counts: dict[int, list[int]] = {}
        self._averaged = AveragedCases(options)
        self._measures: dict[str, tuple[float, int]] = {}
        self._utterances: dict[int, str] = {}
        self._labels: dict[int, str] = {}
        self._checks: dict[int, str] = {}
        self._turns: dict[int, int] = {}
        self._latencies = array("d")
        self._answers = self._with_tokens = 0
        self._input: int | None = None
        self._output: int | None = None

    def add(self, case: CaseResult) -> None:
        # A case that ends in an error may have asked only its first turns.
        if len(case.earlier) > self._turns.get(case.number, -1):
            self._turns[case.number], self._utterances[case.number] = len(case.earlier), _asked(case)
            self._labels[case.number] = case.label if case.earlier else ""
        if case.checks:
            self._checks[case.number] = case.checks
        counts, verdict = self._counts.setdefault(case.number, [0, 0, 0, 0]), counted_verdict(case, self._options)
        if not self._averaged.add(case, verdict):
            counts[_INDEX[verdict]] += 1
        for turn in case.earlier:
            self._add_answer(turn.generated)
        if case.generated is not None:
            self._add_answer(case.generated)
        for result in case.results:
            if result.score is not None and result.is_measured:
                total, count = self._measures.get(result.name, (0.0, 0))
                self._measures[result.name] = total + result.score, count + 1

    def _add_answer(self, generated: GeneratedData) -> None:
        self._answers += 1
        if generated.latency_ms is not None:
            self._latencies.append(generated.latency_ms)
        tokens = generated.tokens
        if tokens is None or (tokens.input is None and tokens.output is None):
            return
        self._with_tokens += 1
        self._input = _sum(self._input, tokens.input)
        self._output = _sum(self._output, tokens.output)

    def statistics(self) -> RunStatistics:
        cases = tuple(self._cases())
        latencies = array("d", sorted(self._latencies))
        return RunStatistics(
            cases=cases,
            intervals=tuple(
                None if _is_one_observation(each) else _interval(each.passed, each.decided) for each in cases
            ),
            interval=None if any(map(_is_one_observation, cases)) else clustered(cases),
            latency=Latency(*(percentile(latencies, share) for share in (0.5, 0.9, 0.95, 0.99))) if latencies else None,
            timed=len(latencies),
            tokens=Tokens(self._input, self._output) if self._with_tokens else None,
            answers=self._answers,
            told_tokens=self._with_tokens,
            measures=tuple(Measure(name, total / count, count) for name, (total, count) in self._measures.items()),
            pass_at=pass_at_k(cases),
        )

    def _cases(self) -> Iterator[CaseCounts]:
        verdicts, iterations = self._averaged.verdicts(), self._averaged.iterations()
        for number, counts in sorted(self._counts.items()):
            found, is_averaged = counts.copy(), number in verdicts
            if is_averaged:
                found[_INDEX[verdicts[number]]] += iterations[number]
            passed, failed, errors, undecided = found
            asked, label = self._utterances[number], self._labels[number]
            yield CaseCounts(
                *(number, label or asked, passed, failed, errors, undecided, is_averaged),
                checks=self._checks.get(number, ""),
                asked=asked if label else "",
            )


def _asked(case: CaseResult) -> str:
    return " / ".join((*(turn.utterance for turn in case.earlier), case.utterance))


def _sum(total: int | None, value: int | None) -> int | None:
    return total if value is None else (total or 0) + value


def _is_one_observation(case: CaseCounts) -> bool:
    """Return whether several iterations are averaged to one observation, which has no interval."""
    return case.is_averaged and case.decided > 1


def _interval(passed: int, decided: int) -> Interval | None:
    return wilson(passed, decided) if decided else None


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile of sorted numbers: the first that `share` of them, 0 to 1, do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]
