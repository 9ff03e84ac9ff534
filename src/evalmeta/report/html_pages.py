"""Which cases an HTML page shows, case by case with all iterations; a large run is shown in part."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.case_order import by_number
from evalmeta.model.registry import type_of_run
from evalmeta.model.run import Verdict
from evalmeta.report.averages import averages_of
from evalmeta.report.details import all_utterances, exchanges
from evalmeta.report.report import known_failure, location, verdict_of
from evalmeta.report.text import SHOWN_CHARS, count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.run import Average, CaseResult
    from evalmeta.report.report import Report


WORST_FIRST: Final = (Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED, Verdict.PASS)
# Browsers open a page of this size within seconds.
_MAX_CHARS: Final = 32_000_000
# The markup around a case result and around one result of it.
_CASE_CHARS: Final = 700
_RESULT_CHARS: Final = 350
_BITS: Final = {verdict: 1 << place for place, verdict in enumerate(WORST_FIRST)}
_VERDICT_BITS: Final = len(WORST_FIRST)
_MIXED: Final = _BITS[Verdict.PASS] | _BITS[Verdict.FAILURE]


class ShownCase(NamedTuple):
    """One case in all iterations, the worst verdict of them, and why the baseline forgives its failures."""

    number: int
    verdict: Verdict
    utterance: str
    label: str
    location: str | None
    averages: tuple[Average, ...]
    forgiven: str
    iterations: list[tuple[CaseResult, Verdict]]

    @property
    def verdicts(self) -> list[Verdict]:
        """Return the verdict of each iteration."""
        return [verdict for _, verdict in self.iterations]

    @property
    def is_conversation(self) -> bool:
        """Return whether the case has several turns."""
        return any(case.earlier for case, _ in self.iterations)

    @property
    def is_mixed(self) -> bool:
        """Return whether the case passed in some iterations and failed in others."""
        return {Verdict.PASS, Verdict.FAILURE} <= {*self.verdicts}


@dataclass(slots=True)
class Page:
    """The part of an HTML page about one run.

    Attributes:
        report: the run.
        total: the number of its cases; `shown` of them are on the page.
        mixed: the number of shown cases that passed in some iterations and failed in others.
        verdicts: the number of shown cases by verdict; a case with several verdicts counts for each.
        left_out: the numbers of the cases that are not shown.
        left_out_passed: how many of these passed in all iterations.
    """

    report: Report
    total: int = 0
    shown: int = 0
    mixed: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    left_out: set[int] = field(default_factory=set)
    left_out_passed: int = 0

    def cases(self) -> Iterator[ShownCase]:
        """Yield the shown cases in order of number."""
        cases = by_number(self.report.run.cases)
        for number, same in groupby(cases, key=lambda case: case.number):
            if number not in self.left_out:
                yield _shown_case(self.report, number, list(same))

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
    pages = [Page(report) for report in reports]
    outlines = [_outline(report) for report in reports]
    left = _MAX_CHARS
    for passed in (False, True):
        for page, outline in zip(pages, outlines, strict=True):
            for number, entry in outline.items():
                verdicts, chars = entry & ((1 << _VERDICT_BITS) - 1), entry >> _VERDICT_BITS
                if (verdicts == _BITS[Verdict.PASS]) is passed:
                    left -= chars
                    _place(page, number, verdicts, is_shown=left >= 0)
    return pages


def _place(page: Page, number: int, verdicts: int, *, is_shown: bool) -> None:
    page.total += 1
    if not is_shown:
        page.left_out.add(number)
        page.left_out_passed += verdicts == _BITS[Verdict.PASS]
        return
    page.shown += 1
    page.mixed += verdicts & _MIXED == _MIXED
    page.verdicts.update(verdict for verdict, bit in _BITS.items() if verdicts & bit)


def _outline(report: Report) -> dict[int, int]:
    """Return the verdicts of each case as bits, and above them about how many characters it needs on the page."""
    found: dict[int, int] = {}
    for case in report.run.cases:
        known = found.get(case.number, 0)
        chars = (known >> _VERDICT_BITS) + _chars(case)
        verdicts = known & ((1 << _VERDICT_BITS) - 1) | _BITS[verdict_of(report, case)]
        found[case.number] = chars << _VERDICT_BITS | verdicts
    return found


def _chars(case: CaseResult) -> int:
    texts = [case.utterance, case.error or "", case.traceback, *(turn.utterance for turn in case.earlier)]
    texts += [each.generated.outcome for each in exchanges(case) if each.generated]
    for result in case.results:
        texts += (result.expected, result.actual, result.explanation, result.error or "")
    return _CASE_CHARS + _RESULT_CHARS * len(case.results) + sum(min(len(text), SHOWN_CHARS) for text in texts)


def _shown_case(report: Report, number: int, same: list[CaseResult]) -> ShownCase:
    iterations = [(case, verdict_of(report, case)) for case in same]
    first = same[0]
    averages = next(filter(None, (averages_of(report.summary, case) for case in same)), ())
    worst = min((verdict for _, verdict in iterations), key=WORST_FIRST.index)
    forgiven = next(filter(None, (known_failure(report, case) for case in same)), "")
    where = location(report, first)
    return ShownCase(number, worst, all_utterances(first), first.label, where, averages, forgiven, iterations)
