"""Runs, their options and their results as values. Times are seconds since the epoch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from evalmeta.model.run_options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalmeta.model.evaluation import Quarantine
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.spending import Spent


_TOLERANCE: Final = 1e-9
DEFAULT_MIN_DECIDED: Final = 0.5
COST_LIMIT: Final = "cost limit"
"""How the error of a run begins that was cut because of what it cost."""
UNKNOWN_COST: Final = "the cost limit cannot be kept"
"""How the error of a run begins that was stopped because no answer had a price."""
WAY_OUT: Final = "\n→ "
"""What separates what the user can do from the message in the error of a case, and one way out from the next."""
TO_REVIEW: Final = "the case is marked for review"
"""How the explanation of a result begins that is undecided until a person has reviewed its case."""
DOUBLE_TO_REVIEW: Final = "the double at "
"""How the explanation of a result begins that is undecided until a person has reviewed the row at this place."""
NEEDS_MODEL: Final = "only an LLM rater can "
"""How the explanation of an undecided result begins if only a language model can judge it, and the run has none."""


class RunStatus(StrEnum):
    """The status of a run (Testing API: NEW, IN_PROGRESS, COMPLETED, ERROR; TERMINATED if cancelled)."""

    NEW = "NEW"
    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    ERROR = "ERROR"
    TERMINATED = "TERMINATED"

    @property
    def is_over(self) -> bool:
        """Return whether the run has ended."""
        return self not in {RunStatus.NEW, RunStatus.IN_PROGRESS}


class ContentKind(StrEnum):
    """What a run stores of its test.

    DEFINITION: the bytes of a definition. As JSON, FILE: the path of a file and a hash of its content, PAYLOAD: what
    `sf agent test run-eval` sent, CASES: a hash of cases that have no definition.
    """

    DEFINITION = "definition"
    FILE = "file"
    PAYLOAD = "payload"
    CASES = "cases"


class RunContent(NamedTuple):
    """What a run stores of its test, so that it can be read again and compared."""

    data: bytes
    kind: ContentKind = ContentKind.DEFINITION


class ErrorOrigin(StrEnum):
    """What ended a case in an error, in the words that reports use.

    CRASH: the agent raised an exception. INVALID: its answer cannot be read. UNREACHABLE: the connection failed, or its
    server. BUSY: it is rate-limited. UNAVAILABLE: its server accepts no requests at the moment. REFUSED: its endpoint
    refused the request. TIME_OUT: it took too long. TEST: evalmeta cannot run the case as its test says.
    """

    CRASH = "agent crash"
    INVALID = "invalid answer"
    UNREACHABLE = "not reached"
    BUSY = "rate limit"
    UNAVAILABLE = "not available"
    REFUSED = "refused"
    TIME_OUT = "time-out"
    TEST = "not runnable"


class Verdict(StrEnum):
    """The verdict of a result or a case.

    ERROR is an infrastructure error (the agent could not be reached, a scorer failed) and never a FAILURE. UNDECIDED
    means that nothing could judge the result; it never counts as a PASS.
    """

    PASS = "PASS"  # noqa: S105 - the word of the Testing API, not a password
    FAILURE = "FAILURE"
    ERROR = "ERROR"
    UNDECIDED = "UNDECIDED"

    # Enum has a hash written in Python, and every result is counted by its verdict.
    __hash__ = str.__hash__


DECIDED: Final = frozenset({Verdict.PASS, Verdict.FAILURE})
"""The verdicts of results that were judged."""
WORST_FIRST: Final = (Verdict.FAILURE, Verdict.ERROR, Verdict.UNDECIDED, Verdict.PASS)
"""The order of verdicts in lists."""


class Doubt(NamedTuple):
    """Why verdicts of another org may mean less than they seem to; docs/orgs.md explains each code."""

    code: str  # what it is about, such as `missing-result`
    text: str  # what was seen, for people
    number: int = 0  # the number of the case; 0 for the whole run
    iteration: int = 0  # its iteration; 0 for the whole run


class Verdicts(NamedTuple):
    """The verdict of another org on a result, and that of evalmeta's own rules on the same answer."""

    org: Verdict  # the org's verdict; UNDECIDED if it returned none
    local: Verdict  # the verdict of evalmeta's rules; UNDECIDED if they cannot judge it
    explanation: str = ""  # the reason for `local`, for people
    org_explanation: str = ""  # the reason for `org`

    @property
    def differ(self) -> bool:
        """Return whether both judged the result, and one of them let it pass."""
        return {self.org, self.local} == {Verdict.PASS, Verdict.FAILURE}


class TestResult(NamedTuple):
    """The result of one expectation.

    Attributes:
        name: the expectation's name, as in the definition.
        score: the score on the scorer's scale: 1 or 0 for matches, 0 to 5 for ratings, milliseconds for latency; None
            if there is none.
        explanation: the reason, for people.
        detail: a finer score, such as the partial match of actions.
        rater: the rater, if the result is a rating.
        threshold: for results that are averaged: what the mean of the scores over the turns of a case and all
            iterations must reach. None for a result that counts on its own.
        turn: the judged turn, from 1, in a case of several turns; 0 in a case of one.
        is_measured: whether the result is only a number. Its verdict is UNDECIDED, but it is not counted as undecided.
        verdicts: what another org and evalmeta's rules say, in a run that was checked; `verdict` is what counts.
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
    verdicts: Verdicts | None = None


# pytest must not collect it, although its name begins with Test.
TestResult.__test__ = False  # type: ignore[attr-defined]


class EarlierTurn(NamedTuple):
    """A turn before the last of a case: the message and the answer."""

    utterance: str
    generated: GeneratedData


class CaseResult(NamedTuple):
    """The result of one case in one iteration.

    Attributes:
        utterance: the last message to the agent.
        results: the results of all turns, in order.
        generated: the last answer; None if there is none.
        label: the name of the case in its file.
        earlier: the turns before the last one.
        traceback: where the agent raised the error, or the end of its program's stderr; empty if that is unknown.
        checks: the fingerprint of the case's expectations (`model.fingerprints`); empty if it is not known.
        quarantine: the quarantine that the case had when its run started, also one that had ended; None for others.
        asked_again: how often the case was asked again because the worker that asked it had died.
        spent: what its answers and judgements cost; without a row of the agent, its answers have no known price.
        metadata: what else the file says of the case; None if it says nothing.
        unanswered: what the trace of a turn without an answer says: steps, actions and tokens. It is shown and never
            judged. None if nothing is known.
        origin: what ended the case in an error; None if nothing did, or it is not known.
        tags: the tags that the file and the project's settings gave it, without `NAME=VALUE` of its metadata.
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
    traceback: str = ""
    checks: str = ""
    quarantine: Quarantine | None = None
    asked_again: int = 0
    spent: tuple[Spent, ...] = ()
    metadata: JsonObject | None = None
    unanswered: GeneratedData | None = None
    origin: ErrorOrigin | None = None
    tags: tuple[str, ...] = ()

    @property
    def error_message(self) -> str:
        """Return the error without what the user can do about it; empty if there is none."""
        return (self.error or "").partition(WAY_OUT)[0]

    @property
    def is_quarantined(self) -> bool:
        """Return whether the result is shown and does not count."""
        return self.quarantine is not None and not self.quarantine.has_ended


@dataclass(frozen=True, slots=True)
class Average:
    """The mean of `count` results of one name over the turns and iterations of a case.

    The score is None if no result had one.
    """

    number: int
    label: str
    name: str
    score: float | None
    threshold: float
    count: int
    verdict: Verdict


class Coverage(NamedTuple):
    """The number of results that were judged, of those that should be; measured results do not count.

    A case that ended in an error, and a case with nothing to judge, count as one more result that was not judged.
    """

    judged: int = 0
    total: int = 0
    # The results that the default share leaves out: those that ended in an error, which fails the run anyway, those
    # that only a language model can judge, in a run without one, and those of turns without data for a metric whose
    # mean over the other turns is judged.
    outside: int = 0

    @property
    def share(self) -> float:
        """Return the share of results that were judged, 0 to 1; 1 if there are none."""
        return self.judged / self.total if self.total else 1.0

    def reaches(self, share: float | None) -> bool:
        """Return whether at least this share was judged; for None, the default share of what the run can judge."""
        if share is not None:
            return self.share >= share - _TOLERANCE
        return self.judged >= DEFAULT_MIN_DECIDED * (self.total - self.outside)


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over all cases and iterations, and whether they let the run pass.

    A case whose results are averaged counts by its means over all iterations.

    Attributes:
        passed: the number of case results that passed, with all their results judged.
        undecided: the number of case results in which nothing was judged.
        partly_judged: the number of case results of which some were judged, all of them passed, and some are undecided.
        quarantined: the number of case results in quarantine, which are in `total` and in no other number.
        quarantined_passed: how many of them passed.
        undecided_results: the names of results that nothing could judge, with their counts.
        averages: the means of cases whose results are averaged, by number and name.
        averaged: the verdicts of these cases by number.
        coverage: how many results were judged; a pass rate says nothing about the others.
        min_decided: the share of results that must be judged; None for the default.
    """

    total: int
    passed: int
    failed: int
    errors: int
    undecided: int
    partly_judged: int = 0
    min_pass_rate: float = 1.0
    undecided_results: tuple[tuple[str, int], ...] = ()
    averages: tuple[Average, ...] = ()
    averaged: Mapping[int, Verdict] = field(default_factory=dict[int, Verdict])
    coverage: Coverage = field(default_factory=Coverage)
    min_decided: float | None = None
    quarantined: int = 0
    quarantined_passed: int = 0

    @property
    def counts_nothing(self) -> bool:
        """Return whether all case results are in quarantine."""
        return bool(self.quarantined) and self.quarantined == self.total

    @property
    def pass_rate(self) -> float | None:
        """Return (passed + partly judged) / (passed + partly judged + failed), 0 to 1; None if no case was decided."""
        held = self.passed + self.partly_judged
        return held / (held + self.failed) if held + self.failed else None

    @property
    def judges_enough(self) -> bool:
        """Return whether the run judged as many results as it must."""
        return self.coverage.reaches(self.min_decided)

    @property
    def verdict(self) -> Verdict:
        """Return the verdict on the case results together: the only rule for what lets a complete run pass.

        PASS needs no errors, the pass rate, and enough judged results. UNDECIDED means that too few were judged, or
        none; a run without cases passes, and so does one whose cases are all in quarantine.
        """
        if self.errors:
            return Verdict.ERROR
        rate = self.pass_rate
        if rate is None:
            return Verdict.UNDECIDED if self.total > self.quarantined else Verdict.PASS
        if rate < self.min_pass_rate - _TOLERANCE:
            return Verdict.FAILURE
        return Verdict.PASS if self.judges_enough else Verdict.UNDECIDED

    @property
    def succeeded(self) -> bool:
        """Return whether the case results let the run pass, if it is complete."""
        return self.verdict is Verdict.PASS


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one definition.

    Attributes:
        definition: the API name of the definition.
        cases: results in order of iteration and number; incomplete while the run is in progress. Those of a large
            stored run are read from its database each time they are used.
        total: the number of case results of the complete run.
        answers_of: the run whose answers were judged again; None if an agent was asked.
        doubts: why verdicts of another org may mean less than they seem to.
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
    cases: Sequence[CaseResult] = ()
    doubts: tuple[Doubt, ...] = ()

    @property
    def is_cut(self) -> bool:
        """Return whether the run stopped at its cost limit, so that cases were not run."""
        return self.status is RunStatus.ERROR and (self.error or "").startswith(COST_LIMIT)

    @property
    def is_complete(self) -> bool:
        """Return whether the run completed, and no result is missing."""
        return self.status is RunStatus.COMPLETED and len(self.cases) >= self.total and not self.error


def join(parts: Sequence[Run], whole: Run) -> Run:
    """Return a run whose iterations are other runs, for orgs without iterations; `whole` has its name and options.

    There is at least one part; iterations that were never started count in `total`.
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
        error=next((part.error for part in parts if part.error), None),
        total=sum(part.total for part in parts) + last.total * (iterations - len(parts)),
        cases=tuple(case._replace(iteration=place) for place, part in enumerate(parts, 1) for case in part.cases),
    )


def _status(parts: Sequence[Run], iterations: int) -> RunStatus:
    """Return the status of a run whose iterations run one after the other; one that ended early ends the run."""
    statuses = {part.status for part in parts}
    for early in (RunStatus.ERROR, RunStatus.TERMINATED):
        if early in statuses:
            return early
    if statuses == {RunStatus.COMPLETED}:
        return RunStatus.COMPLETED if len(parts) >= iterations else RunStatus.IN_PROGRESS
    return RunStatus.NEW if statuses == {RunStatus.NEW} else RunStatus.IN_PROGRESS
