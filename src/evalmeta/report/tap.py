"""Runs as TAP version 14: a test point for each case, numbered through all runs."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from evalmeta.model.run import CaseResult, TestResult, Verdict
from evalmeta.report.details import case_name, judged_text, not_passed, why_not_passed
from evalmeta.report.results import averages_of, both_verdicts, check_lines, mean_text, score_text
from evalmeta.report.text import one_line, quote, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.report.report import Report


def stream(reports: Sequence[Report]) -> Iterator[str]:
    """Yield TAP: `not ok` for failures and errors, with a YAML block that says why, and SKIP for undecided cases.

    Forgiven failures and cases in quarantine have the directive TODO, with which TAP marks expected failures. What
    fails a run as a whole is one more point. The texts in YAML blocks are JSON strings.
    """
    points = sum(len(report.run.cases) + len(report.run_failures) for report in reports)
    yield f"TAP version 14\n1..{points}\n" if points else "TAP version 14\n1..0 # SKIP no cases\n"
    numbers = count(1)
    for report in reports:
        for line in _lines(report, numbers):
            yield f"{line}\n"


def _lines(report: Report, numbers: Iterator[int]) -> Iterator[str]:
    run = report.run
    yield f"# {one_line(f'{run.definition}: subject {run.subject_name}, run {run.id}', chars=200)}"
    yield f"# {one_line(report.decision(), chars=400)}"
    yield from (f"# {line}" for line in check_lines(report.run, report.tally.differences))
    for case in run.cases:
        yield from _case_point(next(numbers), report, case)
    for name, verdict, why in report.run_failures:
        yield f"not ok {next(numbers)} - {_escape(one_line(run.definition))}: {name}"
        yield from _block([f"message: {quote(why)}", f"severity: {_severity(verdict)}"])


def _case_point(number: int, report: Report, case: CaseResult) -> Iterator[str]:
    verdict = report.verdict_of(case)
    name, forgiven = _escape(case_name(case, report.run)), report.why_not_counted(case)
    directive = f" # TODO {_escape(one_line(forgiven))}" if forgiven else ""
    match verdict:
        case Verdict.PASS:
            yield f"ok {number} - {name}{directive}"
            if report.is_partly_judged(case):
                yield from _block([f"judged: {quote(judged_text(case))}"])
        case Verdict.UNDECIDED:
            yield f"ok {number} - {name} # SKIP {_escape(why_not_passed(case, report.summary))}"
        case _:
            yield f"not ok {number} - {name}{directive}"
            yield from _block(_diagnostics(report, case, verdict))


def _diagnostics(report: Report, case: CaseResult, verdict: Verdict) -> Iterator[str]:
    yield f"message: {quote(why_not_passed(case, report.summary))}"
    yield f"severity: {_severity(verdict)}"
    where = report.location(case)
    if where:
        yield f"at: {quote(where)}"
    if case.label:
        yield f"label: {quote(case.label)}"
    if case.earlier:
        yield "earlier:"
    for turn in case.earlier:
        yield f"  - utterance: {quote(shorten(turn.utterance))}"
        yield f"    answer: {quote(shorten(turn.generated.outcome))}"
    yield f"utterance: {quote(shorten(case.utterance))}"
    if case.generated:
        yield f"answer: {quote(shorten(case.generated.outcome))}"
    averages = averages_of(report.summary, case)
    if averages:
        yield "averages:"
    for average in averages:
        yield f"  - name: {quote(average.name)}"
        yield f"    mean: {quote(mean_text(average))}"
        yield f"    result: {average.verdict}"
    results = not_passed(case)
    if results:
        yield "results:"
    for result in results:
        yield from _result(result)


def _severity(verdict: Verdict) -> str:
    return "error" if verdict is Verdict.ERROR else "fail"


def _result(result: TestResult) -> Iterator[str]:
    yield f"  - name: {quote(result.name)}"
    yield f"    result: {result.verdict}"
    if result.turn > 0:
        yield f"    turn: {result.turn}"
    if result.threshold is not None:
        yield f"    score: {quote(score_text(result))}"
    yield f"    expected: {quote(shorten(result.expected))}"
    yield f"    actual: {quote(shorten(result.actual))}"
    yield f"    explanation: {quote(shorten(result.explanation or result.error or ''))}"
    if both := both_verdicts(result):
        yield f"    verdicts: {quote(shorten(both))}"


def _block(lines: Iterator[str] | Sequence[str]) -> Iterator[str]:
    yield "  ---"
    for line in lines:
        yield f"  {line}"
    yield "  ..."


def _escape(text: str) -> str:
    r"""Escape `#`, which begins a directive in TAP 14, and the backslash."""
    return text.replace("\\", "\\\\").replace("#", "\\#")
