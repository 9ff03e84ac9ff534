"""What reports must know of all case results before they write the first; collected in one pass, in little memory."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from evalmeta.model.aggregation import verdict_in
from evalmeta.model.run import Verdict
from evalmeta.report.org_checks import difference_text
from evalmeta.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.run import CaseResult, Run


_NO_REASON: Final = "no rater could judge it"
DETAILS: Final = re.compile(r"[:;] ")
"""What separates a reason from its details."""


class Reasons:
    """Why results of one name are undecided; reasons that differ only in their details are one reason."""

    __slots__ = ("_counts", "_texts")

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._texts: dict[str, str] = {}

    def add(self, reason: str) -> None:
        """Count a reason."""
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


@dataclass(slots=True)
class Facts:
    """The counts of a run's case results.

    Attributes:
        verdicts: the number of case results by verdict, as the run's summary counts them.
        numbers: in how many iterations each case has a result.
        failed: in how many iterations each case failed, by case number; `broken` is the same for errors.
        ended: the end of the last case; None if there are no cases.
        partly_judged: the number of case results that passed and have undecided results.
        has_results: whether a case has results; `has_judged`, whether one of them is not only measured.
        reasons: why results are undecided, by name.
        differences: each result that another org and evalmeta judge differently, as text.
    """

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    numbers: Counter[int] = field(default_factory=Counter)
    failed: Counter[int] = field(default_factory=Counter)
    broken: Counter[int] = field(default_factory=Counter)
    ended: float | None = None
    partly_judged: int = 0
    has_results: bool = False
    has_judged: bool = False
    reasons: dict[str, Reasons] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)

    def add(self, case: CaseResult, verdict: Verdict, *, is_repeated: bool = False) -> None:
        """Count a case result with the verdict that the summary counts; `is_repeated`: the run has iterations."""
        self.verdicts[verdict] += 1
        self.numbers[case.number] += 1
        if verdict is Verdict.FAILURE:
            self.failed[case.number] += 1
        elif verdict is Verdict.ERROR:
            self.broken[case.number] += 1
        self.ended = case.ended if self.ended is None else max(self.ended, case.ended)
        self.has_results = self.has_results or bool(case.results)
        is_partly_judged = False
        for result in case.results:
            if result.verdicts and result.verdicts.differ:
                self.differences.append(difference_text(case, result, is_repeated=is_repeated))
            if result.is_measured:
                continue
            self.has_judged = True
            if result.verdict is Verdict.UNDECIDED:
                is_partly_judged = verdict is Verdict.PASS
                reason = one_line(result.explanation) or _NO_REASON
                self.reasons.setdefault(result.name, Reasons()).add(reason)
        self.partly_judged += is_partly_judged

    def reasons_of(self, name: str, number: int) -> Counter[str]:
        """Return why the `number` undecided results of a name are undecided."""
        found = self.reasons.get(name)
        # Results that were counted and not kept have no reasons.
        return found.counts() if found else Counter({_NO_REASON: number})


def collect_facts(run: Run, averaged: Mapping[int, Verdict]) -> Facts:
    """Count the case results of a run in one pass; `averaged` comes from the run's summary."""
    facts = Facts()
    for case in run.cases:
        facts.add(case, verdict_in(averaged, case, run.options), is_repeated=run.options.iterations > 1)
    return facts
