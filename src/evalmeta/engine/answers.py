"""What an agent returned, checked and turned into GeneratedData: nothing else enters the engine."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import orjson

from evalmeta import limits
from evalmeta.errors import SubjectError
from evalmeta.model.generated_data import Action, GeneratedData, Passage, Tokens
from evalmeta.model.json_value import is_too_deep

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalmeta.model.json_value import JsonObject, JsonValue


_ANSWER_KEYS: Final = (
    "outcome", "answer", "response", "topic", "actions", "latency_ms", "session_id", "tokens", "trace", "retrieved",
    "retrieved_context",
)  # fmt: skip
_PASSAGE_KEYS: Final = ("uri", "doc_uri", "content")
_ACTION_KEYS: Final = ("name", "input", "output", "latency_ms")
_TOKEN_KEYS: Final = ("input", "output")
# What orjson can write.
_MOST_TOKENS: Final = 2**63


def generated_data(answer: object, *, measured_ms: float | None = None) -> GeneratedData:
    """Turns what an agent returned into GeneratedData; `measured_ms` is its latency when the agent tells none.

    Takes the answer's text; a mapping with `outcome` (or `answer`, or `response`) and, if the agent
    tells them, `topic`, `actions` (names, or mappings with `name`, `input`, `output`,
    `latency_ms`), `latency_ms`, `session_id`, `tokens` (a mapping with `input` and
    `output`), `trace` (any JSON) and `retrieved` (or `retrieved_context`: mappings with `uri`, or `doc_uri`, and
    `content`); or GeneratedData. Inputs, outputs and traces are
    copied, so that what the agent does to them later changes nothing.

    Raises:
        SubjectError: it is anything else, too long, no JSON, or a latency that is no
            finite number of milliseconds; the message says what came and what is expected.
    """
    if isinstance(answer, str):
        return GeneratedData(_text(answer, "answer"), latency_ms=measured_ms)
    if isinstance(answer, GeneratedData):
        return _checked(answer, measured_ms)
    if isinstance(answer, Mapping):
        return _from_mapping(answer, measured_ms)
    raise SubjectError(
        f"the agent returned {_kind(answer)}; expected its answer as text, a mapping with 'outcome', or GeneratedData"
    )


def _checked(data: GeneratedData, measured_ms: float | None) -> GeneratedData:
    return GeneratedData(
        _text(data.outcome, "answer"),
        _optional_text(data.topic, "topic"),
        _actions(data.actions),
        _latency(data.latency_ms, measured_ms),
        _optional_text(data.session_id, "session_id"),
        _tokens(data.tokens),
        _json(data.trace, "trace"),
        None if data.retrieved is None else _passages(data.retrieved),
    )


def _from_mapping(answer: Mapping[object, object], measured_ms: float | None) -> GeneratedData:
    _refuse_unknown(answer, _ANSWER_KEYS, "a mapping")
    outcome = _first(answer, "outcome", "answer", "response")
    if outcome is None:
        raise SubjectError(
            f"the agent returned a mapping with {_keys(answer)}; expected 'outcome' (or 'answer', or 'response') in it"
        )
    retrieved = _first(answer, "retrieved", "retrieved_context")
    return GeneratedData(
        _text(outcome, "answer"),
        _optional_text(answer.get("topic"), "topic"),
        _actions(answer.get("actions")),
        _latency(answer.get("latency_ms"), measured_ms),
        _optional_text(answer.get("session_id"), "session_id"),
        _tokens(answer.get("tokens")),
        _json(answer.get("trace"), "trace"),
        None if retrieved is None else _passages(retrieved),
    )


def _first(answer: Mapping[object, object], *keys: str) -> object:
    return next((answer[key] for key in keys if answer.get(key) is not None), None)


def _tokens(tokens: object) -> Tokens | None:
    if tokens is None:
        return None
    if isinstance(tokens, Tokens):
        return Tokens(_count(tokens.input), _count(tokens.output))
    if not isinstance(tokens, Mapping):
        raise SubjectError(f"the agent's tokens are {_kind(tokens)}; expected a mapping with 'input' and 'output'")
    _refuse_unknown(tokens, _TOKEN_KEYS, "tokens")
    return Tokens(*(_count(tokens.get(key)) for key in _TOKEN_KEYS))


def _count(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS):
        return value
    raise SubjectError(f"the agent's tokens hold {value!r:.50}; expected a number of tokens")


def _passages(passages: object) -> tuple[Passage, ...]:
    if not isinstance(passages, list | tuple):
        raise SubjectError(f"what the agent retrieved is {_kind(passages)}; expected a list of mappings")
    return tuple(map(_passage, passages))


def _passage(passage: object) -> Passage:
    if isinstance(passage, Passage):
        return Passage(_text(passage.uri, "passage's uri"), _optional_text(passage.content, "passage's content"))
    if not isinstance(passage, Mapping):
        raise SubjectError(f"what the agent retrieved holds {_kind(passage)}; expected a mapping with 'uri'")
    _refuse_unknown(passage, _PASSAGE_KEYS, "a passage")
    uri = passage.get("uri", passage.get("doc_uri"))
    return Passage(_text(uri, "passage's uri"), _optional_text(passage.get("content"), "passage's content"))


def _actions(actions: object) -> tuple[Action, ...]:
    if actions is None:
        return ()
    if not isinstance(actions, list | tuple):
        raise SubjectError(f"the agent's actions are {_kind(actions)}; expected a list of names or mappings")
    return tuple(map(_action, actions))


def _action(action: object) -> Action:
    if isinstance(action, str):
        return Action(_text(action, "action's name"))
    if isinstance(action, Action):
        if not action.input and action.output is None and action.latency_ms is None:
            return action if type(action.name) is str else Action(_text(action.name, "action's name"))
        return _built(action.name, action.input, action.output, action.latency_ms)
    if not isinstance(action, Mapping):
        raise SubjectError(f"the agent's actions hold {_kind(action)}; expected a name or a mapping with 'name'")
    _refuse_unknown(action, _ACTION_KEYS, "an action")
    return _built(*(action.get(key) for key in _ACTION_KEYS))


def _built(name: object, given: object, output: object, latency_ms: object) -> Action:
    name = _text(name, "action's name")
    return Action(name, _input(given, name), _json(output, f"output of {name}"), _latency(latency_ms))


def _input(given: object, name: str) -> JsonObject:
    if not given and (given is None or isinstance(given, Mapping)):
        return {}
    value = _json(dict(given) if isinstance(given, Mapping) else given, f"input of {name}")
    if not isinstance(value, Mapping):
        raise SubjectError(f"the input of {name} is {_kind(given)}; expected a mapping of names to JSON values")
    return value


def _json(value: object, what: str) -> JsonValue:
    if value is None:
        return None
    try:
        text = json.dumps(value, allow_nan=False)
        copy: JsonValue = json.loads(text)
        if is_too_deep(copy):
            raise SubjectError(f"the {what} is nested more than {limits.MAX_JSON_DEPTH} levels deep")
        # orjson is stricter than json, and what keeps results is as strict as orjson.
        orjson.dumps(copy)
    except (TypeError, ValueError, RecursionError) as error:
        raise SubjectError(f"the {what} is no JSON ({error}); expected text, numbers, lists and mappings") from error
    _refuse_length(len(text), what)
    return copy


def _optional_text(value: object, what: str) -> str | None:
    return None if value is None else _text(value, what)


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise SubjectError(f"the agent's {what} is {_kind(value)}; expected text")
    _refuse_length(len(value), what)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise SubjectError(f"the agent's {what} is no valid Unicode text ({error.reason})") from error
    return value


def _latency(value: object, measured_ms: float | None = None) -> float | None:
    if value is None:
        return measured_ms
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SubjectError(f"the agent's latency_ms is {_kind(value)}; expected a number of milliseconds")
    if not 0 <= value <= sys.float_info.max:
        raise SubjectError(f"the agent's latency_ms is {value}; expected a finite number of milliseconds")
    return float(value)


def _refuse_length(length: int, what: str) -> None:
    if length > limits.MAX_ANSWER_CHARS:
        raise SubjectError(f"the agent's {what} has {length} characters; at most {limits.MAX_ANSWER_CHARS} are kept")


def _refuse_unknown(mapping: Mapping[object, object], known: tuple[str, ...], what: str) -> None:
    unknown = [key for key in mapping if key not in known]
    if unknown:
        raise SubjectError(f"the agent returned {what} with {_keys(unknown)}; expected some of {_keys(known)}")


def _keys(keys: Iterable[object]) -> str:
    return ", ".join(repr(key) for key in list(keys)[:10]) or "no keys"


def _kind(value: object) -> str:
    return "nothing (None)" if value is None else f"a value of type {type(value).__name__}"
