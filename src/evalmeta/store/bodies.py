"""Case results as the database keeps them: JSON arrays whose places are the fields, small and quick to write."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import orjson

from evalmeta.model.generated import Action, GeneratedData, Tokens
from evalmeta.model.run import CaseResult, TestResult, Verdict
from evalmeta.wire.connect import read_case

if TYPE_CHECKING:
    from evalmeta.model.jsonvalue import JsonObject, JsonValue

    _Action: TypeAlias = tuple[str, JsonObject, JsonValue, float | None]
    _Tokens: TypeAlias = tuple[int | None, int | None]
    _Generated: TypeAlias = tuple[
        str, str | None, list[_Action], float | None, str | None, _Tokens | None, JsonValue
    ]  # fmt: skip
    _Result: TypeAlias = tuple[
        str, Verdict, str, str, float | None, str, str | None, float | None, str | None, str | None
    ]  # fmt: skip
    _Case: TypeAlias = tuple[
        int, int, str, Verdict, float, float, list[_Result], _Generated | None, str | None
    ]  # fmt: skip

__all__ = ["decode_case", "encode_case"]


def encode_case(case: CaseResult) -> bytes:
    """Gives a case result as JSON; `decode_case` gives the same result again."""
    generated = case.generated
    body: _Case = (
        case.number,
        case.iteration,
        case.utterance,
        case.verdict,
        case.started,
        case.ended,
        [
            (r.name, r.verdict, r.expected, r.actual, r.score, r.explanation, r.label, r.detail, r.rater, r.error)
            for r in case.results
        ],
        None if generated is None else _from_generated(generated),
        case.error,
    )
    return orjson.dumps(body, default=dict)


def decode_case(body: bytes) -> CaseResult:
    """Gives a case result back, from its own JSON or from the results object that earlier versions kept."""
    source = orjson.loads(body)
    return read_case(source) if isinstance(source, dict) else _case(source)


def _from_generated(generated: GeneratedData) -> _Generated:
    tokens = generated.tokens
    return (
        generated.outcome,
        generated.topic,
        [(each.name, each.input, each.output, each.latency_ms) for each in generated.actions],
        generated.latency_ms,
        generated.session_id,
        None if tokens is None else (tokens.input, tokens.output),
        generated.trace,
    )


def _case(source: _Case) -> CaseResult:
    number, iteration, utterance, verdict, started, ended, results, generated, error = source
    return CaseResult(
        number,
        iteration,
        utterance,
        Verdict(verdict),
        started,
        ended,
        tuple(map(_result, results)),
        None if generated is None else _generated(generated),
        error,
    )


def _result(source: _Result) -> TestResult:
    name, verdict, expected, actual, score, explanation, label, detail, rater, error = source
    return TestResult(name, Verdict(verdict), expected, actual, score, explanation, label, detail, rater, error)


def _generated(source: _Generated) -> GeneratedData:
    outcome, topic, actions, latency_ms, session_id, tokens, trace = source
    return GeneratedData(
        outcome,
        topic,
        tuple(Action(*each) for each in actions),
        latency_ms,
        session_id,
        None if tokens is None else Tokens(*tokens),
        trace,
    )
