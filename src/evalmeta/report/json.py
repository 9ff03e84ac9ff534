"""Runs as JSON: the results objects of the Connect API, or one case result a line."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalmeta.protocol.connect import write_case, write_quarantine, write_run
from evalmeta.protocol.json_fields import object_at
from evalmeta.report.averages import averages_json
from evalmeta.report.org_checks import doubt_codes, verdicts_json
from evalmeta.report.report import counts_as_passed, is_partly_judged, outcome, verdict_of
from evalmeta.report.summary import counts_json, coverage_json, statistics_json
from evalmeta.report.text import JsonDocument, JsonList, escape_unsafe, json_text, stream_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject
    from evalmeta.model.run import CaseResult, TestResult
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
