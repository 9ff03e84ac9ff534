"""Runs as JSON: results objects of the Connect API, a line for each case result, or one document of CTRF (ctrf.io)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from evalmeta.model.run import Verdict
from evalmeta.protocol.connect import write_case, write_quarantine, write_run
from evalmeta.protocol.json_fields import object_at
from evalmeta.report.details import case_name, case_text, judged_text, result_text, why_not_passed
from evalmeta.report.report import (
    counts_as_passed,
    decision,
    duration,
    forgiven_failures,
    has_passed,
    is_partly_judged,
    outcome,
    place_of,
    run_failures,
    undecided_reasons,
    verdict_counts,
    verdict_of,
    why_not_counted,
)
from evalmeta.report.results import averages_of, check_lines, doubt_codes
from evalmeta.report.summary import shown_reasons
from evalmeta.report.text import JsonDocument, JsonList, clean, escape_unsafe, json_text, shorten, stream_json
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import Average, CaseResult, Run, Summary, TestResult
    from evalmeta.model.statistics import Interval, Measure, RunStatistics
    from evalmeta.report.report import BaselineVerdict, Report


def stream(reports: Sequence[Report]) -> Iterator[str]:
    r"""Yield one run as an object, and any other number of runs as a list.

    Texts are complete; characters that could act on a terminal are written as escapes such as `\u009b`.
    """
    runs = [run_document(report) for report in reports]
    document = runs[0] if len(runs) == 1 else JsonList(runs)
    yield from map(escape_unsafe, stream_json(document))
    yield "\n"


def run_document(report: Report) -> JsonDocument:
    """Return a run's results object with more under `evalmeta`: counts, the pass rate, how many results were judged.

    There are also `averages`, `statistics` and what a `baseline` decides, where they are known.
    """
    run = write_run(replace(report.run, cases=()), escape=False)
    own = {**object_at(run, "evalmeta"), "passRate": report.summary.pass_rate, **coverage_json(report)}
    own["counts"] = counts_json(report.summary)
    if report.summary.averages:
        own["averages"] = [*averages_json(report.summary.averages)]
    if report.statistics is not None:
        own["statistics"] = statistics_json(report.run, report.statistics)
    if report.baseline is not None:
        own["baseline"] = _baseline(report, report.baseline)
    return JsonDocument({**run, "testCases": JsonList(map(write_case, report.run.cases)), "evalmeta": own})


def _baseline(report: Report, baseline: BaselineVerdict) -> JsonObject:
    """Return what the comparison with a baseline decides, and the numbers of the cases whose failures do not count."""
    return {
        "name": baseline.comparison.before,
        "passed": counts_as_passed(report),
        "decision": outcome(report),
        "forgiven": sorted(filter(baseline.forgives, report.times.failed)),
    }


def stream_lines(reports: Sequence[Report]) -> Iterator[str]:
    """Yield a line with an object for each case result; all objects have the same keys, and unknown values are null.

    The keys `utterance`, `outcome`, `topic`, `actions`, `latency_ms`, `tokens` and `error` are those of recorded
    answers, so that a subject can replay the file. Texts are complete; the traces of answers are left out.
    """
    return (f"{json_text(_case(report, case))}\n" for report in reports for case in report.run.cases)


def _case(report: Report, case: CaseResult) -> JsonObject:
    return {
        "definition": report.run.definition,
        "iteration": case.iteration,
        "number": case.number,
        "verdict": str(verdict_of(report, case)),
        "partly_judged": is_partly_judged(report, case),
        "utterance": case.utterance,
        **_answer(case.generated),
        "error": case.error,
        "results": [{**_result(result), **verdicts_json(result)} for result in case.results],
        **({"doubts": [*codes]} if (codes := doubt_codes(report.run, case)) else {}),
        "label": case.label or None,
        "earlier": [{"utterance": turn.utterance, **_answer(turn.generated)} for turn in case.earlier],
        **({"traceback": case.traceback} if case.traceback else {}),
        **({"quarantine": write_quarantine(case.quarantine)} if case.quarantine else {}),
    }


def _answer(generated: GeneratedData | None) -> JsonObject:
    if generated is None:
        return {"outcome": None, "topic": None, "actions": None, "latency_ms": None, "tokens": None}
    tokens, actions = generated.tokens, generated.actions
    return {
        "outcome": generated.outcome,
        "topic": generated.topic,
        "actions": None
        if actions is None
        else [
            {"name": action.name, "input": action.input, "output": action.output, "latency_ms": action.latency_ms}
            for action in actions
        ],
        "latency_ms": generated.latency_ms,
        "tokens": {"input": tokens.input, "output": tokens.output} if tokens else None,
    }


def _result(result: TestResult) -> JsonObject:
    return {
        "name": result.name,
        "label": result.label,
        "verdict": str(result.verdict),
        "score": result.score,
        "expected": result.expected,
        "actual": result.actual,
        "explanation": result.explanation,
        "detail": result.detail,
        "rater": result.rater,
        "error": result.error,
        "threshold": result.threshold,
        "turn": result.turn or None,
    }


def statistics_json(run: Run, statistics: RunStatistics) -> JsonObject:
    """Return the statistics as JSON values; unknown numbers are null, and `cases` need several iterations."""
    body: dict[str, JsonValue] = {
        "passRateInterval": _interval_json(statistics.interval),
        "flaky": [counts.number for counts in statistics.flaky],
        "latencyMilliseconds": None if statistics.latency is None else statistics.latency._asdict(),
        "tokens": {
            "input": statistics.tokens.input if statistics.tokens else None,
            "output": statistics.tokens.output if statistics.tokens else None,
            "answers": statistics.told_tokens,
        },
        "answers": statistics.answers,
    }
    if run.options.iterations > 1:
        body["passAtK"] = [
            {
                "k": pass_at_k.k,
                "anyPasses": pass_at_k.any_passes,
                "allPass": pass_at_k.all_pass,
                "cases": pass_at_k.cases,
            }
            for pass_at_k in statistics.pass_at
        ]
        body["cases"] = [
            {
                "testNumber": case.number,
                "passed": case.passed - case.partly_judged,
                "partlyJudged": case.partly_judged,
                "failed": case.failed,
                "errors": case.errors,
                "undecided": case.undecided,
                **({"quarantined": case.quarantined} if case.quarantined else {}),
                "passRate": case.pass_rate,
                "passRateInterval": _interval_json(interval),
            }
            for case, interval in zip(statistics.cases, statistics.intervals, strict=True)
        ]
    if (rate := statistics.corrected) is not None:
        body["correctedForJudge"] = {
            "raw": rate.raw,
            "answers": rate.answers,
            "rate": rate.rate,
            "interval": _interval_json(rate.interval),
            "judge": rate.check._asdict(),
        }
    if statistics.measures:
        body["measures"] = [*measures_json(statistics.measures)]
    return body


def counts_json(summary: Summary) -> JsonObject:
    """Return how many case results have which verdict as JSON values, partly judged ones apart."""
    return {
        "passed": summary.passed,
        "partlyJudged": summary.partly_judged,
        "failed": summary.failed,
        "errors": summary.errors,
        "undecided": summary.undecided,
        "quarantined": summary.quarantined,
    }


def coverage_json(report: Report) -> JsonObject:
    """Return how many results were judged, and why the others were not, as JSON values."""
    summary = report.summary
    coverage, min_decided = summary.coverage, summary.min_decided
    return {
        "coverage": {
            "judged": coverage.judged,
            "results": coverage.total,
            "share": coverage.share,
            "required": min_decided,
        },
        "undecidedResults": [
            {
                "name": clean(name),
                "count": reasons.total(),
                "reasons": [{"reason": clean(reason), "count": number} for reason, number in shown_reasons(reasons)],
            }
            for name, reasons in undecided_reasons(report).items()
        ],
    }


def measures_json(measures: Sequence[Measure]) -> list[JsonObject]:
    """Return the means of measured results as JSON values."""
    return [{"name": clean(measure.name), "mean": measure.mean, "count": measure.count} for measure in measures]


def _interval_json(interval: Interval | None) -> JsonObject | None:
    return None if interval is None else {"low": interval.low, "high": interval.high, "confidence": 0.95}


def averages_json(averages: Sequence[Average]) -> list[JsonObject]:
    """Return means as JSON values."""
    return [
        {
            "testNumber": average.number,
            "case": clean(average.label),
            "name": clean(average.name),
            "mean": average.score,
            "threshold": average.threshold,
            "results": average.count,
            "verdict": str(average.verdict),
        }
        for average in averages
    ]


def verdicts_json(result: TestResult) -> JsonObject:
    """Return both verdicts of a result as JSON values; empty if it was not checked."""
    return {"verdicts": dict(result.verdicts._asdict())} if result.verdicts else {}


# CTRF has no status for errors; rawStatus keeps the verdict.
_STATUS: Final = {
    Verdict.PASS: "passed",
    Verdict.FAILURE: "failed",
    Verdict.ERROR: "failed",
    Verdict.UNDECIDED: "other",
}


def stream_ctrf(reports: Sequence[Report]) -> Iterator[str]:
    """Yield one document of the Common Test Report Format 0.0.0: a test for each case result, its results as steps.

    ERROR is `failed` with the rawStatus ERROR, and UNDECIDED is `other`, both as the summary counts them. So is a
    failure that a baseline forgives. A partly judged case is `passed`, with `partlyJudged` in its extra. A run that did
    not complete, judged too little, or is worse than its baseline, has one more failed test. A case is `flaky` if it
    passed in some iterations and failed in others.
    `results.extra.runs` says whether each run passed by its pass rate.
    """
    results: dict[str, JsonValue | JsonList] = {
        "tool": {"name": "evalmeta", "version": __version__},
        "summary": _ctrf_summary(reports),
        "tests": JsonList(test for report in reports for test in _tests(report)),
        "extra": {"runs": [_ctrf_run(report) for report in reports]},
    }
    head: JsonObject = {"reportFormat": "CTRF", "specVersion": "0.0.0", "generatedBy": "evalmeta"}
    yield from stream_json(JsonDocument({**head, "results": JsonDocument(results)}), partial(json_text, indent=2))
    yield "\n"


def _ctrf_summary(reports: Sequence[Report]) -> JsonObject:
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


def _ctrf_run(report: Report) -> JsonObject:
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
