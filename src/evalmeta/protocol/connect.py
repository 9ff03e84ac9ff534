"""The Connect API's results of agent tests, as values and as JSON.

The shape is the Testing API's ("Get Test Results"). Where it has no place for something
there are keys of our own: `iteration`, `verdict`, `partialScore`, `rater` and
`latencyMilliseconds` inside, and `evalmeta` beside `status`. Over the wire, text is
HTML-escaped as orgs send it; in files it is plain, and `evalmeta` says so.

One case's result as the Testing API has it, and what evalmeta adds to it.

Keys of our own are `iteration`, `verdict`, `name` and `earlierTurns` of a case, and `partialScore`, `rater`,
`threshold`, `turn` and `measured` of a result.
"""

from __future__ import annotations

import html
import math
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta.errors import MessageUnreadable
from evalmeta.model.aggregation import case_verdict
from evalmeta.model.run import CaseResult, EarlierTurn, Run, RunStatus, TestResult, Verdict
from evalmeta.protocol.generated_data import read_generated, write_generated
from evalmeta.protocol.json_fields import (
    from_timestamp,
    integer,
    list_of_objects,
    object_at,
    optional_number,
    optional_text,
    text,
    to_timestamp,
)
from evalmeta.protocol.run_options import read_options, write_options

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue

    Translation = Callable[[str], str]


_ESCAPED_TEXTS: Final = ("actualValue", "expectedValue", "metricExplainability")


def write_run(run: Run, *, escape: bool, stand_ins: Sequence[CaseResult] = ()) -> JsonObject:
    """Writes a run as the results object.

    Args:
        run: the run with its cases.
        escape: for the wire; without for files. Over the wire a run that broke is
            COMPLETED too, or Salesforce's clients would ask about it without end;
            `evalmeta` says what it really is.
        stand_ins: what clients that show every case and every expectation are told
            instead of a broken case, or of one without a result; `read_run` undoes it.
    """
    instead = {(each.iteration, each.number): {**write_case(each), STANDS_FOR: "nothing"} for each in stand_ins}
    cases = []
    for each in run.cases:
        stand_in = instead.pop((each.iteration, each.number), None)
        cases.append({**stand_in, STANDS_FOR: "a case"} if stand_in else write_case(each))
    cases += instead.values()
    return {
        "status": RunStatus.COMPLETED.value if escape and run.status is RunStatus.ERROR else run.status.value,
        "startTime": to_timestamp(run.started),
        "endTime": None if run.ended is None else to_timestamp(run.ended),
        "errorMessage": run.error,
        "subjectName": run.subject_name,
        "testCases": [_escape_case(each) for each in cases] if escape else cases,
        "evalmeta": {
            "runId": run.id,
            "definition": run.definition,
            "status": run.status.value,
            "subjectVersion": run.subject_version,
            "total": run.total,
            "answersOf": run.answers_of,
            "options": write_options(run.options),
            "plainText": not escape,
        },
    }


def read_run(source: JsonObject, *, run_id: str = "", definition: str = "") -> Run:
    """Reads a results object in any variant seen in the wild.

    Bare or inside `{status, result, warnings}`; HTML-escaped or plain; lists as lists or
    as text; cases with or without data. Cases that a run still works on are left out.

    Raises:
        MessageUnreadable: it is no results object, or nested too deeply to be written again.
    """
    source = object_at(source, "result") or source
    if not isinstance(source.get("testCases"), list):
        raise MessageUnreadable("it has no list of testCases, so it is no results object")
    own, listed = object_at(source, "evalmeta"), list_of_objects(source, "testCases")
    status = _run_status(text(own, "status") or text(source, "status"))
    cases = tuple(
        read_case(_plain_case(each, own), place=place)
        for place, each in enumerate(listed, 1)
        if each.get(STANDS_FOR) != "nothing" and not _is_pending(each, status)
    )
    return Run(
        id=text(own, "runId") or run_id,
        definition=text(own, "definition") or definition,
        subject_name=text(source, "subjectName"),
        subject_version=optional_text(own, "subjectVersion"),
        status=status,
        started=from_timestamp(text(source, "startTime")) or 0.0,
        ended=from_timestamp(text(source, "endTime")),
        error=optional_text(source, "errorMessage"),
        total=integer(own, "total", len(listed)),
        answers_of=optional_text(own, "answersOf"),
        options=read_options(object_at(own, "options")),
        cases=cases,
    )


def _is_pending(case: JsonObject, run: RunStatus) -> bool:
    """Tells whether a case has no result yet, or will never have one because its run was canceled."""
    return text(case, "status").upper() not in JUDGED and run not in {RunStatus.COMPLETED, RunStatus.ERROR}


def _run_status(word: str) -> RunStatus:
    """Reads a status; one that is not known means that the run is still going on."""
    try:
        return RunStatus(word.upper())
    except ValueError:
        return RunStatus.IN_PROGRESS


def escape_html(plain: str) -> str:
    """Escapes text as orgs send it: Salesforce's agents library does not know `&#x27;`."""
    return html.escape(plain, quote=True).replace("&#x27;", "&#39;")


def _escape_case(case: JsonObject) -> JsonObject:
    return _translate_case(case, escape_html)


def _plain_case(case: JsonObject, own: JsonObject) -> JsonObject:
    """Gives a case with plain text; our own results say whether they are escaped, others may be anywhere."""
    if own.get("plainText") is True:
        return case
    return _translate_case(case, html.unescape, also=() if own else ("outcome", "generatedResponse", "topic"))


def _translate_case(case: JsonObject, translate: Translation, *, also: tuple[str, ...] = ()) -> JsonObject:
    inputs, generated = dict(object_at(case, "inputs")), dict(object_at(case, "generatedData"))
    _translate(inputs, ("utterance",), translate)
    _translate(generated, ("actionsSequence", "invokedActions", *also), translate)
    results = []
    for result in list_of_objects(case, "testResults"):
        copy = dict(result)
        _translate(copy, _ESCAPED_TEXTS, translate)
        results.append(copy)
    return {**case, "inputs": inputs, "generatedData": generated, "testResults": results}


def _translate(target: dict[str, JsonValue], keys: tuple[str, ...], translate: Translation) -> None:
    for key in keys:
        value = target.get(key)
        if isinstance(value, str):
            target[key] = translate(value)


STANDS_FOR: Final = "standsFor"
"""The key of a case that is there for clients that need one."""


_RESULTS: Final = {Verdict.PASS: "PASS", Verdict.FAILURE: "FAILURE"}
# What orgs say of a rating that the definition gives nothing to rate by; the sf CLI asks for one in every case.
_SKIPPED: Final = "missing expected input"
JUDGED: Final = frozenset({"", "COMPLETED", "ERROR"})
"""The statuses of cases that are not worked on any more."""


# Readers look into it without asking whether it is there, so that a case without an answer has every key.
_NO_DATA: Final[JsonObject] = {
    "type": "AGENT",
    "topic": None,
    "actionsSequence": "[]",
    "invokedActions": "",
    "outcome": None,
    "sessionId": None,
    "latencyMilliseconds": None,
}
_VERDICTS: Final = {
    "PASS": Verdict.PASS,
    "PASSED": Verdict.PASS,
    "FAILURE": Verdict.FAILURE,
    "FAILED": Verdict.FAILURE,
    "FAIL": Verdict.FAILURE,
    "ERROR": Verdict.ERROR,
    # Of following instructions.
    "HIGH": Verdict.PASS,
    "LOW": Verdict.FAILURE,
}


def write_case(case: CaseResult) -> JsonObject:
    """Writes one case result as plain JSON values."""
    started, ended = to_timestamp(case.started), to_timestamp(case.ended)
    times = {"startTime": started, "endTime": ended}
    return {
        "testNumber": case.number,
        "status": "ERROR" if case.generated is None else "COMPLETED",
        **times,
        "errorMessage": case.error,
        "inputs": {"utterance": case.utterance},
        "generatedData": _NO_DATA if case.generated is None else write_generated(case.generated),
        "testResults": [_write_result(each, times) for each in case.results],
        "iteration": case.iteration,
        "verdict": case.verdict.value,
        **_case_extras(case),
    }


def _case_extras(case: CaseResult) -> JsonObject:
    """Gives what cases of definitions do not have, and nothing for them."""
    extras: dict[str, JsonValue] = {}
    if case.label:
        extras["name"] = case.label
    if case.earlier:
        extras["earlierTurns"] = [
            {"utterance": each.utterance, "generatedData": write_generated(each.generated)} for each in case.earlier
        ]
    return extras


def read_case(source: JsonObject, *, place: int = 1) -> CaseResult:
    """Reads one case result from plain JSON values; `place` numbers a case that has no number."""
    started = from_timestamp(text(source, "startTime")) or 0.0
    results = _read_results(source)
    generated = _read_generated_if_any(object_at(source, "generatedData"), results)
    status, error = text(source, "status").upper(), optional_text(source, "errorMessage")
    broken = status not in {"", "COMPLETED"} or generated is None
    return CaseResult(
        number=integer(source, "testNumber", place),
        iteration=integer(source, "iteration", 1),
        utterance=text(object_at(source, "inputs"), "utterance"),
        verdict=read_case_verdict(text(source, "verdict"), results, broken=broken),
        started=started,
        ended=from_timestamp(text(source, "endTime")) or started,
        results=results,
        generated=generated,
        error=_left_at(status) if error is None else error,
        label=text(source, "name"),
        earlier=tuple(
            EarlierTurn(text(each, "utterance"), read_generated(object_at(each, "generatedData")))
            for each in list_of_objects(source, "earlierTurns")
        ),
    )


def _left_at(status: str) -> str | None:
    return None if status in JUDGED else f"the run ended and left this case at {status}"


def _read_results(source: JsonObject) -> tuple[TestResult, ...]:
    """Reads a case's results; those that only repeat the error of the case are left out."""
    if STANDS_FOR in source:
        return ()
    return tuple(_read_result(each) for each in list_of_objects(source, "testResults"))


def _read_generated_if_any(source: JsonObject, results: tuple[TestResult, ...]) -> GeneratedData | None:
    told = any(isinstance(source.get(key), str) for key in ("outcome", "generatedResponse", "topic"))
    generated = _timed(read_generated(source), results)
    return generated if told or generated.actions else None


def _timed(generated: GeneratedData, results: tuple[TestResult, ...]) -> GeneratedData:
    """Takes the latency from the result that measured it when generatedData does not say."""
    if generated.latency_ms is not None:
        return generated
    measured = (each.score for each in results if each.name == "output_latency_milliseconds")
    return replace(generated, latency_ms=next(measured, None))


def _write_result(result: TestResult, times: Mapping[str, str]) -> JsonObject:
    return {
        "name": result.name,
        "metricLabel": result.label or result.name,
        "expectedValue": result.expected,
        "actualValue": result.actual,
        "score": result.score,
        "result": _RESULTS.get(result.verdict),
        "metricExplainability": result.explanation,
        "status": "ERROR" if result.verdict is Verdict.ERROR else "COMPLETED",
        **times,
        "errorCode": None if result.error is None else 1,
        "errorMessage": _message_of(result),
        "partialScore": result.detail,
        "rater": result.rater,
        **({} if result.threshold is None else {"threshold": result.threshold}),
        **({"turn": result.turn} if result.turn else {}),
        **({"measured": True} if result.is_measured else {}),
    }


def _message_of(result: TestResult) -> str | None:
    """Gives the words without which the sf CLI calls whatever has not passed an unknown error."""
    match result.verdict:
        case Verdict.FAILURE:
            return result.explanation or None
        case Verdict.UNDECIDED:
            return f"undecided: {result.explanation or 'nothing here can judge it'}"
        case _:
            return result.error


def _read_result(source: JsonObject) -> TestResult:
    name, label = text(source, "name"), text(source, "metricLabel")
    verdict, message = _result_verdict(source), optional_text(source, "errorMessage")
    return TestResult(
        name=name,
        verdict=verdict,
        expected=text(source, "expectedValue"),
        actual=text(source, "actualValue"),
        score=_score(source),
        explanation=text(source, "metricExplainability") or (message or "" if _was_skipped(source) else ""),
        label=label if "partialScore" in source and label != name else None,
        detail=optional_number(source, "partialScore"),
        rater=optional_text(source, "rater"),
        error=message if verdict is Verdict.ERROR else None,
        threshold=optional_number(source, "threshold"),
        turn=integer(source, "turn", 0),
        is_measured=source.get("measured") is True,
    )


def _score(source: JsonObject) -> float | None:
    """Gives a score on whatever scale it has: a number, or text that is one."""
    for key in ("score", "metricScore"):
        with suppress(ValueError):
            found = optional_number(source, key)
            score = float(text(source, key)) if found is None else found
            if math.isfinite(score):
                return score
    return None


def _was_skipped(source: JsonObject) -> bool:
    said = text(source, "errorMessage")
    return text(source, "status").upper() == "ERROR" and _SKIPPED in said and not text(source, "expectedValue").strip()


def _result_verdict(source: JsonObject) -> Verdict:
    if text(source, "status").upper() == "ERROR":
        return Verdict.UNDECIDED if _was_skipped(source) else Verdict.ERROR
    return read_verdict(text(source, "result") or text(source, "metricScore"))


def read_verdict(word: str) -> Verdict:
    """Reads any of the words that results have been seen with, in any case; all else is undecided."""
    return _VERDICTS.get(word.upper(), Verdict.UNDECIDED)


def read_case_verdict(stated: str, results: tuple[TestResult, ...], *, broken: bool) -> Verdict:
    """Reads a case's verdict: the stated one, or else what its results come to; a broken case is an error."""
    if stated in Verdict.__members__:
        return Verdict(stated)
    return Verdict.ERROR if broken else case_verdict(results)
