"""What agents receive and return: the conversation so far, and answers, which are checked and become GeneratedData."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeAlias

from evalmeta import limits
from evalmeta.engine.answer_shapes import READ, answer_of, call_of
from evalmeta.errors import SubjectError
from evalmeta.model.generated_data import Action, GeneratedData, Passage, Tokens
from evalmeta.model.json_value import JsonObject, JsonValue, is_too_deep, plain_json, read_json

if TYPE_CHECKING:
    from evalmeta.model.evaluation import Case


# Dictionaries keep the order for messages, and their keys are compared as sets.
_ANSWER_KEYS: Final = dict.fromkeys((
    "outcome", "answer", "response", "topic", "actions", "latency_ms", "first_token_ms", "session_id", "tokens",
    "trace", "retrieved", "retrieved_context", "state", "handoffs",
))  # fmt: skip
# Keys that structured answers have, too; a mapping with nothing else is such an answer.
_USUAL_KEYS: Final = frozenset({"state", "handoffs"})
_OWN_KEYS: Final = tuple(key for key in _ANSWER_KEYS if key not in _USUAL_KEYS)
# Messages of tools become the user's: models only accept them after the call that they answer.
_CHAT_ROLES: Final = {"agent": "assistant", "assistant": "assistant", "system": "system"}
_PASSAGE_KEYS: Final = dict.fromkeys(("uri", "doc_uri", "content"))
_ACTION_KEYS: Final = dict.fromkeys(("name", "input", "output", "latency_ms", "error"))
_TOKEN_KEYS: Final = dict.fromkeys(("input", "output", "cached", "model"))
# The largest integer that orjson writes.
_MAX_TOKENS: Final = 2**63 - 1
_SHOWN_KEYS: Final = 14
# How alike a key is to one of an answer if it is probably a misspelt one.
_ALIKE: Final = 0.8
# A union of types is made again each time that it is used, which takes longer than the check.
_SEQUENCES: Final = (list, tuple)
_MAX_PLAIN: Final = 50
_MAX_PLAIN_CHARS: Final = 1_000


def generated_data(answer: object, *, measured_ms: float | None = None) -> GeneratedData:
    """Convert an agent's return value to GeneratedData; JSON values are copied, so that later changes have no effect.

    An answer is text, GeneratedData, or a mapping with `outcome` (or `answer`, or `response`). Optional keys: `topic`,
    `actions` (names, or mappings with `name`, `input`, `output`, `latency_ms`, `error`), `latency_ms` (`measured_ms`
    by default), `first_token_ms`, `session_id`, `tokens` (a mapping with `input` and `output`, and perhaps `cached` and
    `model`), `trace` (any JSON), `retrieved` or `retrieved_context` (mappings with `uri` or `doc_uri`, and `content`),
    `state` (a mapping), and `handoffs` (names). A missing key and None mean unknown; `actions: []` means that no action
    was taken, `topic: ""` that no topic was chosen, `state: {}` that the session has no state.

    What libraries return is read by its shape (`answer_shapes`). Any other JSON value, dataclass or object of pydantic
    is a structured answer: the outcome is its JSON text. Anything else is a SubjectError.
    """
    if isinstance(answer, str):
        return GeneratedData(_text(answer, "answer"), latency_ms=measured_ms)
    values: tuple[object, ...]
    if isinstance(answer, GeneratedData):
        values = (
            answer.outcome, answer.topic, answer.actions, answer.latency_ms, answer.session_id, answer.tokens,
            answer.trace, answer.retrieved, answer.first_token_ms, answer.state, answer.handoffs,
        )  # fmt: skip
        is_json = answer.is_json
    else:
        values = _values(answer if isinstance(answer, Mapping) else _read(answer))
        is_json = not isinstance(values[0], str)
    outcome, topic, actions, latency_ms, session_id, tokens, trace, retrieved, first_token_ms, state, handoffs = values
    return GeneratedData(
        _text(outcome, "answer") if isinstance(outcome, str) else _json_text(outcome, answer),
        None if topic is None else _text(topic, "topic"),
        _actions(actions),
        measured_ms if latency_ms is None else _latency(latency_ms),
        None if session_id is None else _text(session_id, "session_id"),
        None if tokens is None else _tokens(tokens),
        None if trace is None else _json(trace, "trace"),
        None if retrieved is None else _passages(retrieved),
        is_json,
        None if first_token_ms is None else _latency(first_token_ms, "first_token_ms"),
        None if state is None else _state(state),
        None if handoffs is None else _handoffs(handoffs),
    )


def _read(answer: object) -> Mapping[object, object]:
    """Return an object that is not a mapping as a mapping with `outcome`."""
    if answer is None:
        raise SubjectError(f"the agent returned nothing (None); expected its answer as {READ}")
    return _with_outcome(answer_of(answer) or {"outcome": answer})


def _with_outcome(shape: Mapping[str, object]) -> dict[object, object]:
    """Return an answer whose outcome is a text if the library returned none."""
    return {**dict[object, object](shape.items()), "outcome": "" if shape["outcome"] is None else shape["outcome"]}


def _values(answer: Mapping[object, object]) -> tuple[object, ...]:
    get = answer.get
    outcome = get("outcome")
    if outcome is None:
        outcome = _first(answer, "answer", "response")
    if outcome is None:
        return _values(_without_outcome(answer))
    _check_keys(answer, _ANSWER_KEYS, "a mapping")
    return (
        outcome, get("topic"), get("actions"), get("latency_ms"), get("session_id"), get("tokens"), get("trace"),
        _first(answer, "retrieved", "retrieved_context"), get("first_token_ms"), get("state"), get("handoffs"),
    )  # fmt: skip


def _without_outcome(answer: Mapping[object, object]) -> Mapping[object, object]:
    """Return the mapping with `outcome` that one without it stands for: a shape of a library, or a structured answer.

    Raise SubjectError if it only has keys of answers, or keys that look like them.
    """
    if shape := answer_of(answer):
        return _with_outcome(shape)
    known = (key in _ANSWER_KEYS or get_close_matches(f"{key}", _OWN_KEYS, n=1, cutoff=_ALIKE) for key in answer)
    if all(known) and not (answer and answer.keys() <= _USUAL_KEYS):
        _check_keys(answer, _ANSWER_KEYS, "a mapping")
        raise SubjectError(
            f"the agent returned a mapping with {_quoted(answer)}; expected 'outcome', 'answer' or 'response' in it"
        )
    return {"outcome": answer}


def _json_text(value: object, answer: object) -> str:
    """Return the JSON text of a structured answer, in the order of its keys."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, default=plain_json)
        if is_too_deep(read_json(text)):
            raise SubjectError(f"the agent's answer is nested more than {limits.MAX_JSON_DEPTH} levels deep")
    except (TypeError, ValueError, RecursionError) as error:
        raise SubjectError(
            f"the agent returned {_kind(answer)}, which is not valid JSON ({error}); expected its answer as {READ}"
        ) from error
    return _text(text, "answer")


def _first(answer: Mapping[object, object], *keys: str) -> object:
    for key in keys:
        if (value := answer.get(key)) is not None:
            return value
    return None


def _actions(actions: object) -> tuple[Action, ...] | None:
    if actions is None:
        return None
    if not isinstance(actions, _SEQUENCES):
        raise SubjectError(f"the agent's actions are {_kind(actions)}; expected a list of names or mappings")
    return tuple(map(_action, actions))


def _action(action: object) -> Action:
    if isinstance(action, str):
        return Action(_text(action, "action's name"))
    values: tuple[object, ...]
    review = ""
    if isinstance(action, Action):
        if not action.has_details and type(action.name) is str:
            return action
        review = action.review
        values = action.name, action.input, action.output, action.latency_ms, action.error
    elif type(action) is dict and action.keys() <= _ACTION_KEYS.keys():
        # The usual action costs next to nothing.
        values = tuple(map(action.get, _ACTION_KEYS))
    elif isinstance(action := call_of(action), Mapping):
        _check_keys(action, _ACTION_KEYS, "an action")
        values = tuple(map(action.get, _ACTION_KEYS))
    else:
        raise SubjectError(f"the agent's actions hold {_kind(action)}; expected a name or a mapping with 'name'")
    name, given, output, latency_ms, error = values
    name = _text(name, "action's name")
    checked = None if output is None else _json(output, f"output of {name}")
    latency = None if latency_ms is None else _latency(latency_ms)
    failure = None if error is None else _text(error, f"error of {name}")
    return Action(name, _input(given, name), checked, latency, failure, review)


def _input(given: object, name: str) -> JsonObject:
    if not given and (given is None or isinstance(given, Mapping)):
        return {}
    if isinstance(given, str):
        given = _parsed(_text(given, f"input of {name}"))
    plain = given if type(given) is dict or not isinstance(given, Mapping) else dict(given)
    value = _json(plain, f"input of {name}")
    if not isinstance(value, dict):
        raise SubjectError(f"the input of {name} is {_kind(given)}; expected a mapping of names to JSON values")
    return value


def _parsed(text: str) -> JsonObject:
    """Return the arguments in a text: language models write them as JSON; other text becomes `{"arguments": text}`."""
    arguments: JsonValue = None
    with suppress(ValueError):
        arguments = read_json(text) if text.strip() else {}
    return arguments if isinstance(arguments, dict) else {"arguments": text}


def _tokens(tokens: object) -> Tokens:
    if isinstance(tokens, Tokens):
        values: tuple[object, ...] = (tokens.input, tokens.output, tokens.cached, tokens.model)
        return _checked_tokens(*values)
    if not isinstance(tokens, Mapping):
        raise SubjectError(f"the agent's tokens are {_kind(tokens)}; expected a mapping with 'input' and 'output'")
    _check_keys(tokens, _TOKEN_KEYS, "tokens")
    return _checked_tokens(*(tokens.get(key) for key in _TOKEN_KEYS))


def _checked_tokens(given: object, output: object, cached: object, model: object) -> Tokens:
    return Tokens(_count(given), _count(output), _count(cached), "" if model is None else _text(model, "model"))


def _count(value: object) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS):
        return value
    raise SubjectError(f"the agent's tokens hold {value!r:.50}; expected a number of tokens")


def _passages(passages: object) -> tuple[Passage, ...]:
    if not isinstance(passages, list | tuple):
        raise SubjectError(f"the agent's retrieved passages are {_kind(passages)}; expected a list of mappings")
    return tuple(map(_passage, passages))


def _passage(passage: object) -> Passage:
    if isinstance(passage, Passage):
        return Passage(_text(passage.uri, "passage's uri"), _optional_text(passage.content, "passage's content"))
    if not isinstance(passage, Mapping):
        raise SubjectError(f"the agent's retrieved passages hold {_kind(passage)}; expected a mapping with 'uri'")
    _check_keys(passage, _PASSAGE_KEYS, "a passage")
    uri = passage.get("uri", passage.get("doc_uri"))
    return Passage(_text(uri, "passage's uri"), _optional_text(passage.get("content"), "passage's content"))


def _state(state: object) -> JsonObject:
    value = _json(dict(state) if isinstance(state, Mapping) else state, "state")
    if not isinstance(value, dict):
        raise SubjectError(f"the agent's state is {_kind(state)}; expected a mapping of names to JSON values")
    return value


def _handoffs(names: object) -> tuple[str, ...]:
    if not isinstance(names, list | tuple):
        raise SubjectError(f"the agent's handoffs are {_kind(names)}; expected a list of names of agents")
    texts = tuple(_text(name, "handoff") for name in names)
    _check_length(sum(map(len, texts)), "handoffs")
    return texts


def _json(value: object, what: str) -> JsonValue:
    if value is None:
        return None
    if type(value) is dict and len(value) <= _MAX_PLAIN and all(map(_is_plain, value, value.values())):
        return value.copy()
    try:
        text = json.dumps(value, allow_nan=False, default=plain_json)
        copy = read_json(text)
        if is_too_deep(copy):
            raise SubjectError(f"the {what} is nested more than {limits.MAX_JSON_DEPTH} levels deep")
    except (TypeError, ValueError, RecursionError) as error:
        raise SubjectError(
            f"the {what} is not valid JSON ({error}); expected text, numbers, lists and mappings"
        ) from error
    _check_length(len(text), what)
    return copy


def _is_plain(key: object, value: object) -> bool:
    """Return whether a member of an object is valid JSON for certain, which is much faster than writing it."""
    if type(key) is not str or not key.isascii() or len(key) > _MAX_PLAIN_CHARS:
        return False
    if type(value) is str:
        return value.isascii() and len(value) <= _MAX_PLAIN_CHARS
    return value is None or type(value) is bool or (type(value) is int and -_MAX_TOKENS <= value <= _MAX_TOKENS)


def _optional_text(value: object, what: str) -> str | None:
    return None if value is None else _text(value, what)


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise SubjectError(f"the agent's {what} is {_kind(value)}; expected text")
    if len(value) > limits.MAX_ANSWER_CHARS:
        _check_length(len(value), what)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise SubjectError(f"the agent's {what} is not valid Unicode ({error.reason})") from error
    return value


def _latency(value: object, what: str = "latency_ms") -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SubjectError(f"the agent's {what} is {_kind(value)}; expected a number of milliseconds")
    if not 0 <= value <= sys.float_info.max:
        raise SubjectError(f"the agent's {what} is {value}; expected a finite number of milliseconds")
    return float(value)


def _check_length(length: int, what: str) -> None:
    if length > limits.MAX_ANSWER_CHARS:
        raise SubjectError(f"the agent's {what} has {length} characters; the maximum is {limits.MAX_ANSWER_CHARS}")


def _check_keys(mapping: Mapping[object, object], known: Mapping[str, None], what: str) -> None:
    if mapping.keys() <= known.keys():
        return
    unknown = [key for key in mapping if key not in known]
    keys = "key" if len(unknown) == 1 else "keys"
    nearest = dict.fromkeys(near for key in unknown for near in get_close_matches(f"{key}", known, n=1))
    hint = f"did you mean {_quoted(nearest)}? Known" if nearest else "known"
    raise SubjectError(
        f"the agent returned {what} with the unknown {keys} {_quoted(unknown)}; {hint} keys: {_quoted(known)}"
    )


def _quoted(keys: Iterable[object]) -> str:
    names = [repr(key) for key in keys]
    shown = ", ".join(names[:_SHOWN_KEYS])
    return f"{shown} and {len(names) - _SHOWN_KEYS} more" if len(names) > _SHOWN_KEYS else shown or "no keys"


def _kind(value: object) -> str:
    return "nothing (None)" if value is None else f"a value of type {type(value).__name__}"


Message: TypeAlias = dict[str, str | None]


def history_of(case: Case) -> list[Message]:
    """Return a case's history: mappings with role (`user` or `agent`), message and topic."""
    return [{"role": entry.role, "message": entry.message, "topic": entry.topic} for entry in case.history]


def chat_messages(case: Case) -> list[dict[str, str]]:
    """Return a case's history as messages of a chat, with the roles `assistant`, `system` and `user`."""
    return [
        {"role": _CHAT_ROLES.get((entry.role or "").lower(), "user"), "content": entry.message or ""}
        for entry in case.history
    ]


def turn_messages(utterance: str, generated: GeneratedData) -> tuple[Message, Message]:
    """Return the two messages that a turn adds to the history."""
    return (
        {"role": "user", "message": utterance, "topic": None},
        {"role": "agent", "message": generated.outcome, "topic": generated.topic},
    )


def context_of(case: Case) -> dict[str, JsonValue]:
    """Return the session's state and the context variables by their names."""
    return {**case.state, **{variable.name: variable.value for variable in case.context_variables}}


def plain_text(value: JsonValue) -> str:
    """Return a string as it is, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
