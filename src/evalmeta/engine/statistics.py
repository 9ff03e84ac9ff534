"""The statistics of a run, with intervals and percentiles.

Source of the percentiles: R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American
Statistician 50 (1996), definition 1.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING

from evalmeta.engine.intervals import clustered, corrected, pass_at_k, wilson
from evalmeta.model.statistics import CaseCounts, Interval, Latency, RunStatistics
from evalmeta.model.tally import JUDGE, detail

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.run import CaseResult, RunOptions
    from evalmeta.model.tally import DetailedTally


def collect(cases: Iterable[CaseResult], options: RunOptions) -> RunStatistics:
    """Return the statistics of case results, in one pass; with `undecided="fail"`, undecided cases have failed."""
    return statistics_of(detail(cases, options))


def observations(cases: Iterable[CaseResult]) -> Iterator[CaseResult]:
    """Yield case results without those that repeat an earlier one of a case: the same answer, and a model's same words.

    A stored rating, which another iteration with the same answer reuses, is one observation of the judge, not several.
    """
    seen: set[int] = set()
    for case in cases:
        if any(result.rater and result.rater.startswith(JUDGE) for result in case.results):
            turns = (*(turn.generated for turn in case.earlier), case.generated)
            answers = tuple(generated.outcome for generated in turns if generated)
            words = tuple((result.name, result.turn, result.verdict, result.explanation) for result in case.results)
            key = hash((case.number, answers, words))
            if key in seen:
                continue
            seen.add(key)
        yield case


def statistics_of(tally: DetailedTally) -> RunStatistics:
    """Return the statistics of the case results that were counted."""
    cases, latencies = tuple(tally.cases()), array("d", sorted(tally.latencies))
    return RunStatistics(
        cases=cases,
        intervals=tuple(None if _is_one_observation(case) else _interval(case.passed, case.decided) for case in cases),
        interval=None if any(map(_is_one_observation, cases)) else clustered(cases),
        latency=Latency(*(percentile(latencies, share) for share in (0.5, 0.9, 0.95, 0.99))) if latencies else None,
        timed=len(latencies),
        tokens=tally.tokens,
        answers=tally.answers,
        told_tokens=tally.told_tokens,
        measures=tally.measures(),
        pass_at=pass_at_k(cases),
        corrected=corrected(tally.judged_by_model(), tally.check) if tally.check else None,
    )


def _is_one_observation(case: CaseCounts) -> bool:
    """Return whether several iterations are averaged to one observation, which has no interval."""
    return case.is_averaged and case.decided > 1


def _interval(passed: int, decided: int) -> Interval | None:
    return wilson(passed, decided) if decided else None


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile of sorted numbers: the first that `share` of them, 0 to 1, do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]
