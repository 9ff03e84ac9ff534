"""The Connect API's results of agent tests ("Get Test Results" of the Testing API), as values and as JSON.

evalmeta adds keys where the API has none: `evalmeta` beside `status`; `iteration`, `verdict`, `name`, `earlierTurns`,
`checks`, `quarantine`, `spent`, `metadata` and `tags` in a case; `partialScore`, `rater`, `threshold`, `turn` and
`measured` in a result.
Over HTTP, text is HTML-escaped, as in Salesforce's orgs; in files it is plain, and `evalmeta` says so.
"""

from __future__ import annotations

import html
import math
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta.errors import MessageUnreadable
from evalmeta.model.aggregation import case_verdict
from evalmeta.model.evaluation import Quarantine, parse_day
from evalmeta.model.run import (
    CaseResult,
    Doubt,
    EarlierTurn,
    ErrorOrigin,
    Run,
    RunStatus,
    TestResult,
    Verdict,
    Verdicts,
)
from evalmeta.model.spending import Role, Spent
from evalmeta.protocol.generated_data import read_generated, write_generated
from evalmeta.protocol.json_fields import (
    from_timestamp,
    integer,
    list_of_objects,
    number,
    object_at,
    optional_text,
    text,
    texts,
    to_timestamp,
)
from evalmeta.protocol.runs import read_options, write_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue

    Translation = Callable[[str], str]


_ESCAPED_TEXTS: Final = ("actualValue", "expectedValue", "metricExplainability")
STANDS_FOR: Final = "standsFor"
"""The key that marks a placeholder case."""
_LATENCY: Final = "output_latency_milliseconds"
_NO_VERDICT: Final = "the org returned no verdict"
_RESULTS: Final = {Verdict.PASS: "PASS", Verdict.FAILURE: "FAILURE"}
# The error of a rating without an expected value; the sf CLI requests such a rating for every case.
_SKIPPED: Final = "missing expected input"
JUDGED: Final = frozenset({"", "COMPLETED", "ERROR"})
"""The statuses of finished cases."""
# Clients read these keys without a check, so a case without an answer has them all.
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
    # The words of instruction_following.
    "HIGH": Verdict.PASS,
    "LOW": Verdict.FAILURE,
}


def write_run(run: Run, *, escape: bool, placeholders: Sequence[CaseResult] = ()) -> JsonObject:
    """Write a run as the results object, escaped for HTTP or plain for files.

    Over HTTP, an ERROR run is COMPLETED too, because Salesforce's clients would poll it forever; `evalmeta` has the
    real status. `placeholders` are for clients that need a result for every expectation; `read_run` removes them.
    """
    return {
        "status": RunStatus.COMPLETED.value if escape and run.status is RunStatus.ERROR else run.status.value,
        "startTime": to_timestamp(run.started),
        "endTime": None if run.ended is None else to_timestamp(run.ended),
        "errorMessage": run.error,
        "subjectName": run.subject_name,
        "testCases": list(write_cases(run, escape=escape, placeholders=placeholders)),
        "evalmeta": {
            "runId": run.id,
            "definition": run.definition,
            "status": run.status.value,
            "subjectVersion": run.subject_version,
            "total": run.total,
            "answersOf": run.answers_of,
            **({"doubts": [doubt._asdict() for doubt in run.doubts]} if run.doubts else {}),
            "options": write_options(run.options),
            "plainText": not escape,
        },
    }


def write_cases(run: Run, *, escape: bool, placeholders: Sequence[CaseResult] = ()) -> Iterator[JsonObject]:
    """Yield the cases of the results object; arguments are those of `write_run`."""
    by_case = {(case.iteration, case.number): {**write_case(case), STANDS_FOR: "nothing"} for case in placeholders}
    for case in run.cases:
        placeholder = by_case.pop((case.iteration, case.number), None)
        written = {**placeholder, STANDS_FOR: "a case"} if placeholder else write_case(case)
        yield _translate_case(written, escape_html) if escape else written
    for left in by_case.values():
        yield _translate_case(left, escape_html) if escape else left


def read_run(source: JsonObject, *, run_id: str = "", definition: str = "") -> Run:
    """Read a results object in any known variant; raise MessageUnreadable if it is not one, or nested too deeply.

    It may be inside `{status, result, warnings}`, HTML-escaped or plain, with lists as lists or as text, and
    with or without data. Unfinished cases are left out.
    """
    source = object_at(source, "result") or source
    if not isinstance(source.get("testCases"), list):
        raise MessageUnreadable("it is not a results object: it has no list of testCases")
    own = object_at(source, "evalmeta")
    status = run_status(text(own, "status") or text(source, "status"))
    is_over = status in {RunStatus.COMPLETED, RunStatus.ERROR}
    # Results of evalmeta say whether they are escaped; those of others may be escaped anywhere.
    also = () if own else ("outcome", "generatedResponse", "topic")
    is_plain = own.get("plainText") is True
    cases = tuple(
        read_case(value if is_plain else _translate_case(value, html.unescape, also=also), place=place)
        for place, value in enumerate(list_of_objects(source, "testCases"), 1)
        # A case without a status of the end has no result yet, or never will because its run was canceled.
        if value.get(STANDS_FOR) != "nothing" and (is_over or text(value, "status").upper() in JUDGED)
    )
    return run_of(source, status, cases, run_id=run_id, definition=definition)


def run_of(
    source: JsonObject, status: RunStatus, cases: tuple[CaseResult, ...], *, run_id: str, definition: str
) -> Run:
    """Return the run of a results object, without its cases; `run_id` and `definition` are defaults."""
    own = object_at(source, "evalmeta")
    return Run(
        id=text(own, "runId") or run_id,
        definition=text(own, "definition") or definition,
        subject_name=text(source, "subjectName") or text(own, "subject"),
        subject_version=optional_text(own, "subjectVersion"),
        status=status,
        started=from_timestamp(text(source, "startTime")) or 0.0,
        ended=from_timestamp(text(source, "endTime")),
        error=optional_text(source, "errorMessage"),
        total=integer(own, "total", len(list_of_objects(source, "testCases"))),
        answers_of=optional_text(own, "answersOf"),
        options=read_options(object_at(own, "options")),
        cases=cases,
        doubts=tuple(
            Doubt(text(value, "code"), text(value, "text"), integer(value, "number", 0), integer(value, "iteration", 0))
            for value in list_of_objects(own, "doubts")
        ),
    )


def run_status(word: str) -> RunStatus:
    """Return a status; an unknown word means that the run is in progress."""
    return RunStatus.__members__.get(word.upper(), RunStatus.IN_PROGRESS)


def escape_html(plain: str) -> str:
    """Escape text as orgs do: Salesforce's agents library does not decode `&#x27;`."""
    return html.escape(plain, quote=True).replace("&#x27;", "&#39;")


def _translate_case(case: JsonObject, translate: Translation, *, also: tuple[str, ...] = ()) -> JsonObject:
    keys, results = ("actionsSequence", "invokedActions", *also), list_of_objects(case, "testResults")
    return {
        **case,
        "inputs": _translated(object_at(case, "inputs"), ("utterance",), translate),
        "generatedData": _translated(object_at(case, "generatedData"), keys, translate),
        "testResults": [_translated(result, _ESCAPED_TEXTS, translate) for result in results],
    }


def _translated(source: JsonObject, keys: tuple[str, ...], translate: Translation) -> JsonObject:
    return {**source, **{key: translate(value) for key in keys if isinstance(value := source.get(key), str)}}


def write_case(case: CaseResult) -> JsonObject:
    """Write one case result as plain JSON values."""
    times = {"startTime": to_timestamp(case.started), "endTime": to_timestamp(case.ended)}
    earlier: list[JsonValue] = [
        {"utterance": turn.utterance, "generatedData": write_generated(turn.generated)} for turn in case.earlier
    ]
    return {
        "testNumber": case.number,
        "status": "ERROR" if case.generated is None else "COMPLETED",
        **times,
        "errorMessage": case.error,
        "inputs": {"utterance": case.utterance},
        "generatedData": _NO_DATA if case.generated is None else write_generated(case.generated),
        "testResults": [_write_result(result, times) for result in case.results],
        "iteration": case.iteration,
        "verdict": case.verdict.value,
        **({"name": case.label} if case.label else {}),
        **({"earlierTurns": earlier} if earlier else {}),
        **({"traceback": case.traceback} if case.traceback else {}),
        **({"checks": case.checks} if case.checks else {}),
        **({"quarantine": write_quarantine(case.quarantine)} if case.quarantine else {}),
        **({"spent": write_spent(case.spent)} if case.spent else {}),
        **({"metadata": case.metadata} if case.metadata else {}),
        **({"tags": list(case.tags)} if case.tags else {}),
        **({"unanswered": write_generated(case.unanswered)} if case.unanswered else {}),
        **({"errorOrigin": case.origin.value} if case.origin else {}),
    }


def read_origin(source: JsonObject) -> ErrorOrigin | None:
    """Read what ended a case in an error; None if it is not known."""
    origin = text(source, "errorOrigin")
    return ErrorOrigin(origin) if origin in {*ErrorOrigin} else None


def read_case(source: JsonObject, *, place: int = 1) -> CaseResult:
    """Read one case result from plain JSON values; `place` is the number of a case without one."""
    started = from_timestamp(text(source, "startTime")) or 0.0
    # The results of a placeholder are not the case's own.
    results = () if STANDS_FOR in source else tuple(map(_read_result, list_of_objects(source, "testResults")))
    generated = _read_generated_if_any(object_at(source, "generatedData"), results)
    status, error = text(source, "status").upper(), optional_text(source, "errorMessage")
    broken = status not in {"", "COMPLETED"} or generated is None
    if error is None and status not in JUDGED:
        error = f"the run ended while this case was {status}"
    return CaseResult(
        number=integer(source, "testNumber", place),
        iteration=integer(source, "iteration", 1),
        utterance=text(object_at(source, "inputs"), "utterance"),
        verdict=read_case_verdict(text(source, "verdict"), results, broken=broken),
        started=started,
        ended=from_timestamp(text(source, "endTime")) or started,
        results=results,
        generated=generated,
        error=error,
        label=text(source, "name"),
        earlier=tuple(
            EarlierTurn(text(value, "utterance"), read_generated(object_at(value, "generatedData")))
            for value in list_of_objects(source, "earlierTurns")
        ),
        traceback=text(source, "traceback"),
        checks=text(source, "checks"),
        quarantine=read_quarantine(object_at(source, "quarantine")),
        spent=tuple(map(_read_spent, list_of_objects(source, "spent"))),
        metadata=object_at(source, "metadata") or None,
        unanswered=read_generated(unanswered) if (unanswered := object_at(source, "unanswered")) else None,
        origin=read_origin(source),
        tags=tuple(texts(source, "tags")),
    )


def write_spent(spent: Sequence[Spent]) -> JsonValue:
    """Write what answers and judgements cost: a row for each role and model, amounts in picodollars."""
    return [{name: value for name, value in row._asdict().items() if value} for row in spent]


def _read_spent(source: JsonObject) -> Spent:
    role: Role = "rater" if source.get("role") == "rater" else "agent"
    return Spent(role, text(source, "model"), *(integer(source, name, 0) for name in Spent._fields[2:]))


def write_quarantine(quarantine: Quarantine) -> JsonObject:
    """Write the quarantine of a case."""
    return {"reason": quarantine.reason, "until": quarantine.until.isoformat(), "hasEnded": quarantine.has_ended}


def read_quarantine(source: JsonObject) -> Quarantine | None:
    """Read the quarantine of a case; None if there is none, or its day is not valid."""
    until = parse_day(text(source, "until"))
    return None if until is None else Quarantine(text(source, "reason"), until, source.get("hasEnded") is True)


def _read_generated_if_any(source: JsonObject, results: tuple[TestResult, ...]) -> GeneratedData | None:
    has_answer = any(isinstance(source.get(key), str) for key in ("outcome", "generatedResponse", "topic"))
    generated = read_generated(source)
    if generated.latency_ms is None:
        # Salesforce's orgs report the latency as a result of its own.
        measured = (result.score for result in results if result.name == _LATENCY)
        generated = replace(generated, latency_ms=next(measured, None))
    return generated if has_answer or generated.actions else None


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
        **({"verdicts": result.verdicts._asdict()} if result.verdicts else {}),
    }


def _message_of(result: TestResult) -> str | None:
    """Return a message for every result that did not pass; the sf CLI shows others as unknown errors."""
    match result.verdict:
        case Verdict.FAILURE:
            return result.explanation or None
        case Verdict.UNDECIDED:
            return f"undecided: {result.explanation or 'no rater could judge it'}"
        case _:
            return result.error


def _read_result(source: JsonObject) -> TestResult:
    name, label, message = text(source, "name"), text(source, "metricLabel"), optional_text(source, "errorMessage")
    status, expected = text(source, "status").upper(), text(source, "expectedValue")
    is_error = status == "ERROR"
    was_skipped = is_error and _SKIPPED in (message or "") and not expected.strip()
    verdict = Verdict.ERROR if is_error else read_verdict(text(source, "result") or text(source, "metricScore"))
    is_latency = is_only_latency(name, source) and not is_error
    if was_skipped or is_latency:
        verdict = Verdict.UNDECIDED
    explanation = text(source, "metricExplainability") or (message or "" if was_skipped else "")
    if verdict is Verdict.UNDECIDED and not explanation and not is_latency and "partialScore" not in source:
        explanation = _NO_VERDICT if status in {"", "COMPLETED"} else f"{_NO_VERDICT}; its status is {status}"
    return TestResult(
        name=name,
        verdict=verdict,
        expected=expected,
        actual=text(source, "actualValue"),
        score=_score(source),
        explanation=explanation,
        label=label if "partialScore" in source and label != name else None,
        detail=number(source, "partialScore", None),
        rater=optional_text(source, "rater"),
        error=message if verdict is Verdict.ERROR else None,
        threshold=number(source, "threshold", None),
        turn=integer(source, "turn", 0),
        is_measured=is_latency or source.get("measured") is True,
        verdicts=_read_verdicts(object_at(source, "verdicts")),
    )


def _read_verdicts(source: JsonObject) -> Verdicts | None:
    if not source:
        return None
    org, local = read_verdict(text(source, "org")), read_verdict(text(source, "local"))
    return Verdicts(org, local, text(source, "explanation"), text(source, "org_explanation"))


def is_only_latency(name: str, source: JsonObject) -> bool:
    """Return whether an org's result is a latency without an expected value, a measurement that always passes there."""
    return name == _LATENCY and "partialScore" not in source and not text(source, "expectedValue").strip()


def _score(source: JsonObject) -> float | None:
    """Return a score, a number or its text, on any scale."""
    for key in ("score", "metricScore"):
        with suppress(ValueError):
            value = number(source, key, None)
            score = float(text(source, key)) if value is None else value
            if math.isfinite(score):
                return score
    return None


def read_verdict(word: str) -> Verdict:
    """Return the verdict of any known word, ignoring case; unknown words are undecided."""
    return _VERDICTS.get(word.upper(), Verdict.UNDECIDED)


def read_case_verdict(stated: str, results: tuple[TestResult, ...], *, broken: bool) -> Verdict:
    """Return the verdict of a case: the stated one, ERROR if it is broken, or else that of its results."""
    if stated in Verdict.__members__:
        return Verdict(stated)
    return Verdict.ERROR if broken else case_verdict(results)
