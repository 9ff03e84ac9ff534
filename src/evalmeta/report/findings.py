"""What a report for people shows of a run's cases: the first that fail it in full, and the numbers of all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.aggregation import is_failing
from evalmeta.model.run import Verdict
from evalmeta.report.averages import missed_averages
from evalmeta.report.details import CaseGroups, numbered_case, why_not_passed
from evalmeta.report.report import VERDICT_WORDS, is_known, location, verdict_of, why_not_counted
from evalmeta.report.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalmeta.model.run import CaseResult
    from evalmeta.report.details import CaseGroup
    from evalmeta.report.report import Report


# The largest numbers of cases of a report, over all its runs.
_FAILING: Final = 50
_UNDECIDED: Final = 10
_WORD_CHARS: Final = len(VERDICT_WORDS[Verdict.FAILURE])


class Limits(NamedTuple):
    """How many cases that fail a run, and how many other undecided cases, are shown in full."""

    failing: int = _FAILING
    undecided: int = _UNDECIDED


class Findings(NamedTuple):
    """What is shown of a run.

    Attributes:
        groups: the cases in full, in order of the results.
        lines: one line for each of them that fails the run, in order of the numbers.
        failing: the numbers of the other cases that fail the run.
        undecided: the numbers of the other undecided cases.
        known: the numbers of the cases that fail as in the baseline.
    """

    groups: Sequence[CaseGroup]
    lines: Sequence[str]
    failing: Sequence[int]
    undecided: Sequence[int]
    known: Sequence[int] = ()


def limits_of(reports: Sequence[Report]) -> list[Limits]:
    """Return the limits of each run; the runs of a report share its limits."""
    counts = [report.summary for report in reports]
    judged = [count.judges_enough and count.pass_rate is not None for count in counts]
    failing = [
        count.failed + count.errors if enough else count.total for count, enough in zip(counts, judged, strict=True)
    ]
    undecided = [count.undecided if enough else 0 for count, enough in zip(counts, judged, strict=True)]
    return list(map(Limits, _shares(failing, _FAILING), _shares(undecided, _UNDECIDED)))


def _shares(needs: Sequence[int], total: int) -> list[int]:
    """Divide a total: small needs are met first, and all others get the same."""
    shares = [0] * len(needs)
    for done, place in enumerate(sorted(range(len(needs)), key=needs.__getitem__)):
        shares[place] = min(needs[place], total // (len(needs) - done))
        total -= shares[place]
    return shares


def has_failing(report: Report) -> bool:
    """Return whether a case of the run fails it, as in `Findings.lines`."""
    return any(_is_failing(report, case) for case in report.run.cases)


def _is_failing(report: Report, case: CaseResult) -> bool:
    return is_failing(report.summary, case, report.run.options) and not is_known(report, case)


def find(report: Report, limits: Limits) -> Findings:
    """Read the case results of a run once, and keep only what is shown."""
    groups = CaseGroups(report)
    failing, undecided, known = _First(limits.failing), _First(limits.undecided), set[int]()
    for case in report.run.cases:
        if case.is_quarantined:
            continue
        if is_known(report, case):
            known.add(case.number)
            continue
        if _is_failing(report, case):
            is_kept = failing.add(case)
        else:
            is_kept = verdict_of(report, case) is Verdict.UNDECIDED and undecided.add(case)
        if is_kept:
            groups.add(case)
    lines = [
        _line(report, case, groups.which(number, iterations))
        for number, (case, iterations) in sorted(failing.kept.items())
    ]
    return Findings(groups.groups(), lines, sorted(failing.others), sorted(undecided.others), sorted(known))


class _First:
    """The first result and the iterations of each of the first cases, and the numbers of the others."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.kept: dict[int, tuple[CaseResult, list[int]]] = {}
        self.others: set[int] = set()

    def add(self, case: CaseResult) -> bool:
        """Count the result if its case is one of the first, and return whether it is."""
        if case.number not in self.kept and len(self.kept) >= self._limit:
            self.others.add(case.number)
            return False
        self.kept.setdefault(case.number, (case, []))[1].append(case.iteration)
        return True


def _line(report: Report, case: CaseResult, which: str) -> str:
    """Return verdict and place of a case that fails its run, its number, and why it did not pass."""
    place = one_line(location(report, case) or report.run.definition, chars=400)
    verdict, why = verdict_of(report, case), why_not_passed(case, report.summary)
    if verdict is Verdict.PASS:
        # The run judged too few results.
        verdict = Verdict.UNDECIDED
    elif case.verdict in {Verdict.PASS, Verdict.UNDECIDED} and not missed_averages(report.summary, case):
        why = f"undecided: {why}" if verdict is Verdict.FAILURE else why
    if forgiven := why_not_counted(report, case):
        why = f"{one_line(forgiven)}: {why}"
    name = numbered_case(case, place=place)
    return f"{VERDICT_WORDS[verdict]:{_WORD_CHARS}} {place}  case {name}{which}  {why}"
