"""Runs and their results as values. Times are seconds since the epoch.

Iterations where an org knows none: several runs of one definition, joined into one.

How results are judged: what a project or a run can choose, and the profile of Salesforce's own grading.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from evalmeta import limits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.model.generated_data import GeneratedData


class RunStatus(StrEnum):
    """How far a run is (Testing API: NEW, IN_PROGRESS, COMPLETED, ERROR; TERMINATED when cancelled)."""

    NEW = "NEW"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    ERROR = "ERROR"
    TERMINATED = "TERMINATED"

    @property
    def is_over(self) -> bool:
        """Says whether nothing more will happen."""
        return self not in {RunStatus.NEW, RunStatus.IN_PROGRESS}


class Verdict(StrEnum):
    """What was decided about a result or a case.

    ERROR is infrastructure (the agent could not be asked, a scorer broke) and never a
    FAILURE; UNDECIDED means that nothing able to judge was there, and never counts as
    a PASS.
    """

    PASS = "PASS"  # noqa: S105 - the Testing API's own word, no password
    FAILURE = "FAILURE"
    ERROR = "ERROR"
    UNDECIDED = "UNDECIDED"


class TestResult(NamedTuple):
    """The judgement of one expectation.

    Attributes:
        name: the expectation's name, spelt as the definition spells it.
        score: the scorer's own scale: 1 or 0 for matches, 0 to 5 for ratings,
            milliseconds for latency; None when there is nothing to measure.
        explanation: why, in words a person can act on.
        detail: a finer score beside the verdict, such as the partial match of actions.
        rater: which rater judged, for what is rated.
        threshold: of results that are averaged: what the mean of their scores, over the turns of a case and
            all iterations, must reach. None for a result that counts by itself.
        turn: the turn that was judged, from 1, in a case of several; 0 in a case of one.
        is_measured: whether it tells a number and judges nothing; then it is UNDECIDED, and no open question.
    """

    name: str
    verdict: Verdict
    expected: str = ""
    actual: str = ""
    score: float | None = None
    explanation: str = ""
    label: str | None = None
    detail: float | None = None
    rater: str | None = None
    error: str | None = None
    threshold: float | None = None
    turn: int = 0
    is_measured: bool = False


# Its name begins as those of test classes do.
TestResult.__test__ = False  # type: ignore[attr-defined]


class EarlierTurn(NamedTuple):
    """A turn before the last of a case: what was asked, and what came back."""

    utterance: str
    generated: GeneratedData


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One case of one iteration: what was asked, what came back, how it was judged.

    Attributes:
        utterance: what was asked last.
        results: of all turns, in their order.
        generated: the answer to the last question that was asked; None when there is none.
        label: what the case's file calls it.
        earlier: the turns before the last that was asked.
    """

    number: int
    iteration: int
    utterance: str
    verdict: Verdict
    started: float
    ended: float
    results: tuple[TestResult, ...] = ()
    generated: GeneratedData | None = None
    error: str | None = None
    label: str = ""
    earlier: tuple[EarlierTurn, ...] = ()


Undecided = Literal["ignore", "fail"]


@dataclass(frozen=True, slots=True)
class Scoring:
    """How results are judged.

    Attributes:
        profile: `testing-center` grades as Salesforce's Testing Center does: actions as a superset unless
            `actions` says otherwise, promoted topics by their whole names, and a latency is measured and
            never judged. What else is known of its way, and what is not reproduced: docs/scoring.md.
        actions: how the actions that were taken must match the expected ones; None is the profile's way.
        topics: whether topics must be the same, or the expected name may be a part of the actual one.
        matches: which of several values that a reference matches must hold: the first, any or all.
        threshold: the rating, 0 to 5, from which on a rated answer passes.
        rater: the name of the rater in the project's settings; `rules` needs no settings.
    """

    profile: ScoringProfile = "default"
    actions: ActionMatch | None = None
    topics: TopicMatch = "exact"
    matches: Matches = "first"
    threshold: float = 3.0
    rater: str = "rules"

    @property
    def action_match(self) -> ActionMatch:
        """Gives how actions must match."""
        return self.actions or ("superset" if self.profile == "testing-center" else "exact")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run and what passes.

    Attributes:
        iterations: how often the whole set of cases is asked.
        min_pass_rate: the share of cases, 0 to 1, that must pass.
        undecided: `fail` counts a case with an undecided result as failed.
        concurrency: how many cases are asked at the same time.
        case_timeout: seconds one case may take, pauses that the agent asks for not counted.
        rate_limit: how many questions a second the agent is asked at most; None knows no limit.
        retries: how often what failed in passing is tried again.
        max_errors: after so many cases that ended in errors the run stops; None never stops it.
        seed: the order of the cases is drawn by it; None keeps the definition's.
        cases: numbers of the cases to ask; None asks all.
        shard: which of how many parts of the cases to ask, (2, 5) for the second of five; None asks all.
        scoring: how results are judged.
    """

    iterations: int = 1
    min_pass_rate: float = 1.0
    undecided: Undecided = "ignore"
    concurrency: int = limits.CONCURRENCY
    case_timeout: float = limits.CASE_TIMEOUT_SECONDS
    rate_limit: float | None = None
    retries: int = limits.RETRIES
    max_errors: int | None = None
    seed: int | None = None
    cases: tuple[int, ...] | None = None
    shard: tuple[int, int] | None = None
    scoring: Scoring = field(default_factory=Scoring)

    @property
    def is_partial(self) -> bool:
        """Says whether some cases only are asked."""
        return self.cases is not None or self.shard is not None


@dataclass(frozen=True, slots=True)
class Average:
    """The mean of one kind of result over the turns and iterations of a case, and whether it reaches its threshold.

    Attributes:
        number: the case's.
        label: what the case's file calls it.
        name: the results'.
        score: the mean; None when no result had a score.
        count: over how many results.
    """

    number: int
    label: str
    name: str
    score: float | None
    threshold: float
    count: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over all cases and iterations, and whether the run passed.

    A case whose results are averaged counts, in every iteration, by its means over all of them.

    Attributes:
        pass_rate: passed / (passed + failed), 0 to 1; None when no case was decided.
        undecided_results: names of results that nothing could judge, with their counts.
        averages: of cases whose results are averaged, by number and name.
        averaged: what these cases count as, by number.
    """

    total: int
    passed: int
    failed: int
    errors: int
    undecided: int
    pass_rate: float | None
    min_pass_rate: float
    succeeded: bool
    undecided_results: tuple[tuple[str, int], ...] = ()
    averages: tuple[Average, ...] = ()
    averaged: Mapping[int, Verdict] = field(default_factory=dict[int, Verdict])


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one definition.

    Attributes:
        definition: the API name of the definition.
        cases: results in order of iteration and number; partial while the run goes on.
        total: how many case results the run has when it is complete.
        answers_of: the run whose answers were judged again; None when an agent was asked.
    """

    id: str
    definition: str
    subject_name: str
    status: RunStatus
    started: float
    total: int
    subject_version: str | None = None
    ended: float | None = None
    error: str | None = None
    answers_of: str | None = None
    options: RunOptions = field(default_factory=RunOptions)
    cases: tuple[CaseResult, ...] = ()


def join(parts: Sequence[Run], whole: Run) -> Run:
    """Gives a run with the results of others as its iterations, in their order.

    Args:
        parts: the runs that were begun so far, one at least; those that never began for
            want of time or luck are missed in `total`.
        whole: what the joined run is called, and its options.
    """
    last, iterations = parts[-1], whole.options.iterations
    status = _status(parts, iterations)
    return replace(
        whole,
        definition=whole.definition or last.subject_name,
        subject_name=last.subject_name or whole.subject_name,
        status=status,
        started=parts[0].started or whole.started,
        ended=last.ended if status.is_over else None,
        error=next((each.error for each in parts if each.error), None),
        total=sum(each.total for each in parts) + last.total * (iterations - len(parts)),
        cases=tuple(replace(case, iteration=place) for place, each in enumerate(parts, 1) for case in each.cases),
    )


def _status(parts: Sequence[Run], iterations: int) -> RunStatus:
    """Iterations come one after the other; one that ended early ends the run."""
    statuses = {each.status for each in parts}
    for early in (RunStatus.ERROR, RunStatus.TERMINATED):
        if early in statuses:
            return early
    if statuses == {RunStatus.COMPLETED}:
        return RunStatus.COMPLETED if len(parts) >= iterations else RunStatus.IN_PROGRESS
    return RunStatus.NEW if statuses == {RunStatus.NEW} else RunStatus.IN_PROGRESS


ScoringProfile = Literal["default", "testing-center"]
ActionMatch = Literal["exact", "in_order", "any_order", "superset", "subset"]
TopicMatch = Literal["exact", "contains"]
Matches = Literal["first", "any", "all"]


SCORING_PROFILES: Final = ("default", "testing-center")
ACTION_MATCHES: Final = ("exact", "in_order", "any_order", "superset", "subset")
