"""An agent behind an endpoint of any JSON: a template makes the request, JSONPaths read the reply.

HTTP headers as settings give them, with what the environment keeps secret filled in.

A conversation's history and context variables as agents are told them.

Templates of JSON: values with `{{placeholders}}` in their texts.

What language models call tools with: JSON, often written as text.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeAlias

import orjson

from evalmeta.engine.answers import generated_data
from evalmeta.engine.http_endpoint import open_endpoint
from evalmeta.engine.jsonpath import TooManyMatches, compile_reference, resolve
from evalmeta.errors import SettingsError, SubjectError
from evalmeta.model.jsonpath import ReferenceSyntax

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalmeta.engine.http_endpoint import Endpoint
    from evalmeta.engine.subject import Session, Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.settings import HttpSubject


_PATHS: Final = (
    "answer", "topic", "actions", "action_name", "action_input", "action_output",
    "session", "input_tokens", "output_tokens", "trace",
)  # fmt: skip
_MOST_KEYS: Final = 20


def bind_http(settings: HttpSubject) -> Subject:
    """Makes a subject of an endpoint that takes and gives JSON; nothing is sent yet.

    Raises:
        SettingsError: the url, a header, a placeholder or a JSONPath cannot be used, or an
            environment variable is not set.
    """
    check_template(settings.request)
    paths = _Paths({name: str(getattr(settings, name)) for name in _PATHS})
    headers = filled_headers(settings.headers)
    endpoint = open_endpoint(settings.url, headers=headers.values, secrets=headers.secrets)
    return _Agent(settings, endpoint, paths)


class _Paths:
    """The settings' JSONPaths by name; an empty one matches nothing."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts
        for name, text in texts.items():
            _check_path(name, text)

    def matches(self, name: str, root: JsonValue) -> tuple[JsonValue, ...]:
        text = self._texts[name]
        try:
            return resolve(compile_reference(text), root) if text else ()
        except TooManyMatches as error:
            raise SubjectError(f"the reply is too large for the path {text} of {name}: {error}") from None

    def first(self, name: str, root: JsonValue) -> JsonValue:
        return next(iter(self.matches(name, root)), None)

    def required(self, name: str, root: JsonValue) -> tuple[JsonValue, ...]:
        if found := self.matches(name, root):
            return found
        raise SubjectError(
            f"the path {self._texts[name]} of {name} matches nothing in what the agent gave: {_outline(root)}; "
            f"correct {name} in evalmeta.toml"
        )


class _Agent:
    def __init__(self, settings: HttpSubject, endpoint: Endpoint, paths: _Paths) -> None:
        self._settings = settings
        self._endpoint = endpoint
        self._paths = paths

    async def open(self, case: Case) -> Session:
        return _Session(self, case)

    async def ask(self, values: JsonObject) -> tuple[GeneratedData, JsonValue]:
        """Gives the answer, and the session as the endpoint names it."""
        body = filled_template(self._settings.request, values)
        reply = (await self._endpoint.send(body, method=self._settings.method)).value
        session = self._paths.first("session", reply)
        if session is None:
            session = values["session"]
        return _read(reply, self._paths, session), session

    async def close(self) -> None:
        await self._endpoint.close()


class _Session:
    """Keeps what every request may repeat: the history, and the endpoint's name for the session."""

    def __init__(self, agent: _Agent, case: Case) -> None:
        self._agent = agent
        self._history = history_of(case)
        self._context = context_of(case)
        self._session: JsonValue = None

    async def ask(self, utterance: str) -> GeneratedData:
        values: JsonObject = {
            "utterance": utterance,
            "history": self._history,
            "context": self._context,
            "session": self._session,
        }
        generated, self._session = await self._agent.ask(values)
        self._history = [*self._history, *exchanged(utterance, generated)]
        return generated

    async def close(self) -> None:
        """Has nothing to let go of."""


def _check_path(name: str, text: str) -> None:
    try:
        _ = text and compile_reference(text)
    except ReferenceSyntax as error:
        raise SettingsError(
            f"the subject's {name} {text!r} cannot be followed: {error}",
            actions=(f"Write {name} in evalmeta.toml as a JSONPath like $.reply.{name}.",),
        ) from None
    if not text and name in {"answer", "action_name"}:
        raise SettingsError(
            f"the subject's {name} is empty", actions=(f"Give {name} a JSONPath like $.{name} in evalmeta.toml.",)
        )


def _read(reply: JsonValue, paths: _Paths, session: JsonValue) -> GeneratedData:
    tokens = {"input": paths.first("input_tokens", reply), "output": paths.first("output_tokens", reply)}
    return generated_data(
        {
            "outcome": _answer(reply, paths),
            "topic": paths.first("topic", reply),
            "actions": [_action(each, paths) for each in _actions(reply, paths)],
            "session_id": str(session) if isinstance(session, int) else session,
            "tokens": None if tokens == {"input": None, "output": None} else tokens,
            "trace": paths.first("trace", reply),
        }
    )


def _answer(reply: JsonValue, paths: _Paths) -> str:
    texts = paths.required("answer", reply)
    for text in texts:
        if not isinstance(text, str):
            raise SubjectError(
                f"the agent's answer is {_outline(text)}; expected text: correct answer in evalmeta.toml"
            )
    return "\n".join(text for text in texts if isinstance(text, str))


def _actions(reply: JsonValue, paths: _Paths) -> list[JsonValue]:
    found = list(paths.matches("actions", reply))
    if found in ([], [None]):
        return []
    return found[0] if len(found) == 1 and isinstance(found[0], list) else found


def _action(action: JsonValue, paths: _Paths) -> JsonValue:
    if not isinstance(action, dict):
        return action
    return {
        "name": paths.required("action_name", action)[0],
        "input": arguments_of(paths.first("action_input", action)),
        "output": paths.first("action_output", action),
    }


def _outline(value: JsonValue) -> str:
    """Says what a value is without what it holds."""
    if isinstance(value, dict):
        names = [repr(name)[:100] for name in list(value)[:_MOST_KEYS]]
        return f"an object with {', '.join(names) or 'no keys'}{', …' if len(value) > _MOST_KEYS else ''}"
    if isinstance(value, list):
        return f"a list of {len(value)}" + (f" whose first is {_outline(value[0])}" if value else "")
    return "null" if value is None else f"a {type(value).__name__}"


_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
# RFC 9110, 5.1 and 5.5.
_NAME: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_VALUE: Final = re.compile(r"[ -~\t]*")
_TELLING: Final = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Headers:
    """Headers that can be sent, and what of them must show up nowhere."""

    values: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)


def filled_headers(headers: Mapping[str, str], *, api_key_env: str = "") -> Headers:
    """Gives headers with the environment's value for each `${NAME}`, and with the key as a bearer token (RFC 6750).

    Secret is what comes from the environment, and what a header such as Authorization holds.

    Raises:
        SettingsError: a variable is not set, or no header can carry its value.
    """
    given = {"Authorization": f"Bearer ${{{api_key_env}}}"} if api_key_env else {}
    values = {name: _filled(name, text) for name, text in (given | dict(headers)).items()}
    secrets = {
        secret for name, text in (given | dict(headers)).items() for secret in _secrets(name, text, values[name])
    }
    return Headers(values, tuple(sorted(secrets)))


def _filled(name: str, text: str) -> str:
    value = _VARIABLE.sub(lambda found: _variable(found[1]), text)
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise SettingsError(
            f"the header {name!r} cannot be sent: its name or its value has characters that no header has",
            actions=("Correct it in evalmeta.toml, or the environment variable that it names.",),
        )
    return value


def _secrets(name: str, text: str, value: str) -> Iterator[str]:
    yield from (_variable(found) for found in _VARIABLE.findall(text))
    if _TELLING.search(name):
        yield value
        yield value.rpartition(" ")[2]


def _variable(name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise SettingsError(
            f"the environment variable {name} is not set, and evalmeta.toml takes a key or a header from it",
            actions=(f"Set {name}, or correct its name in evalmeta.toml.",),
        )
    return value


Message: TypeAlias = dict[str, str | None]


def history_of(case: Case) -> list[Message]:
    """Gives what was said before the case begins: mappings with role (`user` or `agent`), message and topic."""
    return [{"role": entry.role, "message": entry.message, "topic": entry.topic} for entry in case.history]


def exchanged(utterance: str, generated: GeneratedData) -> tuple[Message, Message]:
    """Gives what one turn adds to the history."""
    return (
        {"role": "user", "message": utterance, "topic": None},
        {"role": "agent", "message": generated.outcome, "topic": generated.topic},
    )


def context_of(case: Case) -> dict[str, JsonValue]:
    """Gives by their names what the session's state holds, and the values of the context variables."""
    return {**case.state, **{variable.name: variable.value for variable in case.context_variables}}


def plain_text(value: JsonValue) -> str:
    """Gives a value as text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


PLACEHOLDERS: Final = ("utterance", "history", "context", "session")
_MEMBER: Final = "context."
_PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


def check_template(template: JsonValue) -> None:
    """Sees to it that every placeholder has a meaning.

    Raises:
        SettingsError: one has none.
    """
    for name in _names(template):
        if name not in PLACEHOLDERS and not (name.startswith(_MEMBER) and name != _MEMBER):
            near = get_close_matches(name, PLACEHOLDERS, n=1)
            hint = f"Did you mean {{{{{near[0]}}}}}? " if near else ""
            known = ", ".join(f"{{{{{each}}}}}" for each in (*PLACEHOLDERS, "context.NAME"))
            raise SettingsError(
                f"the subject's request has a placeholder that means nothing: {{{{{name}}}}}",
                actions=(f"{hint}Known: {known}.",),
            )


def filled_template(template: JsonValue, values: JsonObject) -> JsonValue:
    """Gives a template with values in place of its placeholders.

    A text that is nothing but a placeholder becomes the value with its JSON type; inside
    other text, a value that is no text is written as JSON, and null as nothing. What the
    values themselves hold is never taken for a placeholder.
    """
    if isinstance(template, dict):
        return {key: filled_template(each, values) for key, each in template.items()}
    if isinstance(template, list):
        return [filled_template(each, values) for each in template]
    if not isinstance(template, str):
        return template
    if whole := _PLACEHOLDER.fullmatch(template):
        return _value(whole[1], values)
    return _PLACEHOLDER.sub(lambda found: _text(_value(found[1], values)), template)


def _names(template: JsonValue) -> Iterator[str]:
    if isinstance(template, dict):
        template = list(template.values())
    if isinstance(template, list):
        for each in template:
            yield from _names(each)
    if isinstance(template, str):
        yield from _PLACEHOLDER.findall(template)


def _value(name: str, values: JsonObject) -> JsonValue:
    context = values.get("context")
    if name.startswith(_MEMBER) and isinstance(context, dict):
        return context.get(name.removeprefix(_MEMBER))
    return values.get(name)


def _text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(value).decode()


def arguments_of(value: JsonValue) -> JsonValue:
    """Gives a call's arguments: an object that came as text is read, other text is kept as `{"arguments": text}`."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return {}
    try:
        read: JsonValue = orjson.loads(value)
    except ValueError:
        return {"arguments": value}
    return read if isinstance(read, dict) else {"arguments": value}
