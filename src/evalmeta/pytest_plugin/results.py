"""The results of a session's evaluations: verdicts, reports for pytest, baselines and the report file."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from textwrap import indent
from typing import TYPE_CHECKING, Final, Literal, TypedDict, TypeVar, cast

import pytest
from _pytest._code.code import ReprEntryNative, ReprExceptionInfo, ReprFileLocation, ReprTraceback

from evalmeta.api.runs.finished import FinishedRun, FinishedRuns
from evalmeta.engine.comparison import ComparedTest
from evalmeta.engine.gate import compare_all
from evalmeta.errors import EvalmetaError, ProjectError
from evalmeta.formats.baseline import read_baseline
from evalmeta.model.run import CaseResult, Coverage, Run, RunStatus, Summary, TestResult, Verdict
from evalmeta.model.run_options import RunOptions, Setup
from evalmeta.model.statistics import CaseCounts
from evalmeta.model.tally import summarise
from evalmeta.pytest_plugin.notes import NO_PARAMETERS
from evalmeta.report.comparison import comparison_lines
from evalmeta.report.comparison import verdict as comparison_verdict
from evalmeta.report.report import too_few_text
from evalmeta.report.text import and_more, clean, count, escape_unsafe, one_line, percent
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence
    from pathlib import Path

    from evalmeta.model.comparison import Comparison, KnownTests
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.pytest_plugin.notes import CaseNote, UncountedTest

    _Property = tuple[str, object]

_Key = TypeVar("_Key", int, tuple[int, str])


_SHOWN_CASES: Final = 20
_WORST_FIRST: Final = (Verdict.ERROR, Verdict.FAILURE, Verdict.PASS)
_FILE_COUNTS: Final = ("passed", "failed", "errors", "undecided", "partly_judged", "quarantined")
_COUNTED: Final = ("passed", "failed", "errors")
_SUBJECT: Final = "pytest"
_ASSERTIONS: Final = "assertions"
_NO_INPUTS: Final = "no data provider: the test has no parameters"


class FileNote(TypedDict):
    """The results of one case of a file, as plain values that workers can send."""

    file: str  # the node id of the file
    path: str  # as messages show it
    counts: list[int]  # those of `_FILE_COUNTS`
    coverage: list[int]
    min_pass_rate: float
    min_decided: float | None


def file_note(file: str, path: str, results: Sequence[CaseResult], options: RunOptions) -> FileNote:
    """Return the counts of the results of a case, for the verdict on its file."""
    summary = summarise(results, options)
    counts = [getattr(summary, name) for name in _FILE_COUNTS]
    return {
        "file": file,
        "path": path,
        "counts": counts,
        "coverage": [*summary.coverage],
        "min_pass_rate": options.min_pass_rate,
        "min_decided": options.min_decided,
    }


def unjudged_reports(notes: Sequence[FileNote]) -> list[pytest.TestReport]:
    """Return reports that fail a file whose cases judged too little together, as a run of it; none for other files."""
    first, counts = notes[0], [sum(column) for column in zip(*(note["counts"] for note in notes), strict=True)]
    summary = Summary(
        sum(counts),
        **dict(zip(_FILE_COUNTS, counts, strict=True)),
        coverage=Coverage(*(sum(column) for column in zip(*(note["coverage"] for note in notes), strict=True))),
        min_pass_rate=first["min_pass_rate"],
        min_decided=first["min_decided"],
    )
    if summary.verdict is not Verdict.UNDECIDED:
        return []
    why = "no case was judged" if summary.pass_rate is None else too_few_text(summary)
    text = f"{first['path']}: not passed: {why}"
    failure = failure_repr(first["path"], 1, message=why, text=text)
    return _reports(f"{first['file']}::[judged results]", (first["path"], 0, "[judged results]"), failure)


def _reports(
    nodeid: str,
    location: tuple[str, int, str],
    failure: ReprExceptionInfo | None,
    properties: Sequence[_Property] = (),
    *,
    skipped: str = "",
) -> list[pytest.TestReport]:
    """Return reports for pytest of what is not a test: a call with the verdict, and a teardown, which completes it."""
    outcome: Literal["passed", "failed", "skipped"] = "failed" if failure else "skipped" if skipped else "passed"
    shown = failure or ((location[0], location[1] + 1, f"Skipped: {skipped}") if skipped else None)
    return [
        pytest.TestReport(
            nodeid=nodeid,
            location=location,
            keywords={},
            outcome=outcome if phase == "call" else "passed",
            longrepr=shown if phase == "call" else None,
            when=phase,
            user_properties=[*properties],
        )
        for phase in ("call", "teardown")
    ]


class SessionResults:
    """The evaluations of a session by node id; `own_fixture` names the parameter with the iteration."""

    def __init__(self) -> None:
        self.evaluations: dict[str, EvaluationResults] = {}
        self.is_complete = False
        self._uncounted: dict[str, NotJudged] = {}
        self._baseline: KnownTests = {}
        self._baseline_label = ""

    def load_baseline(self, path: Path, *, label: str) -> None:
        """Read the baseline to compare with."""
        self._baseline, self._baseline_label = read_baseline(path), label

    def add(self, note: CaseNote) -> None:
        """Count the result of a test."""
        self.evaluations.setdefault(note["evaluation"], EvaluationResults(note)).add(note)

    def add_uncounted(self, test: UncountedTest) -> None:
        """Note a test that does not count."""
        self._uncounted.setdefault(test["evaluation"], NotJudged({})).tests[test["nodeid"]] = test

    def not_judged(self) -> list[NotJudged]:
        """Return the evaluations none of whose tests counted."""
        return [tests for name, tests in self._uncounted.items() if name not in self.evaluations]

    def verdict(self, evaluation: EvaluationResults) -> str:
        """Return PASSED, FAILED, or STOPPED if the session was interrupted."""
        return ("PASSED" if evaluation.summary.succeeded else "FAILED") if self.is_complete else "STOPPED"

    def comparison_lines(self, evaluation: EvaluationResults) -> list[str]:
        """Return the pass rate of the baseline and the changed cases; cases that were not selected are ignored."""
        if evaluation.name not in self._baseline:
            return []
        comparison = self._comparisons[evaluation.name]
        _, *lines = comparison_lines(comparison)
        rate = self._known_rate(evaluation.name)
        return [f"{rate}; {comparison_verdict(comparison)}", *(line.text for line in lines)]

    def missing_lines(self, evaluation: NotJudged) -> list[str]:
        """Return the pass rate of the baseline for an evaluation that has none now."""
        name = evaluation.name
        return [f"{self._known_rate(name)}; now nothing judged"] if name in self._baseline else []

    def _known_rate(self, name: str) -> str:
        cases = self._baseline[name].cases
        judged, passed = sum(case.decided for case in cases), sum(case.passed for case in cases)
        rate = f"{percent(passed / judged)} ({passed} of {judged})" if judged else "nothing judged"
        return f"in {self._baseline_label}: {rate}"

    @cached_property
    def _comparisons(self) -> dict[str, Comparison]:
        """Return the comparisons of all evaluations, which share one chance of a false alarm."""
        labels = (self._baseline_label, "this session")
        tests = [
            ComparedTest(name, labels, self._baseline[name].cases, results.case_counts(), partial=(False, True))
            for results in self.evaluations.values()
            if (name := results.name) in self._baseline
        ]
        return dict(zip((test.name for test in tests), compare_all(tests).tests, strict=True))

    def runs(self) -> list[Run]:
        """Return the evaluations as runs."""
        return [results.run(is_complete=self.is_complete) for results in self.evaluations.values()]

    def write_report(self, folder: Path) -> Path:
        """Write a report `evalmeta-20260212T054708.966000Z.json`, named by the time in UTC, and return its path.

        The file is a baseline (`evalmeta.formats.baseline`) with additional keys. Existing reports are never replaced.
        """
        now = datetime.now(UTC)
        not_judged = self.not_judged() if self.is_complete else []
        document: JsonObject = {
            "evalmeta": "baseline",
            "version": 1,
            "written": f"{now:%Y-%m-%dT%H:%M:%S.%fZ}",
            "complete": self.is_complete,
            "tests": {
                evaluation.name: _evaluation_json(evaluation, self.verdict(evaluation))
                for evaluation in self.evaluations.values()
            },
            # Not among the tests, because those of baselines have cases.
            **({"not_judged": {tests.name: tests.why() for tests in not_judged}} if not_judged else {}),
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

    def write_page(self, report: Path) -> Path:
        """Write the evaluations as an HTML page beside the report, and return its path."""
        path = report.with_suffix(".html")
        FinishedRuns(map(FinishedRun.of, self.runs())).save(path)
        return path


@dataclass(slots=True)
class NotJudged:
    """An evaluation none of whose tests counted, so that it has no pass rate; the tests by node id."""

    tests: dict[str, UncountedTest]

    @property
    def _first(self) -> UncountedTest:
        return next(iter(self.tests.values()))

    @property
    def name(self) -> str:
        """Return the node id under which the evaluation is reported."""
        return evaluation_name(self._first["evaluation"], self.tests)

    @property
    def is_chosen(self) -> bool:
        """Return whether marks say that no test counts, such as `skip`."""
        return all(test["is_marked"] for test in self.tests.values())

    def why(self) -> str:
        """Return how many tests do not count for which reasons."""
        reasons = Counter(test["why"] for test in self.tests.values())
        none = reasons.pop(NO_PARAMETERS, 0)
        listed = [f"{tests} {why}" for why, tests in reasons.items()]
        total = sum(reasons.values())
        why = ", ".join([*listed, *([NO_PARAMETERS] if none else [])])
        return f"0 of {count(total, 'test')} counted ({why})"

    def reports(self) -> list[pytest.TestReport]:
        """Return reports for pytest: skipped if marks say so, and failed otherwise."""
        file, line, why = self._first["file"], self._first["line"], f"not judged: {self.why()}"
        location = (file, line - 1, self.name.rpartition("::")[2])
        if self.is_chosen:
            return _reports(self.name, location, None, skipped=why)
        return _reports(self.name, location, failure_repr(file, line, message=why, text=f"{file}:{line}: {why}"))


def evaluation_name(evaluation: str, tests: Container[str]) -> str:
    """Return the node id under which an evaluation is reported, which selects its tests and is not a test."""
    return f"{evaluation}[evaluation]" if evaluation in tests else evaluation


@dataclass(slots=True)
class EvaluationResults:
    """The results of the tests of one evaluation, in any order and from any process."""

    first: CaseNote
    notes: dict[str, CaseNote] = field(default_factory=dict)

    def add(self, note: CaseNote) -> None:
        """Count a test; of several verdicts on one test the worst counts."""
        known = self.notes.get(note["nodeid"], note)
        self.notes[note["nodeid"]] = min(known, note, key=lambda seen: _WORST_FIRST.index(Verdict(seen["verdict"])))

    @property
    def name(self) -> str:
        """Return the node id under which the evaluation is reported."""
        return evaluation_name(self.first["evaluation"], self.notes)

    @property
    def summary(self) -> Summary:
        """Return the counts over all parameter sets and iterations."""
        return self._summarise(self.notes.values())

    def run(self, *, is_complete: bool) -> Run:
        """Return the evaluation as a run; one whose session was stopped is not complete."""
        notes = sorted(self.notes.values(), key=lambda note: (note["iteration"], note["number"]))
        numbers = {note["number"] for note in notes}
        status = RunStatus.COMPLETED if is_complete else RunStatus.TERMINATED
        return Run(
            id="",
            definition=self.name.removesuffix("[evaluation]"),
            subject_name=_SUBJECT,
            status=status,
            started=min(note["started"] for note in notes),
            ended=max(note["ended"] for note in notes),
            total=len(notes),
            error=None if is_complete else "the session was stopped",
            options=RunOptions(
                iterations=self.first["iterations"],
                min_pass_rate=self.first["min_pass_rate"],
                # Cases that were not selected are not missing.
                cases=tuple(sorted(numbers)) if len(numbers) < self.first["cases"] else None,
                setup=Setup(evalmeta=__version__),
            ),
            cases=tuple(map(_case_result, notes)),
        )

    def by_iteration(self) -> dict[int, Summary]:
        """Return the counts of each iteration, in order."""
        by_iteration = _grouped(self.notes.values(), lambda note: note["iteration"])
        return {iteration: self._summarise(notes) for iteration, notes in sorted(by_iteration.items())}

    def _summarise(self, notes: Iterable[CaseNote]) -> Summary:
        results = (
            CaseResult(0, note["iteration"], note["case"], Verdict(note["verdict"]), started=0, ended=0)
            for note in notes
        )
        return summarise(results, RunOptions(min_pass_rate=self.first["min_pass_rate"]))

    def outcomes(self) -> list[str]:
        """Return for each iteration how many tests passed, of those that passed or failed."""
        return [f"{summary.passed} of {summary.passed + summary.failed}" for summary in self.by_iteration().values()]

    def cases(self) -> dict[tuple[int, str], list[CaseNote]]:
        """Return the results of each case in order of parameter sets and iterations."""
        ordered = sorted(self.notes.values(), key=lambda note: (note["place"], note["case"], note["iteration"]))
        return _grouped(ordered, _case_of)

    def case_counts(self) -> list[CaseCounts]:
        """Return the counts of each case; cases are numbered from 1 in the order of the parameter sets."""
        counted = []
        for number, ((_, case), notes) in enumerate(self.cases().items(), 1):
            verdicts = [note["verdict"] for note in notes]
            passed, failed, errors = map(verdicts.count, (Verdict.PASS, Verdict.FAILURE, Verdict.ERROR))
            counted.append(CaseCounts(number, case, passed, failed, errors))
        return counted

    def failing_cases(self) -> dict[tuple[int, str], list[CaseNote]]:
        """Return the results that did not pass by case, in the order of the test ids."""
        failing = (note for _, note in sorted(self.notes.items()) if note["verdict"] != Verdict.PASS)
        return _grouped(failing, _case_of)

    def rate_line(self) -> str:
        """Return the pass rate and the required rate on one line."""
        summary = self.summary
        rate = "nothing judged" if summary.pass_rate is None else percent(summary.pass_rate)
        errors = f", {count(summary.errors, 'error')}" if summary.errors else ""
        judged = summary.passed + summary.failed
        return f"{rate} ({summary.passed} of {judged}){errors}; at least {percent(summary.min_pass_rate)} must pass"

    def detail_lines(self) -> Iterator[str]:
        """Yield the results of the iterations, and how often and why each failing case failed."""
        yield from self.iteration_lines()
        failing = self.failing_cases()
        for key, notes in list(failing.items())[:_SHOWN_CASES]:
            runs = sum(_case_of(note) == key for note in self.notes.values())
            times = f"failed in {len(notes)} of {count(runs, 'iteration')}" if runs > 1 else ""
            which = ", ".join(filter(None, (notes[0]["case"], times)))
            yield f"{which}: {notes[0]['reason']}" if which else notes[0]["reason"]
        if len(failing) > _SHOWN_CASES:
            yield f"and {len(failing) - _SHOWN_CASES:,} more cases"

    def iteration_lines(self) -> Iterator[str]:
        """Yield one line with the results of the iterations, if there are several."""
        if self.first["iterations"] > 1:
            yield f"by iteration: {and_more(self.outcomes(), _SHOWN_CASES)}"
        if self.first["alone"] and len(self.notes) > 1:
            yield f"the tests ran one after another: {self.first['alone']}"

    def reports(self) -> list[pytest.TestReport]:
        """Return the evaluation's reports for pytest: a call with the verdict, and a teardown, which completes it."""
        summary, first = self.summary, self.first
        message = self.rate_line()
        text = "\n".join(
            [f"{first['file']}:{first['line']}: {message}", *(f"  {line}" for line in self.detail_lines())]
        )
        failure = None if summary.succeeded else failure_repr(first["file"], first["line"], message=message, text=text)
        location = (first["file"], first["line"] - 1, self.name.rpartition("::")[2])
        return _reports(self.name, location, failure, self._properties())

    def _properties(self) -> list[_Property]:
        summary = self.summary
        inputs = ", ".join(notes[0]["inputs"] or "{}" for notes in self.cases().values())
        return [
            ("pass_rate", "" if summary.pass_rate is None else summary.pass_rate),
            *_values(summary, "min_pass_rate", "passed", "failed", "errors").items(),
            ("failing_cases", ", ".join(filter(None, (case for _, case in self.failing_cases())))),
            ("iterations", self.first["iterations"]),
            ("outcomes", ", ".join(self.outcomes())),
            ("inputs", _NO_INPUTS if self.first["inputs"] is None else f"[{inputs}]"),
        ]


def _case_result(note: CaseNote) -> CaseResult:
    verdict, reason = Verdict(note["verdict"]), note["reason"]
    judged = () if verdict is Verdict.ERROR else (TestResult(_ASSERTIONS, verdict, explanation=reason),)
    return CaseResult(
        note["number"],
        note["iteration"],
        note["case"] or note["evaluation"].rpartition("::")[2],
        verdict,
        started=note["started"],
        ended=note["ended"],
        results=judged,
        error=reason if verdict is Verdict.ERROR else None,
        checks=note["checks"],
    )


def _case_of(note: CaseNote) -> tuple[int, str]:
    """Return what tells cases apart: their ids may be equal, because they have no secrets."""
    return note["number"], note["case"]


def _grouped(notes: Iterable[CaseNote], key: Callable[[CaseNote], _Key]) -> dict[_Key, list[CaseNote]]:
    groups: dict[_Key, list[CaseNote]] = {}
    for note in notes:
        groups.setdefault(key(note), []).append(note)
    return groups


def _values(source: object, *names: str) -> dict[str, JsonValue]:
    return {name: getattr(source, name) for name in names}


def failure_repr(path: Path | str, line: int, *, message: str, text: str) -> ReprExceptionInfo:
    """Return a failure for pytest: `text` is shown in full, `message` in summaries.

    Workers of pytest-xdist send objects of these classes completely, and only the text of others.
    """
    lines = [f"{part}\n" for part in clean(text).rstrip().split("\n")]
    traceback = ReprTraceback([ReprEntryNative(lines)], None, style="native")
    return ReprExceptionInfo(traceback, ReprFileLocation(str(path), line, one_line(message)))


def error_text(error: EvalmetaError) -> str:
    """Return an error's message with its actions, as commands print it."""
    if not error.actions:
        return str(error)
    return "\n".join([str(error), "", "Try this:", indent("\n".join(error.actions), "  ")])


def _evaluation_json(evaluation: EvaluationResults, verdict: str) -> JsonObject:
    summary = evaluation.summary
    has_inputs = evaluation.first["inputs"] is not None
    cases = zip(evaluation.case_counts(), evaluation.cases().values(), strict=True)
    return {
        "verdict": verdict,
        **_values(summary, "pass_rate", "min_pass_rate"),
        "iterations": evaluation.first["iterations"],
        **_values(summary, *_COUNTED),
        "outcomes": [
            {"iteration": iteration, **_values(counts, "pass_rate", *_COUNTED)}
            for iteration, counts in evaluation.by_iteration().items()
        ],
        **({} if has_inputs else {"inputs": _NO_INPUTS}),
        "cases": {
            str(counts.number): {
                **_values(counts, "utterance", *_COUNTED),
                "outcomes": [
                    {name: note[name] for name in ("iteration", "verdict", "reason") if note[name]} for note in notes
                ],
                **({"inputs": cast("JsonValue", json.loads(notes[0]["inputs"] or "null"))} if has_inputs else {}),
            }
            for counts, notes in cases
        },
    }
