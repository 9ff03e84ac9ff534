"""Match the cases of a test before and now, and say how each changed; `gate` tests what is more than chance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalmeta.engine.matching import pair_cases
from evalmeta.engine.significance import Table
from evalmeta.model.comparison import CaseComparison, Comparison, Standing
from evalmeta.model.statistics import RunCounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from evalmeta.model.statistics import CaseCounts


@dataclass(frozen=True, slots=True)
class ComparedTest:
    """The results of one test before and now.

    Attributes:
        labels: the names of the baseline and of the run.
        partial: whether the earlier run, and this run, only sent some of their cases; cases with numbers that this run
            did not send are ignored, and those that the earlier run did not send are new.
        again: the answers to cases that were asked again, by number.
        failing_runs: in how many runs in a row, right before this one, a case failed all answers, by number.
        subject: the agent that answered.
    """

    name: str
    labels: tuple[str, str]
    before: Sequence[CaseCounts]
    after: Sequence[CaseCounts]
    partial: tuple[bool, bool] = (False, False)
    again: Mapping[int, CaseCounts] = field(default_factory=dict)
    failing_runs: Mapping[int, int] = field(default_factory=dict)
    subject: str = ""


def match(test: ComparedTest) -> Comparison:
    """Return a test's cases before and now with their standings, which no statistics have changed yet.

    Cases in quarantine are left out.
    """
    after = test.after
    before, not_asked = _without_unsent(test.before, after, test.partial)
    cases = []
    for old, new in pair_cases(before, after):
        if any(case and case.quarantined for case in (old, new)):
            continue
        case = new or old
        number, utterance = (case.number, case.utterance) if case else (0, "")
        # The number of a removed case may be that of another case now.
        again = test.again.get(number) if new else None
        cases.append(CaseComparison(_standing(old, new), number, utterance, old, new, again=again))
    runs = max((len(case.by_run) for case in before), default=1)
    return Comparison(test.name, *test.labels, tuple(cases), None, not_asked, is_uniform=_is_uniform(cases), runs=runs)


def _without_unsent(
    before: Sequence[CaseCounts], after: Sequence[CaseCounts], partial: tuple[bool, bool]
) -> tuple[Sequence[CaseCounts], tuple[int, int]]:
    """Return the baseline without the cases that a partial run did not send now, and how many each run did not send."""
    if not any(partial):
        return before, (0, 0)
    pairs = list(pair_cases(before, after))
    new = {now.number for old, now in pairs if now and not old} - {case.number for case in before}
    gone = {old.number for old, now in pairs if old and not now} - {case.number for case in after}
    gone = gone if partial[1] else set()
    kept = [case for case in before if case.number not in gone]
    return kept, (len(new) if partial[0] else 0, len(gone))


def _standing(before: CaseCounts | None, after: CaseCounts | None) -> Standing:
    if before is None or after is None:
        return Standing.NEW if before is None else Standing.GONE
    if after.has_mostly_errors:
        return Standing.ERROR
    if before.passed and not after.decided and after.undecided:
        return Standing.UNJUDGED
    if not (before.decided and after.decided):
        has_error = any(not side.decided and side.errors for side in (before, after))
        return Standing.ERROR if has_error else Standing.UNDECIDED
    return _decided(before, after)


def _decided(before: CaseCounts, after: CaseCounts) -> Standing:
    if not after.passed:
        return Standing.SUSPECT if before.passed else Standing.STILL_FAILING
    if after.failed and before.passed:
        return Standing.FLAKY if before.failed else Standing.FLAKY_NOW
    if before.passes:
        return Standing.STILL_PASSING
    return Standing.MAYBE_FIXED if after.passes else Standing.STILL_FAILING


def differs_within_a_run(cases: Iterable[CaseComparison]) -> bool:
    """Return whether some answers to a case passed and others failed in a run, those after asking again included."""
    return any(run.passed and run.failed for case in cases for run in _runs(case))


def _runs(case: CaseComparison) -> Iterator[RunCounts]:
    if case.before is not None:
        yield from case.before.by_run
    if case.after is not None:
        first, again = case.after.by_run[0], case.again
        if again is None:
            yield first
        else:
            yield RunCounts(first.passed + again.passed, first.failed + again.failed)


def _is_uniform(cases: Sequence[CaseComparison]) -> bool:
    """Return whether runs have several answers to a case, but these never differ: then a run counts as one answer."""
    sides = [side for case in cases for side in (case.before, case.after) if side is not None]
    has_several = any(run.decided > 1 for side in sides for run in side.by_run)
    return has_several and not differs_within_a_run(cases)


def tables_of(comparison: Comparison) -> list[Table | None]:
    """Return the observations of each case before and now; None for a case that was not decided on both sides.

    Iterations that are averaged are one observation, and so are those that never differ within a run.
    """
    return [_table(case, is_uniform=comparison.is_uniform) for case in comparison.cases]


def _table(case: CaseComparison, *, is_uniform: bool) -> Table | None:
    before, after = case.before, case.after
    if case.standing is Standing.ERROR or before is None or after is None or not (before.decided and after.decided):
        return None
    if not is_uniform and not (before.is_averaged or after.is_averaged):
        return Table(before.passed, before.failed, after.passed, after.failed)
    return Table(*before.observed_runs, *after.observed_runs)
