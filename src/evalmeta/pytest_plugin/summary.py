"""What the tests of one evaluation come to.

An evaluation beside what a baseline has of it.

Why something failed, in the form in which pytest shows, writes and sends failures.

The parameters that a test was given, as JSON: what reports show of them.

A session's evaluations as a file: what they asked for, came to and were given.

The file is a baseline (`store/baselines.py`) with more in it, so that it can be committed and
compared with later. A session never writes over the file of another.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field, is_dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, TypedDict

from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback
from _pytest._io.saferepr import saferepr

from evalmeta.engine.comparison import compare
from evalmeta.engine.statistics import summarise
from evalmeta.errors import ProjectError
from evalmeta.model.run import CaseResult, RunOptions, Verdict
from evalmeta.model.statistics import CaseCounts
from evalmeta.report.comparison import comparison_lines
from evalmeta.report.text import clean, count, escape_unsafe, one_line, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from evalmeta.errors import EvalmetaError
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import Summary


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
        """Count a test; of several verdicts about one test the worst counts."""
        known = self.notes.get(note["nodeid"], note)
        self.notes[note["nodeid"]] = min(known, note, key=lambda each: _WORST_FIRST.index(Verdict(each["verdict"])))

    @property
    def name(self) -> str:
        """Return the node id that the evaluation is reported under, which selects all its tests; no test has it."""
        evaluation = self.first["evaluation"]
        return f"{evaluation}[evaluation]" if evaluation in self.notes else evaluation

    @property
    def summary(self) -> Summary:
        """Return the counts over all parameter sets and iterations, and whether they are enough."""
        options = RunOptions(min_pass_rate=self.first["min_pass_rate"])
        return summarise(map(_result, self.notes.values()), options)

    def rate_line(self) -> str:
        """Return the rate on one line."""
        summary = self.summary
        rate = "nothing decided" if summary.pass_rate is None else percent(summary.pass_rate)
        errors = f", {count(summary.errors, 'error')}" if summary.errors else ""
        decided = summary.passed + summary.failed
        return f"{rate} ({summary.passed} of {decided}){errors}; at least {percent(summary.min_pass_rate)} must pass"

    def by_iteration(self) -> dict[int, Summary]:
        """Return the counts of each iteration, in order."""
        found: dict[int, list[CaseNote]] = {}
        for note in sorted(self.notes.values(), key=lambda each: each["iteration"]):
            found.setdefault(note["iteration"], []).append(note)
        options = RunOptions(min_pass_rate=self.first["min_pass_rate"])
        return {iteration: summarise(map(_result, notes), options) for iteration, notes in found.items()}

    def outcomes(self) -> list[str]:
        """Return of each iteration how many tests passed, of those that passed or failed."""
        return [f"{each.passed} of {each.passed + each.failed}" for each in self.by_iteration().values()]

    def detail_lines(self) -> Iterator[str]:
        """Return what each iteration came to, where there are several, and of each failing case why."""
        yield from self.iteration_lines()
        yield from self.case_lines()

    def iteration_lines(self) -> Iterator[str]:
        """Return what each iteration came to, where there are several."""
        if self.first["iterations"] > 1:
            outcomes = self.outcomes()
            more = f", and {len(outcomes) - _SHOWN_CASES:,} more" if len(outcomes) > _SHOWN_CASES else ""
            yield f"by iteration: {', '.join(outcomes[:_SHOWN_CASES])}{more}"

    def cases(self) -> dict[str, list[CaseNote]]:
        """Return what was said of each case, cases in the order of the parameter sets, iterations in theirs."""
        found: dict[str, list[CaseNote]] = {}
        for note in sorted(self.notes.values(), key=lambda each: (each["place"], each["case"], each["iteration"])):
            found.setdefault(note["case"], []).append(note)
        return found

    def case_counts(self) -> list[CaseCounts]:
        """Return what each case came to; cases are numbered from 1 in the order of the parameter sets."""
        return [_counts(number, case, notes) for number, (case, notes) in enumerate(self.cases().items(), 1)]

    def failing_cases(self) -> dict[str, list[CaseNote]]:
        """Return what did not pass, by case, in the order of the test ids."""
        found: dict[str, list[CaseNote]] = {}
        for _, note in sorted(self.notes.items()):
            if note["verdict"] != Verdict.PASS:
                found.setdefault(note["case"], []).append(note)
        return found

    def case_lines(self) -> Iterator[str]:
        """Return of each failing case how often it failed, and why it did first."""
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


def comparison_with(before: Sequence[CaseCounts], tally: EvaluationTally, *, label: str) -> list[str]:
    """Return the pass rate before, and of which cases something became since; what was not selected is no news."""
    decided, passed = sum(each.decided for each in before), sum(each.passed for each in before)
    rate = f"{percent(passed / decided)} ({passed} of {decided})" if decided else "nothing decided"
    comparison = compare(
        before, tally.case_counts(), name=tally.name, labels=(label, "this session"), partial=(False, True)
    )
    _, *lines = comparison_lines(comparison)
    return [f"in {label}: {rate}", *(line.text for line in lines)]


def explanation(path: Path | str, line: int, *, message: str, text: str) -> ReprExceptionInfo:
    """Return a failure at a place: `text` is shown in full, `message` stands in summaries.

    Workers of pytest-xdist send these classes whole, and of others only their text.
    """
    lines = [f"{each}\n" for each in clean(text).rstrip().split("\n")]
    traceback = ReprTraceback([ReprEntryNative(lines)], None, style="native")
    return ReprExceptionInfo(traceback, ReprFileLocation(str(path), line, one_line(message)))


def error_text(error: EvalmetaError) -> str:
    """Return an error's message with what to do next, as commands print it."""
    if not error.actions:
        return str(error)
    return "\n".join([str(error), "", "Try this:", *(f"  {each}" for each in "\n".join(error.actions).split("\n"))])


NO_INPUTS: Final = "no data provider: the test has no parameters"


def inputs_text(parameters: Mapping[str, object]) -> str:
    """Return parameters by their names as a JSON object on one line; of what JSON does not know, its `repr`."""
    return escape_unsafe(
        "{" + ", ".join(f"{json.dumps(name)}: {_text(each)}" for name, each in parameters.items()) + "}"
    )


def _text(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain)
    except (TypeError, ValueError, RecursionError):
        return json.dumps(saferepr(value), ensure_ascii=False)


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return saferepr(value)


def write_session_report(folder: Path, tallies: Iterable[EvaluationTally], *, is_complete: bool) -> Path:
    """Write a report `evalmeta-20260212T054708.966000Z.json`, named by the time in UTC, and gives its path.

    Raises:
        ProjectError: it cannot be written.
    """
    now = datetime.now(UTC)
    document: JsonObject = {
        "evalmeta": "baseline",
        "version": 1,
        "written": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}",
        "complete": is_complete,
        "tests": {each.name: _evaluation(each, is_complete=is_complete) for each in tallies},
    }
    text = escape_unsafe(json.dumps(document, ensure_ascii=False, indent=2)) + "\n"
    path = folder / f"evalmeta-{now:%Y%m%dT%H%M%S.%fZ}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as error:
        raise ProjectError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def _evaluation(tally: EvaluationTally, *, is_complete: bool) -> JsonObject:
    summary = tally.summary
    verdict = ("PASSED" if summary.succeeded else "FAILED") if is_complete else "STOPPED"
    has_inputs = tally.first["inputs"] is not None
    cases = zip(tally.case_counts(), tally.cases().values(), strict=True)
    return {
        "verdict": verdict,
        "pass_rate": summary.pass_rate,
        "min_pass_rate": summary.min_pass_rate,
        "iterations": tally.first["iterations"],
        "passed": summary.passed,
        "failed": summary.failed,
        "errors": summary.errors,
        "outcomes": [
            {
                "iteration": iteration,
                "pass_rate": counts.pass_rate,
                "passed": counts.passed,
                "failed": counts.failed,
                "errors": counts.errors,
            }
            for iteration, counts in tally.by_iteration().items()
        ],
        **({} if has_inputs else {"inputs": NO_INPUTS}),
        "cases": {
            str(counts.number): {
                "utterance": counts.utterance,
                "passed": counts.passed,
                "failed": counts.failed,
                "errors": counts.errors,
                "outcomes": [_outcome(each) for each in notes],
                **({"inputs": _inputs(notes[0])} if has_inputs else {}),
            }
            for counts, notes in cases
        },
    }


def _outcome(note: CaseNote) -> JsonObject:
    found: dict[str, JsonValue] = {"iteration": note["iteration"], "verdict": note["verdict"]}
    return {**found, "reason": note["reason"]} if note["reason"] else found


def _inputs(note: CaseNote) -> JsonValue:
    found: JsonValue = json.loads(note["inputs"] or "null")
    return found
