"""Runs as traces of OpenTelemetry: spans of runs, cases and turns, and an event for each verdict, in OTLP JSON Lines.

A case is a trace with its turns, and a run is a trace of its own, to which its cases have links: traces stay small, and
one turn can be found by its trace. All ids follow from the run, so that a second export overwrites the first.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from evalmeta.model.run import RunStatus, TestResult, Verdict
from evalmeta.report.details import case_name, counted_reason, exchanges, results_of
from evalmeta.report.report import Report, why_incomplete
from evalmeta.report.text import attributes_json, clean, escape_unsafe
from evalmeta.traces.exported_turns import CASE, RUN, TEST, TURN, turn_attributes
from evalmeta.traces.requests import request_lines
from evalmeta.traces.spans import LogEvent, Span, SpanEvent, SpanLink

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.run import CaseResult, Run
    from evalmeta.report.details import Exchange

_EVALUATION: Final = "gen_ai.evaluation.result"
_LABELS: Final = {Verdict.PASS: "pass", Verdict.FAILURE: "fail", Verdict.ERROR: "error", Verdict.UNDECIDED: "undecided"}
_NOT_PASSED: Final = frozenset({"failure", "aborted"})
_COUNTS: Final = ("total", "passed", "partly_judged", "failed", "errors", "undecided", "quarantined")


def stream(reports: Sequence[Report]) -> Iterator[str]:
    """Yield requests of OTLP as JSON Lines: `resourceSpans` and `resourceLogs`, as the OpenTelemetry Collector writes.

    Several runs also have a span of the suite, with links to them. A case is an error if it failed or ended in an
    error, a turn if the agent did not answer. Texts are complete.
    """
    return (f"{escape_unsafe(line)}\n" for line in request_lines(_records(reports)))


def _records(reports: Sequence[Report]) -> Iterator[Span | LogEvent]:
    if len(reports) > 1:
        yield _suite(reports)
    for report in reports:
        run = _run_span(report)
        yield run
        for case in report.run.cases:
            yield from _case_records(report, case, run)


def _link(*parts: object) -> SpanLink:
    """Return the ids of what these parts identify."""
    digest = sha256("\n".join(map(str, parts)).encode(errors="replace")).hexdigest()
    return SpanLink(digest[:32], digest[32:48])


def _run_key(run: Run) -> tuple[object, ...]:
    # Ids of runs are only unique in one store.
    return ("run", run.id, run.subject_name, f"{run.started:.6f}")


def _suite(reports: Sequence[Report]) -> Span:
    keys = [_run_key(report.run) for report in reports]
    own, runs = _link("suite", *sorted(map(str, keys))), tuple(_link(*key) for key in keys)
    failed = [report for report in reports if _status(report) in _NOT_PASSED]
    return Span(
        *own,
        "",
        "test suite",
        _nanoseconds(min(report.run.started for report in reports)),
        _nanoseconds(max(report.run.started + report.duration for report in reports)),
        {"evalmeta.suite.runs": len(reports), "evalmeta.suite.failed_runs": len(failed)},
        error=f"{len(failed)} of {len(reports)} runs not passed" if failed else None,
        links=runs,
    )


def _run_span(report: Report) -> Span:
    run, summary, status = report.run, report.summary, _status(report)
    counts = attributes_json(summary, *_COUNTS)
    return Span(
        *_link(*_run_key(run)),
        "",
        f"test run {clean(run.definition)}",
        _nanoseconds(run.started),
        _nanoseconds(run.started + report.duration),
        {
            "test.suite.run.status": status,
            **_identity(run),
            "evalmeta.run.decision": report.outcome(),
            "evalmeta.run.iterations": run.options.iterations,
            "evalmeta.run.pass_rate": summary.pass_rate,
            "evalmeta.run.min_pass_rate": summary.min_pass_rate,
            **{f"evalmeta.run.cases.{name}": counts[key] for name, key in zip(_COUNTS, counts, strict=True)},
        },
        error=report.outcome() if status in _NOT_PASSED else None,
    )


def _status(report: Report) -> str:
    """Return the status of a run in the words of OpenTelemetry's conventions for tests."""
    if not report.run.status.is_over:
        return "in_progress"
    if report.run.status is RunStatus.TERMINATED or why_incomplete(report.run):
        return "aborted"
    return "success" if report.counts_as_passed else "failure"


def _identity(run: Run) -> JsonObject:
    return {
        TEST: run.definition,
        RUN: run.id,
        "evalmeta.subject.name": run.subject_name,
        "evalmeta.subject.version": run.subject_version,
    }


def _case_records(report: Report, case: CaseResult, run: Span) -> Iterator[Span | LogEvent]:
    key = (*_run_key(report.run), case.iteration, case.number)
    own = _link(*key)
    identity = {**_identity(report.run), CASE: case.number, "evalmeta.case.iteration": case.iteration}
    yield _case_span(report, case, own, run, identity)
    start = _nanoseconds(case.started)
    turns = exchanges(case)
    for exchange in turns:
        is_last = exchange is turns[-1]
        turn, parent = _turn_ids(report.run, exchange, own, _link(*key, exchange.turn).span_id)
        end = _end(exchange, start, _nanoseconds(case.ended) if is_last else start)
        yield _turn_span(report.run, exchange, turn, start, end, identity)._replace(
            parent_id=parent, links=() if parent else (own,), error=case.error if is_last else None
        )
        for result in results_of(exchange, case, case.results):
            event = SpanEvent(_EVALUATION, _evaluation(result), max(end, _nanoseconds(case.ended)))
            yield LogEvent(*turn, event)
        start = end


def _case_span(report: Report, case: CaseResult, own: SpanLink, run: Span, identity: JsonObject) -> Span:
    verdict, (file, line) = report.verdict_of(case), report.place_of(case.number)
    is_counted = not report.why_not_counted(case)
    attributes: dict[str, JsonValue] = {
        "test.case.name": case_name(case, report.run),
        # The conventions have no status for an error or for what nothing could judge.
        "test.case.result.status": _LABELS[verdict] if verdict in {Verdict.PASS, Verdict.FAILURE} else None,
        "evalmeta.case.verdict": verdict.value,
        "evalmeta.case.label": case.label or None,
        "evalmeta.case.partly_judged": report.is_partly_judged(case),
        "evalmeta.case.quarantined": case.is_quarantined,
        "code.file.path": file,
        "code.line.number": line if file else None,
        **identity,
    }
    failed = verdict in {Verdict.FAILURE, Verdict.ERROR} and is_counted
    return Span(
        *own,
        "",
        f"test case {case.number}",
        _nanoseconds(case.started),
        _nanoseconds(case.ended),
        attributes,
        error=counted_reason(report, case) if failed else None,
        links=(SpanLink(run.trace_id, run.span_id),),
    )


def _turn_ids(run: Run, exchange: Exchange, case: SpanLink, span_id: str) -> tuple[SpanLink, str]:
    """Return the ids of a turn, and its parent.

    If the traces of the agent were read, the turn is the root of the agent's own trace. If its answers are judged
    again, that trace belongs to the run that asked for them.
    """
    known = exchange.generated or exchange.unanswered
    if known is None or known.traceparent is None or run.answers_of is not None:
        return SpanLink(case.trace_id, span_id), case.span_id
    _, trace_id, parent_id, _ = known.traceparent.split("-")
    return SpanLink(trace_id, parent_id), ""


def _turn_span(run: Run, exchange: Exchange, own: SpanLink, start: int, end: int, identity: JsonObject) -> Span:
    topic = exchange.generated.topic if exchange.generated else None
    agent = topic or run.subject_name
    said = turn_attributes(exchange.utterance, exchange.generated, unanswered=exchange.unanswered)
    attributes = {**said, "gen_ai.agent.name": agent or None, TURN: exchange.turn, **identity}
    return Span(*own, "", f"invoke_agent {clean(agent)}".rstrip(), start, end, attributes)


def _end(exchange: Exchange, start: int, otherwise: int) -> int:
    """Return when a turn ended: evalmeta keeps its latency, and lets the turns of a case follow one another."""
    latency = exchange.generated.latency_ms if exchange.generated else None
    return max(start, otherwise) if latency is None else start + round(latency * 1e6)


def _evaluation(result: TestResult) -> JsonObject:
    """Return the attributes of the event of a verdict; those that are unknown are None."""
    return {
        "gen_ai.evaluation.name": result.name,
        "gen_ai.evaluation.score.value": None if result.score is None else float(result.score),
        "gen_ai.evaluation.score.label": "measured" if result.is_measured else _LABELS[result.verdict],
        "gen_ai.evaluation.explanation": result.explanation or result.error or None,
        "error.type": "_OTHER" if result.verdict is Verdict.ERROR else None,
        "evalmeta.evaluation.label": result.label,
        "evalmeta.evaluation.expected": result.expected or None,
        "evalmeta.evaluation.actual": result.actual or None,
        "evalmeta.evaluation.threshold": result.threshold,
        "evalmeta.evaluation.rater": result.rater,
    }


def _nanoseconds(seconds: float) -> int:
    # A float has no more than microseconds of a time of today.
    return round(seconds * 1e6) * 1000
