"""The statistics of a run: intervals of pass rates, pass@k and pass^k, percentiles.

Sources: R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American Statistician 50 (1996),
definition 1, for percentiles; E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
JASA 22 (1927); for several answers per case: E. L. Korn and B. I. Graubard, "Confidence intervals for proportions with
small expected number of positive counts estimated from survey data", Survey Methodology 24 (1998), with Wilson's
interval, and E. Miller, "Adding Error Bars to Evals" (arXiv:2411.00640, 2024), section 2.2, for standard errors
clustered by case; M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions" (1964), 26.7.5, for quantiles of
Student's t; M. Chen et al., "Evaluating Large Language Models Trained on Code" (arXiv:2107.03374, 2021), section 2.1,
for pass@k; S. Yao et al., "tau-bench" (arXiv:2406.12045, 2024), section 3, for pass^k; for the errors of judges: W. J.
Rogan and B. Gladen, "Estimating prevalence from the results of a screening test", American Journal of Epidemiology 107
(1978), Z. Lang and J. Reiczigel, "Confidence limits for prevalence of disease adjusted for estimated sensitivity and
specificity", Preventive Veterinary Medicine 113 (2014), and Lee et al., "How to correctly report LLM-as-a-judge
evaluations" (arXiv:2511.21140, 2025), who apply them to judges.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from evalmeta.model.statistics import CaseCounts, CorrectedRate, Interval, JudgeCheck, Latency, PassAtK, RunStatistics
from evalmeta.model.tally import JUDGE, DetailedTally, detail

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.run import CaseResult
    from evalmeta.model.run_options import RunOptions


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
    cases = tuple(tally.cases())
    return RunStatistics(
        cases=cases,
        intervals=tuple(
            wilson(case.passed, case.decided) if case.decided and not _is_one_observation(case) else None
            for case in cases
        ),
        interval=None if any(map(_is_one_observation, cases)) else clustered(cases),
        latency=percentiles(tally.latencies),
        timed=len(tally.latencies),
        tokens=tally.tokens,
        answers=tally.answers,
        told_tokens=tally.told_tokens,
        measures=tally.measures(),
        functions=tally.functions(),
        pass_at=pass_at_k(cases),
        corrected=corrected(tally.judged_by_model(), tally.check) if tally.check else None,
        spent=tally.spent,
        first_token=percentiles(tally.first_tokens),
    )


def _is_one_observation(case: CaseCounts) -> bool:
    """Return whether several iterations are averaged to one observation, which has no interval."""
    return case.is_averaged and case.decided > 1


def percentiles(milliseconds: Sequence[float]) -> Latency | None:
    """Return the percentiles of durations; None if there are none."""
    ordered = array("d", sorted(milliseconds))
    return Latency(*(percentile(ordered, share) for share in (0.5, 0.9, 0.95, 0.99))) if ordered else None


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the nearest-rank percentile of sorted numbers: the first that `share` of them, 0 to 1, do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]


_CONFIDENCE: Final = 0.95
# Student's t for one and two degrees of freedom, for which the series is not exact enough.
_FEW: Final = (12.7062047362, 4.3026527297)


@lru_cache(maxsize=1_000)
def wilson(passed: float, total: float, confidence: float = _CONFIDENCE) -> Interval:
    """Return Wilson's score interval of a proportion, without continuity correction; 0 to 1 if `total` is 0.

    With p = passed / total and z the normal quantile of the confidence, the centre is (p + z²/2n) / (1 + z²/n), and
    the interval extends z √(p(1-p)/n + z²/4n²) / (1 + z²/n) to both sides.
    """
    if not total:
        return Interval(0.0, 1.0)
    share, z = passed / total, _normal_quantile((1 + confidence) / 2)
    spread = z * math.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    centre, scale = share + z * z / (2 * total), 1 + z * z / total
    low = (centre - spread) / scale if passed else 0.0
    high = (centre + spread) / scale if passed < total else 1.0
    return Interval(max(0.0, min(low, share)), min(1.0, max(high, share)))


def clustered(cases: Iterable[CaseCounts]) -> Interval | None:
    """Return the interval of the pass rate over cases and iterations; None if nothing was decided.

    Answers to the same case are similar, so they count as fewer independent answers: between the number of cases and
    the number of answers, according to the standard error clustered by case. With one answer per case, or with a
    single case, this is Wilson's interval of the answers.
    """
    decided = [case for case in cases if case.decided]
    total = sum(counts.decided for counts in decided)
    if not total:
        return None
    share, size = sum(counts.passed for counts in decided) / total, _effective_size(decided, total)
    return wilson(share * size, size)


def _effective_size(cases: Sequence[CaseCounts], total: int) -> float:
    """Return the number of independent answers that would be as exact, reduced for few cases (Korn and Graubard)."""
    number, share = len(cases), sum(case.passed for case in cases) / total
    if number == 1:
        return float(total)
    squares = math.fsum((case.passed - share * case.decided) ** 2 for case in cases)
    variance = squares * number / (number - 1) / total**2
    # All passed or all failed says nothing about how similar the answers to one case are.
    size = min(total, share * (1 - share) / variance) if variance else total if 0 < share < 1 else number
    return max(number, size * (_t_quantile(total - 1) / _t_quantile(number - 1)) ** 2)


def corrected(cases: Iterable[CaseCounts], check: JudgeCheck) -> CorrectedRate | None:
    """Return the pass rate of judged answers without the judge's errors; None if its check cannot correct anything.

    With the observed rate p, the share s of right answers that the judge passed and the share t of wrong ones that it
    failed, the rate is (p + t - 1) / (s + t - 1), from 0 to 1 (Rogan and Gladen). A judge with s + t <= 1 is no better
    than chance. The interval is that of Lang and Reiczigel, with the effective number of independent answers.
    """
    decided = [case for case in cases if case.decided]
    answers = sum(counts.decided for counts in decided)
    informed = check.passed / check.right + check.failed / check.wrong - 1
    if not answers or informed <= 0:
        return None
    share = sum(counts.passed for counts in decided) / answers
    rate = (share + check.failed / check.wrong - 1) / informed
    interval = _corrected_interval(share, _effective_size(decided, answers), check, otherwise=rate)
    return CorrectedRate(share, answers, min(1.0, max(0.0, rate)), interval, check)


def _corrected_interval(share: float, size: float, check: JudgeCheck, *, otherwise: float) -> Interval:
    z = _normal_quantile((1 + _CONFIDENCE) / 2)
    number, positives, negatives = size + z * z, check.right + 2, check.wrong + 2
    p, s, t = (share * size + z * z / 2) / number, (check.passed + 1) / positives, (check.failed + 1) / negatives
    scale = s + t - 1
    if scale <= 0:
        return Interval(0.0, 1.0)
    rate = (p + t - 1) / scale
    of_right, of_wrong = s * (1 - s) / positives, t * (1 - t) / negatives
    shift = 2 * z * z * (rate * of_right - (1 - rate) * of_wrong)
    variance = p * (1 - p) / number + rate**2 * of_right + (1 - rate) ** 2 * of_wrong
    spread, centre, known = z * math.sqrt(variance) / scale, rate + shift, min(1.0, max(0.0, otherwise))
    return Interval(min(known, max(0.0, centre - spread)), max(known, min(1.0, centre + spread)))


def _t_quantile(freedom: int) -> float:
    """Return the quantile of Student's t distribution for a 95 % interval."""
    probability = (1 + _CONFIDENCE) / 2
    if freedom <= len(_FEW):
        return _FEW[freedom - 1]
    z = _normal_quantile(probability)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / freedom**power for power, term in enumerate(terms, 1))


def pass_at_k(cases: Iterable[CaseCounts]) -> tuple[PassAtK, ...]:
    """Return the unbiased estimates of pass@k and pass^k, for k from 1 to the largest number of decided answers.

    A case with n answers, c of them passed, has pass@k = 1 - C(n - c, k) / C(n, k) and pass^k = C(c, k) / C(n, k).
    Each k averages over the cases with at least k decided answers. Cases whose results are averaged over all
    iterations are left out.
    """
    counts = Counter((case.passed, case.failed) for case in cases if case.decided and not case.is_averaged)
    shares = dict.fromkeys(counts, (1.0, 1.0))
    return tuple(_pass_at(k, counts, shares) for k in range(1, 1 + max(map(sum, counts), default=0)))


def _pass_at(k: int, counts: Counter[tuple[int, int]], shares: dict[tuple[int, int], tuple[float, float]]) -> PassAtK:
    """Return the estimates for k; `shares` has the chances that k - 1 answers all pass or all fail, and is updated."""
    for passed, failed in [count for count in counts if sum(count) >= k]:
        all_pass, all_fail = shares[passed, failed]
        left = passed + failed - k + 1
        shares[passed, failed] = all_pass * max(0, passed - k + 1) / left, all_fail * max(0, failed - k + 1) / left
    counted = {verdicts: number for verdicts, number in counts.items() if sum(verdicts) >= k}
    cases = sum(counted.values())
    all_pass, all_fail = (
        math.fsum(number * shares[verdicts][which] for verdicts, number in counted.items()) / cases for which in (0, 1)
    )
    return PassAtK(k, 1 - all_fail, all_pass, cases)


def _normal_quantile(probability: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(probability)
