"""Runs as JUnit XML: a suite for each run, a testcase for each case, times in seconds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from evalmeta.model.json_value import json_text
from evalmeta.model.run import CaseResult, Verdict
from evalmeta.model.spending import ROLES, cost_lines, total_of, usd_text
from evalmeta.protocol.json_fields import to_timestamp
from evalmeta.report.details import case_name, case_text, counted_reason, exchanges, judged_text, not_passed
from evalmeta.report.results import (
    averages_of,
    both_verdicts,
    case_label,
    check_lines,
    doubt_codes,
    mean_text,
    missed_averages,
)
from evalmeta.report.summary import case_rates, quarantine_lines, reasons_text
from evalmeta.report.text import clean, count, decimal, shorten
from evalmeta.xmlio.writer import Node, Stream, node
from evalmeta.xmlio.writer import stream as stream_xml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.spending import Spent
    from evalmeta.report.report import Report


_SHOWN_K: Final = 10
_CAUSES: Final = {Verdict.FAILURE: "expectation", Verdict.ERROR: "case"}
_ELEMENTS: Final = {Verdict.FAILURE: "failure", Verdict.ERROR: "error"}


def stream(reports: Sequence[Report]) -> Iterator[str]:
    """Yield well-formed JUnit XML for any texts.

    UNDECIDED, forgiven failures and cases in quarantine are skipped; a partly judged case passes, with a property.
    What fails a run as a whole is one more testcase.
    """
    counts = sum(map(_counts, reports), Counter[str]())
    total = sum(report.duration for report in reports)
    root = {"name": "evalmeta", **_numbers(counts), "time": f"{total:.3f}"}
    suites = (_suite(report) for report in reports)
    yield from stream_xml(Stream("testsuites", suites, root), indent=2)


def _counts(report: Report) -> Counter[str]:
    counts = Counter({str(verdict): number for verdict, number in report.verdict_counts.items()})
    counts.update(failure.verdict for failure in report.run_failures)
    forgiven, quarantined = report.forgiven_failures, report.summary.quarantined
    return counts + Counter({Verdict.UNDECIDED: forgiven + quarantined}) - Counter({Verdict.FAILURE: forgiven})


def _numbers(counts: Counter[str]) -> dict[str, str]:
    return {
        "tests": f"{counts.total()}",
        "failures": f"{counts[Verdict.FAILURE]}",
        "errors": f"{counts[Verdict.ERROR]}",
        "skipped": f"{counts[Verdict.UNDECIDED]}",
    }


def _suite(report: Report) -> Stream:
    run = report.run
    times = {"time": f"{report.duration:.3f}", "timestamp": to_timestamp(run.started)}
    return Stream("testsuite", _content(report), {"name": clean(run.definition), **_numbers(_counts(report)), **times})


def _content(report: Report) -> Iterator[Node]:
    run = report.run
    yield node("properties", [node("property", name=name, value=clean(value)) for name, value in _properties(report)])
    for case in run.cases:
        yield _testcase(report, case)
    for name, verdict, why in report.run_failures:
        element = node(_ELEMENTS[verdict], clean(why), message=clean(why), type="run")
        yield node("testcase", [element], name=name, classname=clean(run.definition), time="0.000")


def _properties(report: Report) -> Iterator[tuple[str, str]]:
    run, summary = report.run, report.summary
    yield "run-id", run.id
    yield "subject", run.subject_name
    if run.subject_version:
        yield "subject-version", run.subject_version
    yield "iterations", f"{run.options.iterations}"
    yield "pass-rate", "none" if summary.pass_rate is None else f"{summary.pass_rate:g}"
    yield "min-pass-rate", f"{summary.min_pass_rate:g}"
    yield "partly-judged", f"{summary.partly_judged}"
    yield from ((f"quarantine-{place}", clean(line)) for place, line in enumerate(quarantine_lines(report)))
    yield "judged-results", f"{summary.coverage.judged}"
    yield "results", f"{summary.coverage.total}"
    if summary.min_decided is not None:
        yield "min-decided", f"{summary.min_decided:g}"
    yield "passed", "true" if report.has_passed else "false"
    yield "decision", report.decision()
    if report.baseline:
        yield "baseline", report.baseline.comparison.before
        yield "passed-against-baseline", "true" if report.baseline.passed else "false"
        yield "decision-by-baseline", report.baseline.text
    for name, reasons in report.undecided_reasons.items():
        yield f"undecided-{clean(name)}", f"{reasons.total()}"
        yield f"why-undecided-{clean(name)}", reasons_text(reasons)
    for average in summary.averages:
        mean = f"{mean_text(average)}, over {count(average.count, 'result')}: {average.verdict}"
        yield f"average-{clean(average.name)}-of-{case_label(average)}", mean
    for estimate in report.statistics.pass_at[:_SHOWN_K] if report.statistics and run.options.is_repeated else ():
        yield f"pass-at-{estimate.k}", f"{estimate.any_passes:g}"
        yield f"pass-hat-{estimate.k}", f"{estimate.all_pass:g}"
    for counts, rate in case_rates(run, report.statistics):
        yield f"pass-rate-of-{counts.number}", rate
    for place, line in enumerate(check_lines(report.run, report.tally.differences)):
        yield f"org-check-{place}", line.strip()
    yield from _costs(report.tally.spent)
    for measure in report.statistics.measures if report.statistics else ():
        yield f"measured-{clean(measure.name)}", f"{decimal(measure.mean)}, over {count(measure.count, 'result')}"


def _testcase(report: Report, case: CaseResult) -> Node:
    run, (file, line) = report.run, report.place_of(case.number)
    attributes = {"name": case_name(case, run), "classname": clean(run.definition)}
    if file:
        attributes["file"] = clean(file)
    if file and line:
        attributes["line"] = f"{line}"
    attributes["time"] = f"{max(0.0, case.ended - case.started):.3f}"
    properties = [node("property", name=name, value=clean(value)) for name, value in _case_properties(report, case)]
    content = [node("properties", properties)] if properties else []
    content += _outcome(report, case, report.verdict_of(case))
    return node("testcase", content, **attributes)


def _case_properties(report: Report, case: CaseResult) -> Iterator[tuple[str, str]]:
    """Yield the label, metadata, turns and means of a case, as far as it has any, and what was not judged."""
    if case.label:
        yield "label", case.label
    for name, value in (case.metadata or {}).items():
        yield f"metadata-{clean(name)}", shorten(json_text(value))
    for exchange in exchanges(case) if case.earlier else ():
        yield f"turn-{exchange.turn}-utterance", shorten(exchange.utterance)
        if exchange.generated is not None:
            yield f"turn-{exchange.turn}-answer", shorten(exchange.generated.outcome)
    if report.is_partly_judged(case):
        yield "partly-judged", judged_text(case)
    for average in averages_of(report.summary, case):
        yield f"average-{clean(average.name)}", mean_text(average)
    for result in case.results:
        if both := both_verdicts(result):
            yield f"verdicts-{clean(result.name)}", both
    if codes := doubt_codes(report.run, case):
        yield "doubts", ", ".join(codes)
    yield from _costs(case.spent)


def _costs(spent: Sequence[Spent]) -> Iterator[tuple[str, str]]:
    """Yield what each role cost, in words and, as far as it is known, in dollars."""
    for role in ROLES:
        total = total_of(spent, role)
        yield from ((f"cost-of-{role}", line) for line in cost_lines([row for row in spent if row.role == role]))
        if total.is_known and total.unknown < max(total.replies, 1):
            yield f"{role}-usd", usd_text(total.amount)


def _outcome(report: Report, case: CaseResult, verdict: Verdict) -> Iterator[Node]:
    message = counted_reason(report, case)
    if case.is_quarantined or verdict is Verdict.UNDECIDED or report.why_not_counted(case):
        yield node("skipped", case_text(case, report.summary), message=message)
    elif verdict is not Verdict.PASS:
        results = not_passed(case)
        worst = [result.name for result in results if result.verdict is results[0].verdict]
        missed = [average.name for average in missed_averages(report.summary, case)]
        cause = ", ".join(dict.fromkeys(map(clean, [*missed, *worst])))
        text = case_text(case, report.summary, traceback=True)
        yield node(_ELEMENTS[verdict], text, message=message, type=cause or _CAUSES[verdict])
