"""The results of a case together: its verdict, means over turns and iterations, and names to choose one of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, runtime_checkable

from evalmeta.model.checks import OWN_CHECKS
from evalmeta.model.expectations import canonical_name, expectation_kind
from evalmeta.model.run import DECIDED, NEEDS_MODEL, Average, CaseResult, Coverage, Run, Summary, TestResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.run_options import Deciding, RunOptions


_TOLERANCE: Final = 1e-9
# Before Python 3.12, `Verdict.ERROR` calls a function.
_PASS: Final = Verdict.PASS
_ERROR: Final = Verdict.ERROR


class Mean:
    """The running mean of results that are judged together.

    A result that could not be judged is ignored, but the mean cannot pass then. The mean must reach the threshold of
    the last result. If a result has passed below its threshold or failed above it, lower is better, and the mean must
    not exceed the threshold. Without any score, the mean fails if a result could not be judged: only ADK's metrics have
    means, and one that was asked for and not evaluated fails (google-adk 2.13, agent_evaluator.py).
    """

    __slots__ = ("_is_lower_better", "_total", "_was_unjudged", "count", "threshold")

    def __init__(self) -> None:
        self._total = 0.0
        self._is_lower_better = self._was_unjudged = False
        self.count = 0
        self.threshold = 0.0

    def add(self, result: TestResult) -> None:
        """Add a result; one without a threshold is ignored."""
        if result.threshold is None:
            return
        self.threshold = result.threshold
        if result.score is None:
            self._was_unjudged |= result.verdict is Verdict.UNDECIDED
            return
        self._total += result.score
        self.count += 1
        distance = result.score - result.threshold
        self._is_lower_better |= (distance if result.verdict is Verdict.FAILURE else -distance) > _TOLERANCE

    @property
    def score(self) -> float | None:
        """Return the mean; None if no result had a score."""
        return self._total / self.count if self.count else None

    @property
    def verdict(self) -> Verdict:
        """Return PASS or FAILURE; UNDECIDED if all results are errors, or a passing mean lacks a result."""
        if not self.count:
            return Verdict.FAILURE if self._was_unjudged else Verdict.UNDECIDED
        distance = self._total / self.count - self.threshold
        if (-distance if self._is_lower_better else distance) < -_TOLERANCE:
            return Verdict.FAILURE
        return Verdict.UNDECIDED if self._was_unjudged else Verdict.PASS


def means_of(results: Iterable[TestResult]) -> dict[str, Mean]:
    """Return the mean of every name whose results are averaged, in the order of their first results."""
    means: dict[str, Mean] = {}
    for result in results:
        if result.threshold is not None:
            means.setdefault(mean_name(result), Mean()).add(result)
    return means


def case_verdict(results: Iterable[TestResult]) -> Verdict:
    """Return the verdict of a case: the worst of FAILURE, ERROR, PASS and UNDECIDED, in this order.

    Results with a threshold count by their mean. Measured results cannot fail, so they cannot make a case pass either.
    A case without other results is UNDECIDED.
    """
    results = tuple(results)
    for result in results:
        if result.verdict is not _PASS or result.is_measured:
            break
    else:
        # The usual case takes little time.
        return _PASS if results else Verdict.UNDECIDED
    results = [result for result in results if not result.is_measured or result.verdict is _ERROR]
    verdicts = {result.verdict for result in results}
    if len(verdicts) == 1 and Verdict.UNDECIDED not in verdicts:
        return verdicts.pop()
    if any(result.threshold is not None for result in results):
        verdicts = {result.verdict for result in results if result.threshold is None or result.verdict is Verdict.ERROR}
        verdicts.update(mean.verdict for mean in means_of(results).values())
    return worst(verdicts)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of FAILURE, ERROR, PASS and UNDECIDED, in this order; UNDECIDED if there is none."""
    verdicts = set(verdicts)
    for verdict in (Verdict.FAILURE, Verdict.ERROR, Verdict.PASS):
        if verdict in verdicts:
            return verdict
    return Verdict.UNDECIDED


def counted_verdict(case: CaseResult, options: RunOptions) -> Verdict:
    """Return the verdict that is counted: with `undecided="fail"`, an undecided result makes a case fail."""
    if options.undecided != "fail" or case.verdict is Verdict.ERROR:
        return case.verdict
    undecided = case.verdict is Verdict.UNDECIDED or any(
        result.verdict is Verdict.UNDECIDED and not result.is_measured for result in case.results
    )
    return Verdict.FAILURE if undecided else case.verdict


def coverage_of(case: CaseResult) -> Coverage:
    """Return how many of a case's results were judged; see `Coverage`."""
    judged = total = outside = 0
    for result in case.results:
        if result.is_measured:
            continue
        total += 1
        if result.verdict in DECIDED:
            judged += 1
        elif result.verdict is _ERROR or result.explanation.startswith(NEEDS_MODEL) or _has_mean(result, case):
            outside += 1
    if case.error is not None:
        total, outside = total + 1, outside + 1
    if total:
        return Coverage(judged, total, outside)
    # Cases without results have a verdict of their own in evaluations of pytest.
    return Coverage(int(case.verdict in DECIDED), 1, int(case.verdict is _ERROR))


def _has_mean(result: TestResult, case: CaseResult) -> bool:
    """Return whether an undecided result of one turn is left out of a mean over the others, which is judged."""
    return bool(result.turn) and any(
        other.name == result.name and other.threshold is not None and other.verdict in DECIDED for other in case.results
    )


def mean_name(result: TestResult) -> str:
    """Return the name under which results are averaged: that of the function for checks by functions."""
    return result.label if result.label and result.name in OWN_CHECKS else result.name


def is_averaged(case: CaseResult) -> bool:
    """Return whether results of a case are averaged over all iterations, and so are not counted one by one."""
    # A loop takes half as long as `any`.
    for result in case.results:  # noqa: SIM110 - as above
        if result.threshold is not None:
            return True
    return False


class AveragedCase:
    """A case whose results are averaged over its iterations; in `partial` of these, some results were not judged."""

    __slots__ = ("_label", "_means", "_others", "iterations", "partial")

    def __init__(self, label: str) -> None:
        self._label = label
        self._means: dict[str, Mean] = {}
        self._others: set[Verdict] = set()
        self.iterations = self.partial = 0

    def add(self, case: CaseResult, options: RunOptions, *, is_partial: bool) -> None:
        """Add an iteration; `is_partial` says that some of its results were not judged."""
        self.iterations += 1
        self.partial += is_partial
        for result in case.results:
            if result.threshold is not None:
                self._means.setdefault(mean_name(result), Mean()).add(result)
            if options.undecided == "fail" and result.verdict is Verdict.UNDECIDED and not result.is_measured:
                self._others.add(Verdict.FAILURE)
            elif result.threshold is None or result.verdict is Verdict.ERROR:
                self._others.add(result.verdict)

    def verdict(self) -> Verdict:
        """Return the verdict of the case in all these iterations."""
        return worst({*self._others, *(mean.verdict for mean in self._means.values())})

    def averages(self, number: int) -> list[Average]:
        """Return the means by name; the case has this number."""
        return [
            Average(number, self._label, name, mean.score, mean.threshold, mean.count, mean.verdict)
            for name, mean in self._means.items()
        ]


def verdict_in(averaged: Mapping[int, Verdict], case: CaseResult, options: RunOptions) -> Verdict:
    """Return the verdict that a run counts for a case result; `averaged` comes from the run's summary."""
    verdict = counted_verdict(case, options)
    if verdict is Verdict.ERROR or not is_averaged(case):
        return verdict
    return averaged.get(case.number, verdict)


def is_failing(summary: Summary, case: CaseResult, options: RunOptions) -> bool:
    """Return whether a case result can be a reason why its run does not pass.

    Failures and errors are. Undecided results are if the run judged too few results, or no case at all. A case in
    quarantine never is.
    """
    if case.is_quarantined:
        return False
    verdict = verdict_in(summary.averaged, case, options)
    if verdict in {Verdict.FAILURE, Verdict.ERROR}:
        return True
    if summary.pass_rate is not None and summary.judges_enough:
        return False
    return verdict is Verdict.UNDECIDED or coverage_of(case).share < 1


def decided_by(run: Run, whose: Deciding) -> Run:
    """Return a run whose results count with the verdicts of the org, of evalmeta's rules, or the worse of both."""
    if not any(result.verdicts for case in run.cases for result in case.results) and whose == "org":
        return run
    return replace(run, cases=tuple(_decided(case, whose) for case in run.cases))


def _decided(case: CaseResult, whose: Deciding) -> CaseResult:
    if case.generated is None:
        return case
    results = tuple(_with_verdict(result, whose) for result in case.results)
    verdict = case.verdict if case.error else case_verdict(results)
    return case._replace(results=results, verdict=verdict)


def _with_verdict(result: TestResult, whose: Deciding) -> TestResult:
    both = result.verdicts
    if both is None:
        return result
    org, local = (both.org, both.org_explanation), (both.local, both.explanation)
    if whose == "both":
        # An org's verdict that cannot be checked counts on its own.
        verdict = worst({both.org, both.local} - {Verdict.UNDECIDED})
        whose = "org" if verdict in {both.org, Verdict.UNDECIDED} else "local"
    verdict, explanation = org if whose == "org" else local
    return result._replace(verdict=verdict, explanation=explanation)


@runtime_checkable
class NumberedCases(Protocol):
    """Case results that are not in memory and can be read in order of number."""

    def by_number(self) -> Iterator[CaseResult]:
        """Yield the case results in order of number and iteration."""


def by_number(cases: Sequence[CaseResult]) -> Iterator[CaseResult]:
    """Yield case results in order of number and iteration."""
    if isinstance(cases, NumberedCases):
        return cases.by_number()
    return iter(sorted(cases, key=lambda case: (case.number, case.iteration)))


class NamedResult(NamedTuple):
    """A result of a case."""

    name: str  # the name of its expectation; `NAME#1`, `NAME#2` and so on if several results of its turn have that name
    result: TestResult
    place: int  # its place among the results of its turn, from 0

    @property
    def position(self) -> tuple[int, int]:
        """Return its turn and its place in the turn, which the same result has in all iterations."""
        return self.result.turn, self.place

    @property
    def turn(self) -> int:
        """Return the judged turn, as `TestResult.turn`."""
        return self.result.turn


def named_results(case: CaseResult) -> list[NamedResult]:
    """Return the results of a case with names; no two results of a turn have the same name."""
    totals = Counter((result.turn, result.name) for result in case.results)
    places: Counter[int] = Counter()
    seen: Counter[tuple[int, str]] = Counter()
    named = []
    for result in case.results:
        key = result.turn, result.name
        seen[key] += 1
        named.append(
            NamedResult(f"{result.name}#{seen[key]}" if totals[key] > 1 else result.name, result, places[result.turn])
        )
        places[result.turn] += 1
    return named


def results_called(results: Iterable[NamedResult], text: str) -> list[NamedResult]:
    """Return the results with this name; if there are none, those with this label, alias or name of an expectation."""
    candidates = list(results)
    return [named_result for named_result in candidates if named_result.name == text] or [
        named_result for named_result in candidates if _is_called(named_result.result, text)
    ]


def shown_names(results: Iterable[NamedResult]) -> str:
    """Return the names of results for a message: the label of a result if no other result of its turn has it."""
    distinct = {result.position: result for result in results}.values()
    labels = Counter((named_result.turn, named_result.result.label) for named_result in distinct)
    return ", ".join(
        dict.fromkeys(
            _shown(named_result, labels[named_result.turn, named_result.result.label]) for named_result in distinct
        )
    )


def _shown(named: NamedResult, times: int) -> str:
    label = named.result.label
    if label is None:
        return named.name
    return label if times == 1 else f"{named.name} ({label})"


def _is_called(result: TestResult, text: str) -> bool:
    kind = expectation_kind(result.name)
    names = {result.name, canonical_name(result.name), result.label or result.name, kind.label if kind else ""}
    return text.casefold() in map(str.casefold, names) or canonical_name(text) == canonical_name(result.name)
