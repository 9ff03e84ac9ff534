"""What changed in the tests since an earlier state, why, and by whose fault, as values."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from evalmeta.model.evaluation import all_tags

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.comparison import CaseComparison
    from evalmeta.model.run import CaseResult
    from evalmeta.model.run_options import Origin


class Fault(StrEnum):
    """Whose fault it is that a case does not pass any more; the first that fits counts.

    TEST: the case expects something else, another agent is tested, another rater judges or with another prompt, or
    evalmeta cannot run the case. INFRASTRUCTURE: the agent crashed, was not reached or did not answer. JUDGE: a rater
    failed, or judges the same answer otherwise than before. AGENT: the answers became worse.
    """

    TEST = "test"
    INFRASTRUCTURE = "infrastructure"
    JUDGE = "judge"
    AGENT = "agent"


class Moment(NamedTuple):
    """A run, when it started, in seconds since the epoch, and its commit; unknown texts are empty.

    `is_clean` says whether the tracked files were known to be those of the commit.
    """

    run_id: str
    org_url: str
    started: float
    branch: str
    revision: str
    subject: str
    parent: str
    is_clean: bool

    @classmethod
    def of(cls, run_id: str, started: float, origin: Origin, *, org_url: str = "") -> Moment:
        """Return the moment of a run with this origin."""
        commit = origin.revision, origin.subject, origin.parent, origin.is_clean
        return cls(run_id, org_url, started, origin.branch, *commit)


class Onset(NamedTuple):
    """Since when a case does not pass.

    Attributes:
        first: the first of the runs in a row in which it did not pass.
        before: the run before that one; None if there is none whose cases can be compared.
        runs: the number of runs in a row.
    """

    first: Moment
    before: Moment | None
    runs: int

    @property
    def is_one_commit(self) -> bool:
        """Return whether no other commit can have changed the case, and no change that was not committed."""
        return self.follows_parent and bool(self.before and self.before.is_clean and self.first.is_clean)

    @property
    def follows_parent(self) -> bool:
        """Return whether the run before was of the commit before."""
        return bool(self.before and self.before.revision and self.before.revision == self.first.parent)


@dataclass(frozen=True, slots=True)
class ChangedCase:
    """A case that changed.

    Attributes:
        test: the name of the test.
        now: the run with its newest result, and `before` the run that it is compared with; None for a baseline.
        result: its newest result; the first that did not pass, if there are several.
        reason: why it does not pass, on one line; empty if it passes.
        badge: what kind of fault it is, in a few words, such as `agent crash`.
        onset: since when it does not pass; None if it passes.
    """

    test: str
    comparison: CaseComparison
    now: Moment
    before: Moment | None
    result: CaseResult
    reason: str = ""
    fault: Fault | None = None
    badge: str = ""
    onset: Onset | None = None


class Cause(NamedTuple):
    """Cases that do not pass for the same reason.

    `text` is the reason; numbers, ids, quoted texts and names in which the reasons differ are `…`.
    """

    text: str
    fault: Fault | None
    badge: str
    cases: tuple[ChangedCase, ...]

    @property
    def onset(self) -> Onset | None:
        """Return since when the first of the cases does not pass."""
        known = [case.onset for case in self.cases if case.onset]
        return min(known, key=lambda onset: onset.first.started, default=None)


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed in all tests.

    Attributes:
        base: what the tests are compared with, in words, such as `the last runs before 28 November 2026`.
        since: when the newest of the runs started that they are compared with; None for a baseline, or without any.
        newest: when the newest run started; None if there is none.
        commits: the commits that were tested since then, the oldest first.
        unknown_commits: the number of runs since then whose commit is not known.
        broken: the cases that broke, and those that passed and end in errors now, by cause, the most frequent first.
        suspects: the cases of which chance may be the reason, by cause.
        fixed: the cases that pass again.
        new: the first of the cases that do not pass and were never judged before; `new_cases` is their number.
        still: the number of cases that do not pass, as before.
        otherwise: the number of cases that failed before, and now end in errors or are not judged.
        compared: the names of the compared tests.
        not_compared: the names of the others, and runs of some cases that are left out, with the reason.
        branches: the branches of the newest results, with the number of tests, the most frequent first; empty if a
            branch is not known.
    """

    base: str
    since: float | None = None
    newest: float | None = None
    commits: tuple[Moment, ...] = ()
    unknown_commits: int = 0
    broken: tuple[Cause, ...] = ()
    suspects: tuple[Cause, ...] = ()
    fixed: tuple[ChangedCase, ...] = ()
    new: tuple[ChangedCase, ...] = ()
    new_cases: int = 0
    still: int = 0
    otherwise: int = 0
    compared: tuple[str, ...] = ()
    not_compared: tuple[tuple[str, str], ...] = ()
    branches: tuple[tuple[str, int], ...] = ()

    @property
    def known(self) -> list[ChangedCase]:
        """Return the cases whose results are known: all but those that are only counted."""
        causes = (*self.broken, *self.suspects)
        return [*(case for cause in causes for case in cause.cases), *self.fixed, *self.new]

    @property
    def worse(self) -> list[ChangedCase]:
        """Return those of the known cases that do not pass."""
        causes = (*self.broken, *self.suspects)
        return [*(case for cause in causes for case in cause.cases), *self.new]

    def of_tag(self, tag: str) -> Changes:
        """Return only the cases that had a tag; of new cases, those among the first, and none that are only counted."""
        broken, suspects = (
            tuple(cause._replace(cases=cases) for cause in group if (cases := _with_tag(cause.cases, tag)))
            for group in (self.broken, self.suspects)
        )
        new = _with_tag(self.new, tag)
        return replace(
            self,
            broken=broken,
            suspects=suspects,
            fixed=_with_tag(self.fixed, tag),
            new=new,
            new_cases=len(new),
            still=0,
            otherwise=0,
        )

    @property
    def faults(self) -> Counter[Fault]:
        """Return the number of broken cases by fault."""
        return Counter(case.fault for cause in self.broken for case in cause.cases if case.fault)

    @property
    def broken_cases(self) -> int:
        """Return the number of broken cases."""
        return sum(len(cause.cases) for cause in self.broken)

    @property
    def suspect_cases(self) -> int:
        """Return the number of suspect cases."""
        return sum(len(cause.cases) for cause in self.suspects)


def _with_tag(cases: Iterable[ChangedCase], tag: str) -> tuple[ChangedCase, ...]:
    return tuple(case for case in cases if tag in all_tags(case.result.tags, case.result.metadata))
