"""An agent behind an endpoint of any JSON: a template makes the request, JSONPaths read the reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from evalmeta.engine.answers import generated_data
from evalmeta.engine.endpoints import open_endpoint
from evalmeta.engine.references import TooManyMatches, compile_reference, resolve
from evalmeta.engine.subjects.headers import filled_headers
from evalmeta.engine.subjects.messages import context_of, exchanged, history_of
from evalmeta.engine.subjects.templates import check_template, filled_template
from evalmeta.engine.subjects.toolcalls import arguments_of
from evalmeta.errors import SettingsError, SubjectError
from evalmeta.model.reference import ReferenceSyntax

if TYPE_CHECKING:
    from evalmeta.engine.endpoints import Endpoint
    from evalmeta.engine.subject import Session, Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated import GeneratedData
    from evalmeta.model.jsonvalue import JsonObject, JsonValue
    from evalmeta.model.settings import HttpSubject

__all__ = ["bind_http"]

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
