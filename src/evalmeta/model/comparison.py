"""What is known of earlier runs, and the comparison of two runs, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from evalmeta.model.fingerprints import ChangesOfTest
from evalmeta.model.run_options import Setup

if TYPE_CHECKING:
    from evalmeta.model.statistics import CaseCounts


Change = Literal["worse", "better", "same"]

SIGNIFICANCE_LEVEL: Final = 0.05
"""The chance of a false alarm of a command, over all its tests, cases and kinds of alarm."""


class Standing(StrEnum):
    """The change of a case since the baseline.

    BROKEN: its pass rate fell significantly, or it passed before and failed all answers now, and again each time it was
    asked again. SUSPECT: it passed before and failed all answers now. UNJUDGED: it passed before, and no rater could
    judge it now. BACK: it was one of these, and passed when it was asked again. FLAKY_NOW: it always passed before, and
    passed and failed now. FLAKY: it passed and failed both before and now. FIXED: its pass rate rose significantly.
    MAYBE_FIXED: it failed and now passes, but chance could explain that. ERROR: it ended in errors in one of the runs,
    now in more iterations than it passed or failed. UNDECIDED: no rater judged it before or now.
    """

    BROKEN = "broken"
    SUSPECT = "suspect"
    UNJUDGED = "no longer judged"
    BACK = "back"
    FLAKY_NOW = "flaky now"
    FIXED = "fixed"
    MAYBE_FIXED = "maybe fixed"
    STILL_FAILING = "still failing"
    STILL_PASSING = "still passing"
    FLAKY = "flaky"
    NEW = "new"
    GONE = "gone"
    ERROR = "error"
    UNDECIDED = "undecided"


SUSPECTS: Final = (Standing.SUSPECT, Standing.UNJUDGED)
"""Cases that count only after they have been asked again."""


@dataclass(frozen=True, slots=True)
class CaseComparison:
    """One case before and after."""

    standing: Standing
    number: int  # the number now, or before if the case was removed
    utterance: str
    before: CaseCounts | None  # the counts before; None for a new case
    after: CaseCounts | None  # the counts now; None for a removed case
    # One-sided, for the change of its pass rate, corrected for everything that the command tests; None if there is only
    # one observation before and one now.
    p_value: float | None = None
    again: CaseCounts | None = None  # the counts of the answers after it was asked again; None if it was not
    # How many more answers must fail, and none pass, to show that a suspect case broke; None if none can show it.
    needed: int | None = None

    @property
    def change(self) -> Change:
        """Return how its pass rate changed; `same` if one of the runs did not decide it."""
        before, after = (None if side is None else side.pass_rate for side in (self.before, self.after))
        return "same" if before is None or after is None else change_of(before, after)

    @property
    def is_significant(self) -> bool:
        """Return whether its pass rate changed significantly."""
        return self.p_value is not None and self.p_value < SIGNIFICANCE_LEVEL

    @property
    def is_new_failure(self) -> bool:
        """Return whether the case fails, and was never judged before."""
        known = self.before is not None and self.before.passes is not None
        return not known and self.after is not None and self.after.passes is False

    @property
    def is_lost(self) -> bool:
        """Return whether the case passed before and now ends in errors."""
        if self.standing is not Standing.ERROR or self.before is None or self.after is None:
            return False
        return self.before.passes is True and not self.before.has_mostly_errors

    @property
    def is_unconfirmed(self) -> bool:
        """Return whether it is suspect, and some answers ended in errors when it was asked again."""
        return self.standing in SUSPECTS and self.again is not None and self.again.errors > 0

    @property
    def has_only_errors(self) -> bool:
        """Return whether it was asked again, and every answer ended in an error."""
        again = self.again
        return again is not None and again.errors > 0 and not (again.decided or again.undecided)

    @property
    def left_to_ask(self) -> int:
        """Return how many more answers must fail to show that a suspect case broke; 0 if no answer can."""
        if self.standing not in SUSPECTS or self.needed is None:
            return 0
        return max(0, self.needed - (self.again.decided + self.again.undecided if self.again else 0))


@dataclass(frozen=True, slots=True)
class Significance:
    """The significance of the change of several cases together."""

    test: Literal["permutation", "fisher"]  # of the same cases before and after, or of different ones
    p_value: float  # the one-sided p-value, corrected for everything that the command tests
    cases: int  # the number of tested cases; of both runs together for `fisher`
    rates: tuple[float, float]  # the mean pass rate of these cases, before and after, 0 to 1

    @property
    def change(self) -> Change:
        """Return how the pass rate changed."""
        return change_of(*self.rates)

    @property
    def is_significant(self) -> bool:
        """Return whether the difference is significant."""
        return self.p_value < SIGNIFICANCE_LEVEL

    @property
    def is_significantly(self) -> Change:
        """Return how the pass rate changed significantly; `same` if it did not."""
        return self.change if self.is_significant else "same"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A test before and after."""

    name: str
    before: str  # the id of the earlier run, or a baseline; `after` is the id of the run
    after: str
    cases: tuple[CaseComparison, ...]  # in order of number, removed cases last
    significance: Significance | None = None  # None if one run decided nothing
    not_asked: tuple[int, int] = (0, 0)  # how many cases the earlier run, and this run, did not run
    changes: ChangesOfTest = field(default_factory=ChangesOfTest)  # what changed in the test itself
    is_uniform: bool = False  # whether answers never differed within a run, which counts as one answer then
    # Whether answers are known to differ between runs and not within one: failing again in the same run shows nothing.
    is_alike: bool = False
    # Whether a case is broken unless answers differ only between runs, which a baseline of one run cannot show.
    may_be_noise: bool = False
    runs: int = 1  # the number of runs in the baseline, the most of any case
    # The numbers of passing cases to ask again, and how often, to tell whether answers differ within a run.
    probes: tuple[tuple[int, int], ...] = ()

    def of(self, *standings: Standing) -> tuple[CaseComparison, ...]:
        """Return the cases with one of these standings."""
        return tuple(case for case in self.cases if case.standing in standings)

    @property
    def suspects(self) -> tuple[CaseComparison, ...]:
        """Return the cases that passed before, did not pass now, and are not known to be broken."""
        return self.of(*SUSPECTS)

    @property
    def lost(self) -> tuple[CaseComparison, ...]:
        """Return the cases that passed before and now end in errors."""
        return tuple(case for case in self.cases if case.is_lost)

    @property
    def is_significantly(self) -> Change:
        """Return how all cases together changed significantly; `same` if they did not."""
        return self.significance.is_significantly if self.significance else "same"

    def is_regression(self, *, suspects_fail: bool = False) -> bool:
        """Return whether the test became worse.

        A broken case is a regression, and so are one that passed and now ends in errors, and a significant fall of all
        cases together. With `suspects_fail`, so is a suspect case.
        """
        if self.lost or self.of(Standing.BROKEN) or self.is_significantly == "worse":
            return True
        return suspects_fail and bool(self.suspects)


@dataclass(frozen=True, slots=True)
class SuiteComparison:
    """All tests of a command before and after."""

    tests: tuple[Comparison, ...] = ()
    significance: Significance | None = None  # of all cases; None if there is one test, or none was decided

    @property
    def is_significantly(self) -> Change:
        """Return how all tests together changed significantly; `same` if they did not, or there is only one test."""
        return self.significance.is_significantly if self.significance else "same"

    @property
    def suspects(self) -> tuple[CaseComparison, ...]:
        """Return the suspect cases of all tests."""
        return tuple(case for test in self.tests for case in test.suspects)


def change_of(before: float, after: float) -> Change:
    """Return how a pass rate changed."""
    if before == after:
        return "same"
    return "worse" if after < before else "better"


@dataclass(frozen=True, slots=True)
class KnownTest:
    """A test in a baseline."""

    cases: tuple[CaseCounts, ...]  # in order of number; their `runs` end with the latest run
    subject: str = ""  # the name of the agent
    options: str = ""  # the fingerprint of the options that decide what passes; empty if it is not known
    setup: Setup = field(default_factory=Setup)  # what answered and judged in the latest run


KnownTests: TypeAlias = Mapping[str, KnownTest]
"""The tests of a baseline by their names."""
