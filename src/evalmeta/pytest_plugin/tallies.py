"""What the tests of one evaluation come to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypedDict

from evalmeta.engine.policy import summarise
from evalmeta.model.run import CaseResult, RunOptions, Verdict
from evalmeta.model.statistics import CaseCounts
from evalmeta.report.words import count, percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.run import Summary

__all__ = ["CaseNote", "EvaluationTally"]

_SHOWN_CASES: Final = 20
_WORST_FIRST: Final = (Verdict.ERROR, Verdict.FAILURE, Verdict.PASS)


class CaseNote(TypedDict):
    """What one test says about its evaluation; it goes from worker to controller as it is.

    Attributes:
        evaluation: the node id of the test function, without parameters.
        nodeid: the test's own.
        case: the id of the parameter set, empty without one.
        place: where the parameter set stands among those of the function, by its parameters.
        inputs: the parameters as a JSON object; None when there are none.
        iteration: which of the iterations it belongs to, from 1.
        iterations: how many there are.
        min_pass_rate: what the evaluation asks for.
        verdict: PASS, FAILURE or ERROR.
        reason: why it is no PASS, on one line.
        file: where the function stands.
        line: likewise, from 1.
    """

    evaluation: str
    nodeid: str
    case: str
    place: list[int]
    inputs: str | None
    iteration: int
    iterations: int
    min_pass_rate: float
    verdict: str
    reason: str
    file: str
    line: int


@dataclass(slots=True)
class EvaluationTally:
    """The tests of one evaluation that were reported, in any order and from any process."""

    first: CaseNote
    notes: dict[str, CaseNote] = field(default_factory=dict)

    def add(self, note: CaseNote) -> None:
        """Counts a test; of several verdicts about one test the worst counts."""
        known = self.notes.get(note["nodeid"], note)
        self.notes[note["nodeid"]] = min(known, note, key=lambda each: _WORST_FIRST.index(Verdict(each["verdict"])))

    @property
    def name(self) -> str:
        """Gives the node id that the evaluation is reported under, which selects all its tests; no test has it."""
        evaluation = self.first["evaluation"]
        return f"{evaluation}[evaluation]" if evaluation in self.notes else evaluation

    @property
    def summary(self) -> Summary:
        """Gives the counts over all parameter sets and iterations, and whether they are enough."""
        options = RunOptions(min_pass_rate=self.first["min_pass_rate"])
        return summarise(map(_result, self.notes.values()), options)

    def rate_line(self) -> str:
        """Says the rate on one line."""
        summary = self.summary
        rate = "nothing decided" if summary.pass_rate is None else percent(summary.pass_rate)
        errors = f", {count(summary.errors, 'error')}" if summary.errors else ""
        decided = summary.passed + summary.failed
        return f"{rate} ({summary.passed} of {decided}){errors}; at least {percent(summary.min_pass_rate)} must pass"

    def by_iteration(self) -> dict[int, Summary]:
        """Gives the counts of each iteration, in order."""
        found: dict[int, list[CaseNote]] = {}
        for note in sorted(self.notes.values(), key=lambda each: each["iteration"]):
            found.setdefault(note["iteration"], []).append(note)
        options = RunOptions(min_pass_rate=self.first["min_pass_rate"])
        return {iteration: summarise(map(_result, notes), options) for iteration, notes in found.items()}

    def outcomes(self) -> list[str]:
        """Says of each iteration how many tests passed, of those that passed or failed."""
        return [f"{each.passed} of {each.passed + each.failed}" for each in self.by_iteration().values()]

    def detail_lines(self) -> Iterator[str]:
        """Says what each iteration came to, where there are several, and of each failing case why."""
        yield from self.iteration_lines()
        yield from self.case_lines()

    def iteration_lines(self) -> Iterator[str]:
        """Says what each iteration came to, where there are several."""
        if self.first["iterations"] > 1:
            outcomes = self.outcomes()
            more = f", and {len(outcomes) - _SHOWN_CASES:,} more" if len(outcomes) > _SHOWN_CASES else ""
            yield f"by iteration: {', '.join(outcomes[:_SHOWN_CASES])}{more}"

    def cases(self) -> dict[str, list[CaseNote]]:
        """Gives what was said of each case, cases in the order of the parameter sets, iterations in theirs."""
        found: dict[str, list[CaseNote]] = {}
        for note in sorted(self.notes.values(), key=lambda each: (each["place"], each["case"], each["iteration"])):
            found.setdefault(note["case"], []).append(note)
        return found

    def case_counts(self) -> list[CaseCounts]:
        """Gives what each case came to; cases are numbered from 1 in the order of the parameter sets."""
        return [_counts(number, case, notes) for number, (case, notes) in enumerate(self.cases().items(), 1)]

    def failing_cases(self) -> dict[str, list[CaseNote]]:
        """Gives what did not pass, by case, in the order of the test ids."""
        found: dict[str, list[CaseNote]] = {}
        for _, note in sorted(self.notes.items()):
            if note["verdict"] != Verdict.PASS:
                found.setdefault(note["case"], []).append(note)
        return found

    def case_lines(self) -> Iterator[str]:
        """Says of each failing case how often it failed, and why it did first."""
        failing = self.failing_cases()
        for case, notes in list(failing.items())[:_SHOWN_CASES]:
            asked = sum(note["case"] == case for note in self.notes.values())
            often = f"failed in {len(notes)} of {count(asked, 'iteration')}" if asked > 1 else ""
            who = ", ".join(filter(None, (case, often)))
            yield f"{who}: {notes[0]['reason']}" if who else notes[0]["reason"]
        if len(failing) > _SHOWN_CASES:
            yield f"and {len(failing) - _SHOWN_CASES:,} more cases"


def _counts(number: int, case: str, notes: Sequence[CaseNote]) -> CaseCounts:
    found = Counter(note["verdict"] for note in notes)
    return CaseCounts(number, case, found[Verdict.PASS], found[Verdict.FAILURE], found[Verdict.ERROR])


def _result(note: CaseNote) -> CaseResult:
    return CaseResult(0, note["iteration"], note["case"], Verdict(note["verdict"]), started=0, ended=0)
