"""Which cases an HTML page shows, case by case with all iterations; a large run is shown in part."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.aggregation import by_number, coverage_of
from evalmeta.model.comparison import Standing
from evalmeta.model.registry import type_of_run
from evalmeta.model.run import WORST_FIRST, Average, CaseResult, Verdict
from evalmeta.report.details import Exchange, all_utterances, exchanges
from evalmeta.report.report import PARTLY, STATE_WORDS, Report
from evalmeta.report.results import averages_of
from evalmeta.report.summary import case_rates
from evalmeta.report.text import SHOWN_CHARS, count

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence


# Browsers open a page of this size within seconds.
_MAX_CHARS: Final = 32_000_000
# The markup around a case result and around one result of it.
_CASE_CHARS: Final = 700
_RESULT_CHARS: Final = 350
# How a case result counts: its verdict, or that it is partly judged.
_STATES: Final = (Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED, PARTLY, Verdict.PASS)
_BITS: Final = {state: 1 << place for place, state in enumerate(_STATES)}
# A result is undecided, whatever the verdict of the case is.
_UNDECIDED_RESULT: Final = 1 << len(_STATES)
_FLAGS: Final = len(_STATES) + 1
_ALL_STATES: Final = _UNDECIDED_RESULT - 1


_KNOWN: Final = "known failure"
_QUARANTINED: Final = "quarantined"
_MARKED: Final = (Standing.BROKEN, Standing.SUSPECT, Standing.FIXED, Standing.MAYBE_FIXED)


class SameAnswer(NamedTuple):
    """The iterations of a case with the same answer and results: the first, its verdict, and the numbers of all."""

    case: CaseResult
    verdict: Verdict
    iterations: tuple[int, ...]


class Choice(NamedTuple):
    """A choice of the filter: its value, its label, and the number of cases that it shows."""

    value: str
    label: str
    number: int


class ShownCase(NamedTuple):
    """One case in all iterations, the worst state of them, and why the baseline forgives its failures.

    `mark` says how the case stands to the baseline; empty if there is nothing to say.
    """

    number: int
    state: str
    utterance: str
    label: str
    location: str | None
    averages: tuple[Average, ...]
    forgiven: str
    mark: str
    iterations: list[tuple[CaseResult, Verdict]]

    @property
    def states(self) -> list[str]:
        """Return how each iteration counts."""
        return [_state(case, verdict) for case, verdict in self.iterations]

    @property
    def kinds(self) -> str:
        """Return the values of the filter's choices that show the case."""
        kinds = [state.lower() for state in self.states]
        kinds += ["undecided"] * any(_has_undecided(case) for case, _ in self.iterations)
        kinds += ["mixed"] * _is_mixed({*self.states})
        return " ".join([*dict.fromkeys(kinds), self.mark.replace(" ", "-")]).rstrip()

    @property
    def answers(self) -> list[SameAnswer]:
        """Return the iterations, the worst first; those with the same answer and the same results are one."""
        alike: dict[Hashable, list[tuple[CaseResult, Verdict]]] = {}
        for case, verdict in sorted(self.iterations, key=lambda judged: WORST_FIRST.index(judged[1])):
            alike.setdefault(_answer_key(case, verdict), []).append((case, verdict))
        return [SameAnswer(*same[0], tuple(case.iteration for case, _ in same)) for same in alike.values()]


@dataclass
class Page:
    """The part of an HTML page about one run.

    `outline` is that of `_outline`; `marks` say how cases stand to the baseline; the cases in `left_out` are not shown.
    """

    report: Report
    outline: dict[int, int]
    marks: dict[int, str]
    left_out: set[int] = field(default_factory=set)

    @property
    def total(self) -> int:
        """Return the number of cases of the run."""
        return len(self.outline)

    @property
    def shown(self) -> int:
        """Return the number of cases on the page."""
        return self.total - len(self.left_out)

    @cached_property
    def passed(self) -> int:
        """Return the number of shown cases that passed in all iterations, with all results judged."""
        return sum(map(_has_passed, self.outline.values())) - self.left_out_passed

    @property
    def left_out_passed(self) -> int:
        """Return how many of the cases that are not shown passed in all iterations."""
        return sum(_has_passed(self.outline[number]) for number in self.left_out)

    def kinds(self) -> Iterator[str]:
        """Yield what each shown case counts for in the filter: its states and its mark, `all`, and `mixed`."""
        for number, flags in self.outline.items():
            if number in self.left_out:
                continue
            yield "all"
            states = [state for state, bit in _BITS.items() if flags & bit]
            yield from dict.fromkeys([*states, *([Verdict.UNDECIDED] if flags & _UNDECIDED_RESULT else [])])
            if _is_mixed({*states}):
                yield "mixed"
            if number in self.marks:
                yield self.marks[number]

    def cases(self, *, passed: bool) -> Iterator[ShownCase]:
        """Yield those of the shown cases in order of number that passed in all iterations, or those that did not."""
        if not (self.passed if passed else self.shown - self.passed):
            return
        cases = by_number(self.report.run.cases)
        for number, same in groupby(cases, key=lambda case: case.number):
            iterations = [] if number in self.left_out else [(case, self.report.verdict_of(case)) for case in same]
            if iterations and all(_state(*iteration) == Verdict.PASS for iteration in iterations) is passed:
                yield _shown_case(self, number, iterations)

    def rates(self) -> dict[int, str]:
        """Return the pass rate of each case over its iterations, by number."""
        return {counts.number: rate for counts, rate in case_rates(self.report.run, self.report.statistics)}

    def remark(self) -> str:
        """Return which cases are left out, and why; empty if there are none."""
        if not self.left_out:
            return ""
        others = len(self.left_out) - self.left_out_passed
        what = f"{self.left_out_passed:,} that passed and {others:,} that did not"
        return f"To keep the page small, {len(self.left_out):,} of {count(self.total, 'case')} are left out: {what}."

    def command(self) -> str:
        """Return the command that shows all cases; empty if no org has the run."""
        run_id = self.report.run.id
        return "" if type_of_run(run_id) is None else f"evalmeta test results --job-id {run_id} --result-format jsonl"


def lay_out(reports: Sequence[Report]) -> list[Page]:
    """Choose what a page shows: everything, or as much as it can hold, cases that did not pass before all others."""
    pages = [Page(report, _outline(report), _marks(report)) for report in reports]
    left = _MAX_CHARS
    for passed in (False, True):
        for page in pages:
            for number, entry in page.outline.items():
                if _has_passed(entry) is passed:
                    left -= entry >> _FLAGS
                    if left < 0:
                        page.left_out.add(number)
    return pages


def choices(pages: Sequence[Page]) -> list[Choice]:
    """Return the choices of the filter over all runs of a page; marks of which there are none are left out."""
    words = {**STATE_WORDS, str(Verdict.UNDECIDED): "undecided results", PARTLY: "partly judged"}
    numbers = Counter(kind for page in pages for kind in page.kinds())
    offered = [Choice("all", "all", numbers["all"])]
    offered += [Choice(state.lower(), words[state].lower(), numbers[state]) for state in _STATES]
    if any(page.report.is_repeated for page in pages):
        offered.append(Choice("mixed", "mixed", numbers["mixed"]))
    marks = (mark for mark in (*_MARKED, _KNOWN, _QUARANTINED) if numbers[mark])
    return [*offered, *(Choice(mark.replace(" ", "-"), mark, numbers[mark]) for mark in marks)]


def _marks(report: Report) -> dict[int, str]:
    """Return which cases are in quarantine, and how the others stand to the baseline, by number."""
    quarantined = {
        number: _QUARANTINED for number, case in report.tally.quarantined.items() if not case.quarantine.has_ended
    }
    if report.baseline is None:
        return quarantined
    failed = report.times.failed
    known = {number: _KNOWN for number in report.baseline.known if number in failed}
    marked = (case for case in report.baseline.comparison.cases if case.standing in _MARKED)
    return known | {case.number: case.standing.value for case in marked} | quarantined


def _has_passed(entry: int) -> bool:
    """Return whether a case of an outline passed in all iterations, with all results judged."""
    return entry & _ALL_STATES == _BITS[Verdict.PASS]


def _outline(report: Report) -> dict[int, int]:
    """Return what a case counts for as bits, and above them about how many characters it needs on the page."""
    by_number: dict[int, int] = {}
    for case in report.run.cases:
        known = by_number.get(case.number, 0)
        flags = known & ((1 << _FLAGS) - 1) | _BITS[_state(case, report.verdict_of(case))]
        if _has_undecided(case):
            flags |= _UNDECIDED_RESULT
        by_number[case.number] = (known >> _FLAGS) + _chars(case) << _FLAGS | flags
    return by_number


def _state(case: CaseResult, verdict: Verdict) -> str:
    return PARTLY if verdict is Verdict.PASS and coverage_of(case).share < 1 else verdict


def _is_mixed(states: set[str]) -> bool:
    return Verdict.FAILURE in states and not states.isdisjoint((Verdict.PASS, PARTLY))


def _has_undecided(case: CaseResult) -> bool:
    return any(result.verdict is Verdict.UNDECIDED and not result.is_measured for result in case.results)


def _answer_key(case: CaseResult, verdict: Verdict) -> Hashable:
    """Return what is equal for iterations with the same answer; latencies and tokens do not count."""
    answers = [
        exchange.generated and (exchange.generated.outcome, exchange.generated.topic, _called(exchange))
        for exchange in exchanges(case)
    ]
    return repr((verdict, answers, case.results, case.error, case.traceback))


def _called(exchange: Exchange) -> list[Hashable]:
    actions = (exchange.generated.actions if exchange.generated else None) or ()
    return [repr((action.name, action.input, action.output)) for action in actions]


def _chars(case: CaseResult) -> int:
    texts = [case.utterance, case.error or "", case.traceback, *(turn.utterance for turn in case.earlier)]
    texts += [exchange.generated.outcome for exchange in exchanges(case) if exchange.generated]
    for result in case.results:
        texts += (result.expected, result.actual, result.explanation, result.error or "")
    return _CASE_CHARS + _RESULT_CHARS * len(case.results) + sum(min(len(text), SHOWN_CHARS) for text in texts)


def _shown_case(page: Page, number: int, iterations: list[tuple[CaseResult, Verdict]]) -> ShownCase:
    report, first = page.report, iterations[0][0]
    averages = next(filter(None, (averages_of(report.summary, case) for case, _ in iterations)), ())
    worst = min((_state(*iteration) for iteration in iterations), key=_STATES.index)
    forgiven = next(filter(None, (report.why_not_counted(case) for case, _ in iterations)), "")
    where, mark = report.location(first), page.marks.get(number, "")
    return ShownCase(number, worst, all_utterances(first), first.label, where, averages, forgiven, mark, iterations)
