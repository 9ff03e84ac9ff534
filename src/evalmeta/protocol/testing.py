"""Agentforce Studio's results of agent tests (`einstein/ai-testing`), as values and as JSON.

The subject's answer and each scorer's result are JSON inside text, HTML-escaped over HTTP as in Salesforce's
orgs. There is no `subjectName`, by which clients recognise the other format (`connect`). evalmeta's own keys
are in `evalmeta`.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta.errors import MessageUnreadable
from evalmeta.model.json_value import JsonObject, JsonValue, read_json
from evalmeta.model.run import CaseResult, Run, RunStatus, TestResult, Verdict
from evalmeta.protocol import connect
from evalmeta.protocol.generated_data import read_generated, write_generated
from evalmeta.protocol.json_fields import (
    from_timestamp,
    integer,
    list_of_objects,
    number,
    object_at,
    optional_text,
    text,
    to_timestamp,
)
from evalmeta.protocol.runs import write_options

if TYPE_CHECKING:
    from evalmeta.model.generated_data import GeneratedData

_STATUSES: Final = {RunStatus.COMPLETED: "SUCCESS", RunStatus.ERROR: "FAILED"}
_PLAIN: Final = {"CREATED": RunStatus.NEW, **{word: status for status, word in _STATUSES.items()}}
_SCORER_STATUSES: Final = {Verdict.FAILURE: "FAIL"}


def studio_status(status: RunStatus) -> str:
    """Return Agentforce Studio's word for a status."""
    return _STATUSES.get(status, status.value)


def plain_status(word: str) -> str:
    """Return the Testing API's word for a status of Agentforce Studio; unknown words are unchanged."""
    return _PLAIN[word].value if word in _PLAIN else word


def write_testing_run(run: Run) -> JsonObject:
    """Write a run as the results object, for HTTP."""
    return {
        "status": studio_status(run.status),
        "startTime": to_timestamp(run.started),
        "endTime": None if run.ended is None else to_timestamp(run.ended),
        "errorMessage": run.error,
        "testCases": list(map(write_testing_case, run.cases)),
        "evalmeta": {
            "runId": run.id,
            "definition": run.definition,
            "subject": run.subject_name,
            "subjectVersion": run.subject_version,
            "total": run.total,
            "options": write_options(run.options),
        },
    }


def read_testing_run(source: JsonObject, *, run_id: str = "", definition: str = "") -> Run:
    """Read a results object, whose inner JSON may be escaped text, plain text or an object.

    Unfinished cases are left out. Raise MessageUnreadable if it is not a results object, or nested too deeply.
    """
    if not isinstance(source.get("testCases"), list):
        raise MessageUnreadable("it is not a results object: it has no list of testCases")
    status = connect.run_status(plain_status(text(source, "status").upper()))
    cases = tuple(
        _read_case(value, place)
        for place, value in enumerate(list_of_objects(source, "testCases"), 1)
        if value.get("subjectResponse") or status in {RunStatus.COMPLETED, RunStatus.ERROR}
    )
    return connect.run_of(source, status, cases, run_id=run_id, definition=definition)


def write_testing_case(case: CaseResult) -> JsonObject:
    """Write one case of the results object, for HTTP."""
    response: dict[str, object] = {"userInput": case.utterance}
    if case.generated is not None:
        response |= _write_response(case.generated)
    return {
        "testNumber": case.number,
        "inputs": [{"name": "utterance", "value": case.utterance}],
        "subjectResponse": _to_text(response),
        "testScorerResults": [
            {"scorerName": result.name, "scorerResponse": _to_text(_write_result(result))} for result in case.results
        ],
        "evalmeta": {
            "iteration": case.iteration,
            "verdict": case.verdict.value,
            "startTime": to_timestamp(case.started),
            "endTime": to_timestamp(case.ended),
            "errorMessage": case.error,
            **({"traceback": case.traceback} if case.traceback else {}),
            **({"quarantine": connect.write_quarantine(case.quarantine)} if case.quarantine else {}),
            **({"unanswered": write_generated(case.unanswered)} if case.unanswered else {}),
            **({"errorOrigin": case.origin.value} if case.origin else {}),
        },
    }


def _write_response(generated: GeneratedData) -> dict[str, object]:
    written = dict(write_generated(generated))
    latency = written.pop("latencyMilliseconds")
    return {
        "content": written.pop("outcome"),
        "performance": {"latency": {"duration": latency}},
        "generatedData": written,
    }


def _write_result(result: TestResult) -> dict[str, object]:
    return {
        "status": _SCORER_STATUSES.get(result.verdict, result.verdict.value),
        "score": result.score,
        "reasoning": result.explanation,
        "actualValue": result.actual,
        "expectedValue": result.expected,
        "partialScore": result.detail,
        "rater": result.rater,
        "errorMessage": result.error,
        **({"measured": True} if result.is_measured else {}),
    }


def _read_case(source: JsonObject, place: int) -> CaseResult:
    own, response = object_at(source, "evalmeta"), _from_text(source.get("subjectResponse"))
    results = tuple(map(_read_result, list_of_objects(source, "testScorerResults")))
    generated = _read_response(response)
    asked = (text(value, "value") for value in list_of_objects(source, "inputs") if text(value, "name") == "utterance")
    started = from_timestamp(text(own, "startTime")) or 0.0
    return CaseResult(
        number=integer(source, "testNumber", place),
        iteration=integer(own, "iteration", 1),
        utterance=text(response, "userInput") or next(asked, ""),
        verdict=connect.read_case_verdict(text(own, "verdict"), results, broken=generated is None),
        started=started,
        ended=from_timestamp(text(own, "endTime")) or started,
        results=results,
        generated=generated,
        error=optional_text(own, "errorMessage"),
        traceback=text(own, "traceback"),
        quarantine=connect.read_quarantine(object_at(own, "quarantine")),
        unanswered=read_generated(unanswered) if (unanswered := object_at(own, "unanswered")) else None,
        origin=connect.read_origin(own),
    )


def _read_response(response: JsonObject) -> GeneratedData | None:
    answer = optional_text(response, "content") or optional_text(response, "response")
    if answer is None and "content" not in response:
        return None
    latency = object_at(object_at(response, "performance"), "latency").get("duration")
    data = {**object_at(response, "generatedData"), "outcome": answer or "", "latencyMilliseconds": latency}
    return read_generated(data)


def _read_result(source: JsonObject) -> TestResult:
    name, response = text(source, "scorerName"), _from_text(source.get("scorerResponse"))
    verdict = connect.read_verdict(text(response, "status"))
    is_latency = connect.is_only_latency(name, response) and verdict is not Verdict.ERROR
    return TestResult(
        name=name,
        verdict=Verdict.UNDECIDED if is_latency else verdict,
        expected=text(response, "expectedValue"),
        actual=text(response, "actualValue"),
        score=number(response, "score", None),
        explanation=text(response, "reasoning"),
        detail=number(response, "partialScore", None),
        rater=optional_text(response, "rater"),
        error=optional_text(response, "errorMessage"),
        is_measured=is_latency or response.get("measured") is True,
    )


def _to_text(content: dict[str, object]) -> str:
    return connect.escape_html(orjson.dumps(content).decode())


def _from_text(content: JsonValue) -> JsonObject:
    if not isinstance(content, str):
        return content if isinstance(content, dict) else {}
    for spelling in (html.unescape(content), content):
        try:
            content = read_json(spelling)
        except orjson.JSONDecodeError:
            continue
        return content if isinstance(content, dict) else {}
    return {}
