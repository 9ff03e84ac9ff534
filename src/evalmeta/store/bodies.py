"""Case results as the database keeps them: JSON arrays whose places are the fields, small and quick to write.

What few results have stands at the end of an array, and is left out of the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import orjson

from evalmeta.model.generated import Action, GeneratedData, Passage, Tokens
from evalmeta.model.run import CaseResult, EarlierTurn, TestResult, Verdict
from evalmeta.wire.results import read_case

if TYPE_CHECKING:
    from evalmeta.model.jsonvalue import JsonObject, JsonValue

    _Action: TypeAlias = tuple[str, JsonObject, JsonValue, float | None]
    _Tokens: TypeAlias = tuple[int | None, int | None]
    _Passages: TypeAlias = list[tuple[str, str | None]]
    _Generated: TypeAlias = tuple[
        str, str | None, list[_Action], float | None, str | None, _Tokens | None, JsonValue,
        *tuple[_Passages, ...],
    ]  # fmt: skip
    _Result: TypeAlias = tuple[str | float | bool | None, ...]
    _Turns: TypeAlias = list[tuple[str, _Generated]]
    _Plain: TypeAlias = tuple[
        int, int, str, Verdict, float, float, list[_Result], _Generated | None, str | None,
    ]  # fmt: skip

__all__ = ["decode_case", "encode_case"]


def encode_case(case: CaseResult) -> bytes:
    """Gives a case result as JSON; `decode_case` gives the same result again."""
    generated = case.generated
    body: _Plain = (
        case.number,
        case.iteration,
        case.utterance,
        case.verdict,
        case.started,
        case.ended,
        [result[: _length(result)] for result in case.results],
        None if generated is None else _from_generated(generated),
        case.error,
    )
    if not (case.label or case.earlier):
        return orjson.dumps(body, default=dict)
    turns: _Turns = [(each.utterance, _from_generated(each.generated)) for each in case.earlier]
    return orjson.dumps((*body, case.label, turns), default=dict)


def _length(result: TestResult) -> int:
    """Gives how many of a result's places are more than defaults."""
    if result.is_measured:
        return 13
    return 10 if result.threshold is None and not result.turn else 12


def decode_case(body: bytes) -> CaseResult:
    """Gives a case result back, from its own JSON or from the results object that earlier versions kept."""
    source = orjson.loads(body)
    return read_case(source) if isinstance(source, dict) else _case(source[:9], *source[9:])


def _from_generated(generated: GeneratedData) -> _Generated:
    tokens, retrieved = generated.tokens, generated.retrieved
    plain = (
        generated.outcome,
        generated.topic,
        [(each.name, each.input, each.output, each.latency_ms) for each in generated.actions],
        generated.latency_ms,
        generated.session_id,
        None if tokens is None else (tokens.input, tokens.output),
        generated.trace,
    )
    return plain if retrieved is None else (*plain, [(each.uri, each.content) for each in retrieved])


def _case(source: _Plain, label: str = "", turns: _Turns | None = None) -> CaseResult:
    number, iteration, utterance, verdict, started, ended, results, generated, error = source
    return CaseResult(
        number,
        iteration,
        utterance,
        Verdict(verdict),
        started,
        ended,
        tuple(map(_result, results)),
        None if generated is None else _generated(*generated),
        error,
        label,
        tuple(EarlierTurn(asked, _generated(*answer)) for asked, answer in turns or ()),
    )


def _result(source: _Result) -> TestResult:
    name, verdict, *others = source
    return TestResult(name, Verdict(verdict), *others)  # type: ignore[arg-type] # written by `encode_case`


def _generated(  # noqa: PLR0913, PLR0917 - one for each place of the array
    outcome: str,
    topic: str | None,
    actions: list[_Action],
    latency_ms: float | None,
    session_id: str | None,
    tokens: _Tokens | None,
    trace: JsonValue,
    retrieved: _Passages | None = None,
) -> GeneratedData:
    return GeneratedData(
        outcome,
        topic,
        tuple(Action(*each) for each in actions),
        latency_ms,
        session_id,
        None if tokens is None else Tokens(*tokens),
        trace,
        None if retrieved is None else tuple(Passage(*each) for each in retrieved),
    )
