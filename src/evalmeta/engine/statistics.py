"""Statistics of runs: intervals, exact tests, percentiles, and the counts they are made from.

Sources: E. B. Wilson, "Probable inference, the law of succession, and statistical
inference", JASA 22 (1927), for the interval; Q. McNemar, "Note on the sampling error of
the difference between correlated proportions or percentages", Psychometrika 12 (1947),
in its exact form, the sign test of the discordant pairs; R. A. Fisher, "The Design of
Experiments" (1935), section 11, for the exact test; R. J. Hyndman and Y. Fan, "Sample
quantiles in statistical packages", The American Statistician 50 (1996), definition 1,
for percentiles.

Numbers in texts and JSON values, exactly: 0.1 is a tenth.

What passes: counts over cases and the decision about the whole run.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from decimal import Decimal, InvalidOperation
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

from evalmeta.model.aggregation import AveragedCases, counted_verdict
from evalmeta.model.generated_data import Tokens
from evalmeta.model.run import Summary, Verdict
from evalmeta.model.statistics import CaseCounts, Interval, Latency, Measure, RunStatistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.run import CaseResult, RunOptions


CONFIDENCE: Final = 0.95
_PLACES: Final = {Verdict.PASS: 0, Verdict.FAILURE: 1, Verdict.ERROR: 2, Verdict.UNDECIDED: 3}
# Tables that are as likely as the one that was seen differ in the last digits.
_AS_LIKELY: Final = 1 + 1e-7


def _name_of(case: CaseResult) -> str:
    """Gives what a case is known by: of several turns its label, or all that was asked."""
    if not case.earlier:
        return case.utterance
    return case.label or " / ".join((*(turn.utterance for turn in case.earlier), case.utterance))


def wilson(passed: int, total: int, confidence: float = CONFIDENCE) -> Interval:
    """Gives Wilson's score interval of a share, without continuity correction.

    With p = passed / total and z the normal quantile of the confidence: the centre is
    (p + z²/2n) / (1 + z²/n), and z √(p(1-p)/n + z²/4n²) / (1 + z²/n) lies to both sides.
    Of nothing, nothing is known: 0 to 1.
    """
    if not total:
        return Interval(0.0, 1.0)
    share, z = passed / total, NormalDist().inv_cdf((1 + confidence) / 2)
    spread = z * math.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    centre, scale = share + z * z / (2 * total), 1 + z * z / total
    low = (centre - spread) / scale if passed else 0.0
    high = (centre + spread) / scale if passed < total else 1.0
    return Interval(max(0.0, min(low, share)), min(1.0, max(high, share)))


def mcnemar(fixed: int, broken: int) -> float:
    """Gives the two-sided p-value of McNemar's exact test.

    Were a change in either direction as likely as in the other, `fixed` of the
    fixed + broken pairs that changed would be binomial with share 1/2; p is twice its
    smaller tail, 1 at most.
    """
    total = fixed + broken
    tail = math.fsum(
        math.exp(_log_choose(total, count) - total * math.log(2)) for count in range(min(fixed, broken) + 1)
    )
    return min(1.0, 2 * tail)


def fisher(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Gives the two-sided p-value of Fisher's exact test of two (passed, failed) counts.

    It adds up the hypergeometric probabilities of all tables with the same margins that
    are no likelier than the one that was seen.
    """
    passed, size, other = first[0] + second[0], sum(first), sum(second)
    all_tables = _log_choose(size + other, passed)

    def likelihood(count: int) -> float:
        return math.exp(_log_choose(size, count) + _log_choose(other, passed - count) - all_tables)

    seen = likelihood(first[0]) * _AS_LIKELY
    tables = map(likelihood, range(max(0, passed - other), min(passed, size) + 1))
    return min(1.0, math.fsum(each for each in tables if each <= seen))


def percentile(ordered: Sequence[float], share: float) -> float:
    """Gives the nearest-rank percentile of ordered numbers: the first that `share` of them, 0 to 1, do not exceed.

    It is always one of the numbers.

    Raises:
        IndexError: there are none.
    """
    return ordered[max(0, math.ceil(share * len(ordered) - 1e-9) - 1)]


class RunTally:
    """Counts case results as they come: four numbers for each case, eight bytes for each latency."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._counts: dict[int, list[int]] = {}
        self._averaged = AveragedCases(options)
        self._measures: dict[str, tuple[float, int]] = {}
        self._utterances: dict[int, str] = {}
        self._latencies = array("d")
        self._answers = self._told = 0
        self._input: int | None = None
        self._output: int | None = None

    def add(self, case: CaseResult) -> None:
        """Counts one case of one iteration; with `undecided="fail"` an undecided result makes it a failed one."""
        self._utterances.setdefault(case.number, _name_of(case))
        counts, verdict = self._counts.setdefault(case.number, [0, 0, 0, 0]), counted_verdict(case, self._options)
        if not self._averaged.take(case, verdict):
            counts[_PLACES[verdict]] += 1
        for turn in case.earlier:
            self._add_answer(turn.generated)
        if case.generated is not None:
            self._add_answer(case.generated)
        for result in case.results:
            if result.score is not None and result.is_measured:
                total, count = self._measures.get(result.name, (0.0, 0))
                self._measures[result.name] = total + result.score, count + 1

    def statistics(self) -> RunStatistics:
        """Gives the numbers so far."""
        cases = tuple(self._cases())
        passed, decided = sum(each.passed for each in cases), sum(each.decided for each in cases)
        return RunStatistics(
            cases=cases,
            intervals=tuple(None if _is_one(each) else _interval(each.passed, each.decided) for each in cases),
            interval=None if any(map(_is_one, cases)) else _interval(passed, decided),
            latency=_latency(self._latencies),
            timed=len(self._latencies),
            tokens=Tokens(self._input, self._output) if self._told else None,
            answers=self._answers,
            told_tokens=self._told,
            measures=tuple(Measure(name, total / count, count) for name, (total, count) in self._measures.items()),
        )

    def _cases(self) -> Iterator[CaseCounts]:
        verdicts, iterations = self._averaged.verdicts(), self._averaged.iterations()
        for number, counts in sorted(self._counts.items()):
            found = counts.copy()
            if number in verdicts:
                found[_PLACES[verdicts[number]]] += iterations[number]
            passed, failed, errors, undecided = found
            utterance, is_averaged = self._utterances[number], number in verdicts
            yield CaseCounts(number, utterance, passed, failed, errors, undecided, is_averaged)

    def _add_answer(self, generated: GeneratedData) -> None:
        self._answers += 1
        if generated.latency_ms is not None:
            self._latencies.append(generated.latency_ms)
        tokens = generated.tokens
        if tokens is None or (tokens.input is None and tokens.output is None):
            return
        self._told += 1
        self._input = _sum(self._input, tokens.input)
        self._output = _sum(self._output, tokens.output)


def collect(cases: Iterable[CaseResult], options: RunOptions) -> RunStatistics:
    """Gives the numbers of a run's cases, in one pass over them."""
    tally = RunTally(options)
    for case in cases:
        tally.add(case)
    return tally.statistics()


def _is_one(case: CaseCounts) -> bool:
    """Tells whether several iterations are one observation: they are averaged, so no interval follows from them."""
    return case.is_averaged and case.decided > 1


def _interval(passed: int, decided: int) -> Interval | None:
    return wilson(passed, decided) if decided else None


def _latency(measured: array[float]) -> Latency | None:
    if not measured:
        return None
    ordered = array("d", sorted(measured))
    return Latency(*(percentile(ordered, share) for share in (0.5, 0.9, 0.95, 0.99)))


def _sum(known: int | None, more: int | None) -> int | None:
    return known if more is None else (known or 0) + more


def _log_choose(total: int, count: int) -> float:
    """Gives the logarithm of a binomial coefficient, which itself may be beyond what a float holds."""
    return math.lgamma(total + 1) - math.lgamma(count + 1) - math.lgamma(total - count + 1)


_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def parse_number(value: JsonValue) -> Decimal | None:
    """Reads a JSON number or a text that is one (`10`, `-1.5`, `2e3`); None for all else.

    Booleans, NaN and infinities are no numbers.
    """
    if isinstance(value, str):
        return _from_text(value.strip())
    if isinstance(value, float):
        return Decimal(repr(value)) if math.isfinite(value) else None
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _from_text(text: str) -> Decimal | None:
    if not _NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text)
    except InvalidOperation:
        return None


_TOLERANCE: Final = 1e-9


class Tally:
    """Counts case results as they come; memory grows with the number of cases only where results are averaged."""

    def __init__(self, options: RunOptions) -> None:
        self._options = options
        self._verdicts: Counter[Verdict] = Counter()
        self._undecided: Counter[str] = Counter()
        self._averaged = AveragedCases(options)

    def add(self, case: CaseResult) -> None:
        """Counts one case; with `undecided="fail"` an undecided result makes it a failed one."""
        for result in case.results:
            if result.verdict is Verdict.UNDECIDED and not result.is_measured:
                self._undecided[result.name] += 1
        verdict = counted_verdict(case, self._options)
        if not self._averaged.take(case, verdict):
            self._verdicts[verdict] += 1

    def summary(self) -> Summary:
        """Gives the counts so far; a run succeeds when its pass rate is reached and nothing was an error."""
        verdicts, averaged = self._verdicts.copy(), self._averaged.verdicts()
        for number, iterations in self._averaged.iterations().items():
            verdicts[averaged[number]] += iterations
        passed, failed, errors = (verdicts[each] for each in (Verdict.PASS, Verdict.FAILURE, Verdict.ERROR))
        pass_rate = passed / (passed + failed) if passed + failed else None
        return Summary(
            total=verdicts.total(),
            passed=passed,
            failed=failed,
            errors=errors,
            undecided=verdicts[Verdict.UNDECIDED],
            pass_rate=pass_rate,
            min_pass_rate=self._options.min_pass_rate,
            succeeded=not errors and self._reaches(pass_rate, verdicts.total()),
            undecided_results=tuple(sorted(self._undecided.items())),
            averages=self._averaged.averages(),
            averaged=averaged,
        )

    def _reaches(self, pass_rate: float | None, total: int) -> bool:
        """Tells whether enough passed; a run in which nothing was decided has shown nothing."""
        if pass_rate is None:
            return not total
        return pass_rate >= self._options.min_pass_rate - _TOLERANCE


def summarise(cases: Iterable[CaseResult], options: RunOptions) -> Summary:
    """Counts cases, one pass over them, and decides whether they pass."""
    tally = Tally(options)
    for case in cases:
        tally.add(case)
    return tally.summary()
