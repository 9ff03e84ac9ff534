"""Runs in the Common Test Report Format (CTRF 0.0.0, ctrf.io); times are in milliseconds."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

from evalmeta.model.run import Verdict
from evalmeta.report.averages import averages_json, averages_of
from evalmeta.report.details import case_name, case_text, judged_text, result_text, why_not_passed
from evalmeta.report.org_checks import check_lines, doubt_codes, verdicts_json
from evalmeta.report.report import (
    decision,
    duration,
    forgiven_failures,
    has_passed,
    is_partly_judged,
    place_of,
    run_failures,
    verdict_counts,
    verdict_of,
    why_not_counted,
)
from evalmeta.report.summary import coverage_json, measures_json
from evalmeta.report.text import JsonDocument, JsonList, clean, json_text, shorten, stream_json
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import CaseResult, TestResult
    from evalmeta.report.report import Report


# CTRF has no status for errors; rawStatus keeps the verdict.
_STATUS: Final = {
    Verdict.PASS: "passed",
    Verdict.FAILURE: "failed",
    Verdict.ERROR: "failed",
    Verdict.UNDECIDED: "other",
}


def stream(reports: Sequence[Report]) -> Iterator[str]:
    """Yield one CTRF document for all runs: a test for each case of each iteration, with its results as steps.

    ERROR is `failed` with the rawStatus ERROR, and UNDECIDED is `other`, both as the summary counts them. So is a
    failure that a baseline forgives. A partly judged case is `passed`, with `partlyJudged` in its extra. A run that did
    not complete, judged too little, or is worse than its baseline, has one more failed test. A case is `flaky` if it
    passed in some iterations and failed in others.
    `results.extra.runs` says whether each run passed by its pass rate.
    """
    results: dict[str, JsonValue | JsonList] = {
        "tool": {"name": "evalmeta", "version": __version__},
        "summary": _summary(reports),
        "tests": JsonList(test for report in reports for test in _tests(report)),
        "extra": {"runs": [_run(report) for report in reports]},
    }
    head: JsonObject = {"reportFormat": "CTRF", "specVersion": "0.0.0", "generatedBy": "evalmeta"}
    yield from stream_json(JsonDocument({**head, "results": JsonDocument(results)}), partial(json_text, indent=2))
    yield "\n"


def _summary(reports: Sequence[Report]) -> JsonObject:
    counts: Counter[str] = Counter()
    for report in reports:
        for verdict, number in verdict_counts(report).items():
            counts[_STATUS[verdict]] += number
        counts["failed"] += len(run_failures(report)) - forgiven_failures(report)
        counts["other"] += forgiven_failures(report) + report.summary.quarantined
    start = min((report.run.started for report in reports), default=0.0)
    stop = max((report.run.started + duration(report) for report in reports), default=0.0)
    return {
        "tests": counts.total(),
        **{status: counts[status] for status in ("passed", "failed", "skipped", "pending", "other")},
        "flaky": sum(len(report.statistics.flaky) for report in reports if report.statistics),
        "suites": len(reports),
        "start": _milliseconds(start),
        "stop": _milliseconds(stop),
    }


def _run(report: Report) -> JsonObject:
    run, summary = report.run, report.summary
    averages: JsonObject = {"averages": [*averages_json(summary.averages)]} if summary.averages else {}
    measures = report.statistics.measures if report.statistics else ()
    measured: JsonObject = {"measures": [*measures_json(measures)]} if measures else {}
    checks: list[JsonValue] = [clean(line.strip()) for line in check_lines(run, report.tally.differences)]
    return {
        "id": clean(run.id),
        "definition": clean(run.definition),
        "subject": clean(run.subject_name),
        "subjectVersion": None if run.subject_version is None else clean(run.subject_version),
        "iterations": run.options.iterations,
        "passed": has_passed(report),
        "decision": clean(decision(report)),
        "passRate": summary.pass_rate,
        "minPassRate": summary.min_pass_rate,
        "errors": summary.errors,
        "undecided": summary.undecided,
        "partlyJudged": summary.partly_judged,
        "quarantined": summary.quarantined,
        **coverage_json(report),
        **({"orgChecks": checks} if checks else {}),
        **averages,
        **measured,
    }


def _tests(report: Report) -> Iterator[JsonObject]:
    flaky = {counts.number for counts in report.statistics.flaky} if report.statistics else set()
    for case in report.run.cases:
        yield _test(report, case, is_flaky=case.number in flaky)
    for name, verdict, why in run_failures(report):
        suite = [clean(report.run.definition)]
        outcome: JsonObject = {"name": name, "status": "failed", "rawStatus": str(verdict), "duration": 0}
        yield {**outcome, "suite": suite, "message": clean(why)}


def _test(report: Report, case: CaseResult, *, is_flaky: bool) -> JsonObject:
    verdict, (file, line) = verdict_of(report, case), place_of(report, case.number)
    forgiven = clean(why_not_counted(report, case))
    why = result_text(case, report.summary) if case.is_quarantined else why_not_passed(case, report.summary)
    failed = (
        {"message": f"{forgiven}{': ' * bool(forgiven)}{why}", "trace": case_text(case, report.summary, traceback=True)}
        if verdict is not Verdict.PASS or forgiven
        else {}
    )
    return {
        "name": case_name(case, report.run),
        "status": "other" if forgiven else _STATUS[verdict],
        "rawStatus": str(verdict),
        "duration": max(0, _milliseconds(case.ended - case.started)),
        "start": _milliseconds(case.started),
        "stop": _milliseconds(case.ended),
        "suite": [clean(report.run.definition)],
        "flaky": is_flaky,
        "parameters": {"utterance": shorten(case.utterance)},
        "steps": [_step(result) for result in case.results],
        "extra": _extra(report, case),
        **failed,
        **({"filePath": clean(file)} if file else {}),
        **({"line": line} if file and line else {}),
    }


def _step(result: TestResult) -> JsonObject:
    extra: dict[str, JsonValue] = {
        "verdict": str(result.verdict),
        "expected": shorten(result.expected),
        "actual": shorten(result.actual),
        "explanation": shorten(result.explanation or result.error or ""),
        "score": result.score,
        "rater": None if result.rater is None else clean(result.rater),
    }
    if result.turn:
        extra["turn"] = result.turn
    if result.threshold is not None:
        extra["threshold"] = result.threshold
    return {"name": clean(result.name), "status": _STATUS[result.verdict], "extra": {**extra, **verdicts_json(result)}}


def _extra(report: Report, case: CaseResult) -> JsonObject:
    extra: dict[str, JsonValue] = {"number": case.number, "iteration": case.iteration}
    if is_partly_judged(report, case):
        extra["partlyJudged"] = judged_text(case)
    if case.label:
        extra["label"] = clean(case.label)
    if case.earlier:
        extra["earlierTurns"] = [
            {"utterance": shorten(turn.utterance), "answer": shorten(turn.generated.outcome)} for turn in case.earlier
        ]
    if codes := doubt_codes(report.run, case):
        extra["doubts"] = [*codes]
    averages = averages_of(report.summary, case)
    if averages:
        extra["averages"] = [*averages_json(averages)]
    if case.generated is None:
        return extra
    tokens = case.generated.tokens
    return extra | {
        "answer": shorten(case.generated.outcome),
        "latencyMilliseconds": case.generated.latency_ms,
        "inputTokens": tokens.input if tokens else None,
        "outputTokens": tokens.output if tokens else None,
    }


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
