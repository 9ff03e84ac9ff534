"""Runs as JSON: results objects of the Connect API, a line for each case result, or one document of CTRF (ctrf.io)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from evalmeta.model.aggregation import coverage_of
from evalmeta.model.generated_data import actions_json
from evalmeta.model.run import Average, CaseResult, Run, Summary, TestResult, Verdict
from evalmeta.model.spending import costs_json, merged
from evalmeta.model.steps import step_tree
from evalmeta.protocol.connect import write_case, write_quarantine, write_run
from evalmeta.protocol.generated_data import write_tokens
from evalmeta.protocol.json_fields import object_at
from evalmeta.report.details import case_name, case_text, counted_reason, judged_text
from evalmeta.report.matrix import matrix_json
from evalmeta.report.results import averages_of, check_lines, doubt_codes
from evalmeta.report.summary import shown_reasons
from evalmeta.report.text import (
    JsonDocument,
    JsonList,
    attributes_json,
    clean,
    escape_unsafe,
    json_line,
    json_text,
    shorten,
    stream_json,
)
from evalmeta.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.statistics import CaseCounts, Interval, Measure, RunStatistics
    from evalmeta.report.report import Report


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

    There are also `averages`, `statistics`, what a `baseline` decides, the agents of a `matrix` and, of a shard, what
    identifies the content of its `test`, where they are known.
    """
    run, summary = write_run(replace(report.run, cases=()), escape=False), report.summary
    own = {**object_at(run, "evalmeta"), "passRate": summary.pass_rate, **_coverage(report)}
    own |= {"counts": counts_json(summary), **_given(averages=_averages(summary.averages))}
    if report.test is not None:
        own["test"] = report.test
    if report.statistics is not None:
        own["statistics"] = statistics_json(report.run, report.statistics)
    if report.baseline is not None:
        own["baseline"] = {
            "name": report.baseline.comparison.before,
            "passed": report.counts_as_passed,
            "decision": report.outcome(),
            # The numbers of the cases whose failures do not count.
            "forgiven": sorted(filter(report.baseline.forgives, report.times.failed)),
        }
    if report.matrix is not None:
        own["matrix"] = matrix_json(report.matrix)
    return JsonDocument({**run, "testCases": JsonList(map(_case_document, report.run.cases)), "evalmeta": own})


def _case_document(case: CaseResult) -> JsonObject:
    return {**write_case(case), **_given(cost=costs_json(case.spent))}


def stream_lines(reports: Sequence[Report]) -> Iterator[str]:
    """Yield a line with an object for each case result; all objects have the same keys, and unknown values are null.

    The keys `utterance`, `outcome`, `topic`, `actions`, `latency_ms`, `tokens` and `error` are those of recorded
    answers, so that a subject can replay the file. Texts are complete; the traces of answers are left out.
    """
    return (f"{json_line(_case(report, case))}\n" for report in reports for case in report.run.cases)


def _case(report: Report, case: CaseResult) -> JsonObject:
    verdict = report.verdict_of(case)
    return {
        "definition": report.run.definition,
        "iteration": case.iteration,
        "number": case.number,
        "verdict": verdict,
        "partly_judged": verdict is Verdict.PASS and coverage_of(case).share < 1,
        "utterance": case.utterance,
        **_answer(case.generated),
        "error": case.error,
        "results": [*map(_result, case.results)],
        **(_given(doubts=doubt_codes(report.run, case)) if report.run.doubts else {}),
        "label": case.label or None,
        "earlier": [{"utterance": turn.utterance, **_answer(turn.generated)} for turn in case.earlier],
        **({"error_origin": case.origin.value} if case.origin else {}),
        **({"traceback": case.traceback} if case.traceback else {}),
        **({"quarantine": write_quarantine(case.quarantine)} if case.quarantine else {}),
        **({"asked_again": case.asked_again} if case.asked_again else {}),
        **_given(cost=costs_json(case.spent), metadata=case.metadata, tags=[*case.tags] or None),
        **_given(unanswered=_unanswered(case.unanswered)),
    }


def _unanswered(known: GeneratedData | None) -> JsonValue:
    """Return what is known of a turn without an answer."""
    if known is None:
        return None
    values = _answer(known)
    return {key: values[key] for key in ("topic", "actions", "tokens", "trace") if key in values}


def _answer(generated: GeneratedData | None) -> JsonObject:
    if generated is None:
        return dict.fromkeys(("outcome", "topic", "actions", "latency_ms", "tokens"))
    tokens = generated.tokens
    return {
        "outcome": generated.outcome,
        "topic": generated.topic,
        "actions": actions_json(generated.actions, with_latencies=True),
        "latency_ms": generated.latency_ms,
        **({} if generated.first_token_ms is None else {"first_token_ms": generated.first_token_ms}),
        "tokens": write_tokens(tokens) if tokens else None,
        **({} if generated.state is None else {"state": generated.state}),
        **({} if generated.handoffs is None else {"handoffs": list(generated.handoffs)}),
        **({"trace": generated.trace} if generated.trace is not None and step_tree(generated) else {}),
    }


def _result(result: TestResult) -> JsonObject:
    # Written out, because a million lines have several million results.
    values: JsonObject = {
        "name": result.name,
        "label": result.label,
        "verdict": result.verdict,
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
    return {**values, **_verdicts(result)} if result.verdicts else values


def statistics_json(run: Run, statistics: RunStatistics) -> JsonObject:
    """Return the statistics as JSON values; unknown numbers are null, and `cases` need several iterations."""
    tokens, corrected = statistics.tokens, statistics.corrected
    body: dict[str, JsonValue] = {
        "passRateInterval": _interval(statistics.interval),
        "flaky": [counts.number for counts in statistics.flaky],
        "latencyMilliseconds": statistics.latency and statistics.latency._asdict(),
        **({"firstTokenMilliseconds": statistics.first_token._asdict()} if statistics.first_token else {}),
        "tokens": {
            "input": tokens.input if tokens else None,
            "output": tokens.output if tokens else None,
            "answers": statistics.told_tokens,
        },
        "answers": statistics.answers,
        **_given(cost=costs_json(statistics.spent)),
    }
    if run.options.is_repeated:
        cases = zip(statistics.cases, statistics.intervals, strict=True)
        body["passAtK"] = [
            attributes_json(chance, "k", "any_passes", "all_pass", "cases") for chance in statistics.pass_at
        ]
        body["cases"] = [_case_counts(counts, interval) for counts, interval in cases]
    if corrected is not None:
        rates, interval = attributes_json(corrected, "raw", "answers", "rate"), _interval(corrected.interval)
        body["correctedForJudge"] = {**rates, "interval": interval, "judge": corrected.check._asdict()}
    return {**body, **_given(measures=_measures(statistics.measures), functions=_measures(statistics.functions))}


def _case_counts(counts: CaseCounts, interval: Interval | None) -> JsonObject:
    return {
        "testNumber": counts.number,
        "passed": counts.passed - counts.partly_judged,
        **attributes_json(counts, "partly_judged", "failed", "errors", "undecided"),
        **_given(quarantined=counts.quarantined),
        "passRate": counts.pass_rate,
        "passRateInterval": _interval(interval),
    }


def counts_json(summary: Summary) -> JsonObject:
    """Return how many case results have which verdict as JSON values, partly judged ones apart."""
    return attributes_json(summary, "passed", "partly_judged", "failed", "errors", "undecided", "quarantined")


def _coverage(report: Report) -> JsonObject:
    """Return how many results were judged, and why the others were not."""
    judged, total, _ = coverage = report.summary.coverage
    required = report.summary.min_decided
    return {
        "coverage": {"judged": judged, "results": total, "share": coverage.share, "required": required},
        "undecidedResults": [
            {
                "name": clean(name),
                "count": reasons.total(),
                "reasons": [{"reason": clean(reason), "count": number} for reason, number in shown_reasons(reasons)],
            }
            for name, reasons in report.undecided_reasons.items()
        ],
    }


def _measures(measures: Sequence[Measure]) -> JsonValue:
    return [{"name": clean(measure.name), "mean": measure.mean, "count": measure.count} for measure in measures]


def _interval(interval: Interval | None) -> JsonObject | None:
    return interval and {"low": interval.low, "high": interval.high, "confidence": 0.95}


def _averages(averages: Sequence[Average]) -> JsonValue:
    return [
        {
            "testNumber": average.number,
            "case": clean(average.label),
            "name": clean(average.name),
            "mean": average.score,
            "threshold": average.threshold,
            "results": average.count,
            "verdict": average.verdict,
        }
        for average in averages
    ]


def _verdicts(result: TestResult) -> JsonObject:
    """Return both verdicts of a result; empty if it was not checked."""
    return {"verdicts": result.verdicts._asdict()} if result.verdicts else {}


def _given(**values: JsonValue) -> JsonObject:
    """Return those of the values that are not empty."""
    return {name: value for name, value in values.items() if value}


# CTRF has no status for errors; rawStatus keeps the verdict.
_STATUS: Final = {
    Verdict.PASS: "passed",
    Verdict.FAILURE: "failed",
    Verdict.ERROR: "failed",
    Verdict.UNDECIDED: "other",
}


def stream_ctrf(reports: Sequence[Report]) -> Iterator[str]:
    """Yield one document of the Common Test Report Format 0.0.0: a test for each case result, its results as steps.

    ERROR is `failed` with the rawStatus ERROR; UNDECIDED, forgiven failures and cases in quarantine are `other`. What
    fails a run as a whole is one more failed test. `results.extra.runs` says whether runs passed by their pass rate.
    """
    spent = merged(row for report in reports for row in report.tally.spent)
    results: dict[str, JsonValue | JsonList] = {
        "tool": {"name": "evalmeta", "version": __version__},
        "summary": _ctrf_summary(reports),
        "tests": JsonList(test for report in reports for test in _tests(report)),
        "extra": {"runs": [*map(_ctrf_run, reports)], **_given(cost=costs_json(spent))},
    }
    head: JsonObject = {"reportFormat": "CTRF", "specVersion": "0.0.0", "generatedBy": "evalmeta"}
    yield from stream_json(JsonDocument({**head, "results": JsonDocument(results)}), partial(json_text, indent=2))
    yield "\n"


def _ctrf_summary(reports: Sequence[Report]) -> JsonObject:
    counts: Counter[str] = Counter()
    for report in reports:
        for verdict, number in report.verdict_counts.items():
            counts[_STATUS[verdict]] += number
        counts["failed"] += len(report.run_failures) - report.forgiven_failures
        counts["other"] += report.forgiven_failures + report.summary.quarantined
    start = min((report.run.started for report in reports), default=0.0)
    stop = max((report.run.started + report.duration for report in reports), default=0.0)
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
    rates = ("pass_rate", "min_pass_rate", "errors", "undecided", "partly_judged", "quarantined")
    return {
        "id": clean(run.id),
        "definition": clean(run.definition),
        "subject": clean(run.subject_name),
        "subjectVersion": None if run.subject_version is None else clean(run.subject_version),
        "iterations": run.options.iterations,
        "passed": report.has_passed,
        "decision": clean(report.decision()),
        **attributes_json(summary, *rates),
        **_coverage(report),
        **_given(
            orgChecks=[clean(line.strip()) for line in check_lines(run, report.tally.differences)],
            averages=_averages(summary.averages),
            measures=_measures(report.statistics.measures if report.statistics else ()),
            cost=costs_json(report.tally.spent),
        ),
    }


def _tests(report: Report) -> Iterator[JsonObject]:
    flaky = {counts.number for counts in report.statistics.flaky} if report.statistics else set()
    for case in report.run.cases:
        yield _test(report, case, is_flaky=case.number in flaky)
    for name, verdict, why in report.run_failures:
        status: JsonObject = {"name": name, "status": "failed", "rawStatus": verdict, "duration": 0}
        yield {**status, "suite": [clean(report.run.definition)], "message": clean(why)}


def _test(report: Report, case: CaseResult, *, is_flaky: bool) -> JsonObject:
    verdict, (file, line) = report.verdict_of(case), report.place_of(case.number)
    forgiven, failed = report.why_not_counted(case), dict[str, str]()
    if verdict is not Verdict.PASS or forgiven:
        trace = case_text(case, report.summary, traceback=True)
        failed = {"message": counted_reason(report, case), "trace": trace}
    return {
        "name": case_name(case, report.run),
        "status": "other" if forgiven else _STATUS[verdict],
        "rawStatus": verdict,
        "duration": max(0, _milliseconds(case.ended - case.started)),
        "start": _milliseconds(case.started),
        "stop": _milliseconds(case.ended),
        "suite": [clean(report.run.definition)],
        "flaky": is_flaky,
        "parameters": {"utterance": shorten(case.utterance)},
        "steps": [*map(_step, case.results)],
        "extra": _extra(report, case),
        **failed,
        **_given(filePath=clean(file or ""), line=line if file else None),
    }


def _step(result: TestResult) -> JsonObject:
    extra: JsonObject = {
        "verdict": result.verdict,
        "expected": shorten(result.expected),
        "actual": shorten(result.actual),
        "explanation": shorten(result.explanation or result.error or ""),
        "score": result.score,
        "rater": None if result.rater is None else clean(result.rater),
        **_given(turn=result.turn),
        **({} if result.threshold is None else {"threshold": result.threshold}),
        **_verdicts(result),
    }
    return {"name": clean(result.name), "status": _STATUS[result.verdict], "extra": extra}


def _extra(report: Report, case: CaseResult) -> JsonObject:
    extra: JsonObject = {
        "number": case.number,
        "iteration": case.iteration,
        **_given(
            partlyJudged=judged_text(case) if report.is_partly_judged(case) else "",
            label=clean(case.label),
            earlierTurns=[
                {"utterance": shorten(turn.utterance), "answer": shorten(turn.generated.outcome)}
                for turn in case.earlier
            ],
            doubts=doubt_codes(report.run, case),
            averages=_averages(averages_of(report.summary, case)),
            cost=costs_json(case.spent),
        ),
    }
    if case.generated is None:
        return extra
    tokens = case.generated.tokens
    return {
        **extra,
        "answer": shorten(case.generated.outcome),
        "latencyMilliseconds": case.generated.latency_ms,
        "inputTokens": tokens.input if tokens else None,
        "outputTokens": tokens.output if tokens else None,
    }


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
