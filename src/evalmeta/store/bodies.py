"""Case results as the database keeps them: one JSON object each, its keys the names of the fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from evalmeta.model.generated import Action, GeneratedData, Tokens
from evalmeta.model.run import CaseResult, TestResult, Verdict
from evalmeta.wire.connect import read_case

if TYPE_CHECKING:
    from typing import TypedDict

    from evalmeta.model.jsonvalue import JsonObject, JsonValue

    class _ActionBody(TypedDict):
        name: str
        input: JsonObject
        output: JsonValue
        latency_ms: float | None

    class _TokensBody(TypedDict):
        input: int | None
        output: int | None

    class _GeneratedBody(TypedDict):
        outcome: str
        topic: str | None
        actions: list[_ActionBody]
        latency_ms: float | None
        session_id: str | None
        tokens: _TokensBody | None
        trace: JsonValue

    class _ResultBody(TypedDict):
        name: str
        verdict: str
        expected: str
        actual: str
        score: float | None
        explanation: str
        label: str | None
        detail: float | None
        rater: str | None
        error: str | None

    class _CaseBody(TypedDict):
        number: int
        iteration: int
        utterance: str
        verdict: str
        started: float
        ended: float
        results: list[_ResultBody]
        generated: _GeneratedBody | None
        error: str | None


__all__ = ["decode_case", "encode_case"]


def encode_case(case: CaseResult) -> bytes:
    """Gives a case result as JSON; `decode_case` gives the same result again."""
    return orjson.dumps(case, default=dict)


def decode_case(body: bytes) -> CaseResult:
    """Gives a case result back, from its own JSON or from the results object that was kept before version 0.2."""
    source = orjson.loads(body)
    return read_case(source) if "testNumber" in source else _case(source)


def _case(source: _CaseBody) -> CaseResult:
    generated = source["generated"]
    return CaseResult(
        source["number"],
        source["iteration"],
        source["utterance"],
        Verdict(source["verdict"]),
        source["started"],
        source["ended"],
        tuple(_result(each) for each in source["results"]),
        None if generated is None else _generated(generated),
        source["error"],
    )


def _result(source: _ResultBody) -> TestResult:
    return TestResult(
        source["name"],
        Verdict(source["verdict"]),
        source["expected"],
        source["actual"],
        source["score"],
        source["explanation"],
        source["label"],
        source["detail"],
        source["rater"],
        source["error"],
    )


def _generated(source: _GeneratedBody) -> GeneratedData:
    tokens = source["tokens"]
    return GeneratedData(
        source["outcome"],
        source["topic"],
        tuple(Action(each["name"], each["input"], each["output"], each["latency_ms"]) for each in source["actions"]),
        source["latency_ms"],
        source["session_id"],
        None if tokens is None else Tokens(tokens["input"], tokens["output"]),
        source["trace"],
    )
