"""One case's result as the Testing API has it, and what evalmeta adds to it.

Keys of our own are `iteration`, `verdict`, `name` and `earlierTurns` of a case, and `partialScore`, `rater`,
`threshold`, `turn` and `measured` of a result.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from evalmeta.model.counting import case_verdict
from evalmeta.model.run import CaseResult, EarlierTurn, TestResult, Verdict
from evalmeta.wire.generated import read_generated, write_generated
from evalmeta.wire.jsonfields import integer, list_of_objects, object_at, optional_number, optional_text, text
from evalmeta.wire.timestamps import from_timestamp, to_timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from evalmeta.model.generated import GeneratedData
    from evalmeta.model.jsonvalue import JsonObject, JsonValue

__all__ = ["JUDGED", "STANDS_FOR", "read_case", "read_case_verdict", "read_verdict", "write_case"]

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
