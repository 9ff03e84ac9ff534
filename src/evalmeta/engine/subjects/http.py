"""An agent behind any endpoint that speaks JSON: a template makes the request, JSONPaths read the reply."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import orjson
from pydantic import Field
from pydantic import JsonValue as AnyJson

from evalmeta.engine.answers import context_of, generated_data, history_of, turn_messages
from evalmeta.engine.interfaces import NothingToClose, SimpleSubject, Subject
from evalmeta.engine.references import TooManyMatches, compile_reference, resolve
from evalmeta.errors import SettingsError, SubjectError
from evalmeta.model.jsonpath import Everything, Filter, Range, Reference, ReferenceSyntax
from evalmeta.model.redaction import address_in_words
from evalmeta.model.settings import SubjectSettings, TracePort

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from evalmeta.engine.http_endpoint import Endpoint
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonObject, JsonValue
    from evalmeta.model.login import SignIn

_PATHS: Final = (
    "answer", "topic", "actions", "action_name", "action_input", "action_output",
    "session", "input_tokens", "output_tokens", "trace", "state", "handoffs",
)  # fmt: skip
_MAX_SHOWN_KEYS: Final = 20
_SELECTIONS: Final = (Everything, Filter, Range)


class HttpSubject(SubjectSettings):
    """An HTTP endpoint with JSON requests and responses.

    `request` is the body; it may contain `{{utterance}}`, `{{history}}`, `{{context}}`, `{{context.NAME}}` and
    `{{session}}`. `answer`, `topic`, `actions` and the rest are JSONPaths into the response. `${NAME}` in a header is
    replaced by an environment variable. With `omits_empty`, a topic or actions that their path does not find are empty
    instead of unknown. `model` is the language model whose price its answers have. With `traces`, evalmeta
    reads what answers leave out from traces that the agent exports to `trace_port` of this machine.
    """

    agent = "any other JSON endpoint"
    tracing = "received"

    adapter: Literal["http"]
    url: str
    method: Literal["POST", "PUT"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict)
    request: dict[str, AnyJson] = Field({"utterance": "{{utterance}}"})
    answer: str = "$.answer"
    topic: str = ""
    actions: str = ""
    omits_empty: bool = False
    model: str = ""
    action_name: str = "$.name"
    action_input: str = "$.input"
    action_output: str = "$.output"
    session: str = ""
    input_tokens: str = ""
    output_tokens: str = ""
    trace: str = ""
    traces: bool = False
    trace_port: TracePort = 0
    state: str = ""
    handoffs: str = ""

    def bind(self, *, root: Path, sign_in: SignIn | None = None) -> Subject:
        """Return a subject for the endpoint; raise SettingsError if a setting is not valid."""
        from evalmeta.engine.http_endpoint import Endpoint

        check_request(self.request)
        paths = _Paths({name: str(getattr(self, name)) for name in _PATHS})
        headers, secrets, credential = fill_headers(self.headers)
        endpoint = Endpoint(self.url, headers=headers, secrets=secrets, credential=credential)
        return SimpleSubject(lambda case: _Session(self, endpoint, paths, case), close=endpoint.close)

    def key_variables(self) -> tuple[str, ...]:
        """Return the environment variables in headers, too."""
        return (*super().key_variables(), *header_variables(self.headers))

    def identity(self, root: Path) -> tuple[str, list[Path]]:
        """Return the method and the address."""
        return f"http {self.method} {address_in_words(self.url)}", []


class _Session(NothingToClose):
    """Keep what a request may contain: the history, and the endpoint's id of the session."""

    def __init__(self, settings: HttpSubject, endpoint: Endpoint, paths: _Paths, case: Case) -> None:
        self._settings = settings
        self._endpoint = endpoint
        self._paths = paths
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
        body = fill_template(self._settings.request, values)
        reply = (await self._endpoint.send(body, method=self._settings.method)).value
        session = self._paths.first("session", reply)
        if session is None:
            session = self._session
        generated = _generated(reply, self._paths, session, omits_empty=self._settings.omits_empty)
        self._session = session
        self._history = [*self._history, *turn_messages(utterance, generated)]
        return generated


class _Paths:
    """The settings' JSONPaths by name; an empty one matches nothing."""

    def __init__(self, paths: dict[str, str]) -> None:
        self._paths = paths
        for name, path in paths.items():
            try:
                _ = path and compile_reference(path)
            except ReferenceSyntax as error:
                raise SettingsError(
                    f"the subject's {name} {path!r} is not a valid JSONPath: {error}",
                    actions=(f"Write {name} in evalmeta.toml as a JSONPath like $.reply.{name}.",),
                ) from None
            if not path and name in {"answer", "action_name"}:
                raise SettingsError(
                    f"the subject's {name} is empty",
                    actions=(f"Set {name} in evalmeta.toml to a JSONPath like $.{name}.",),
                )

    def has(self, name: str) -> bool:
        return bool(self._paths[name])

    def matches(self, name: str, root: JsonValue) -> tuple[JsonValue, ...]:
        path = self._paths[name]
        try:
            return resolve(compile_reference(path), root) if path else ()
        except TooManyMatches as error:
            raise SubjectError(f"the reply is too large for the path {path} of {name}: {error}") from None

    def matches_list(self, name: str, root: JsonValue) -> bool:
        """Return whether the path selects among the items of an existing list, such as `$.steps[*]`."""
        steps = compile_reference(self._paths[name]).steps if self._paths[name] else ()
        places = [place for place, step in enumerate(steps) if isinstance(step, _SELECTIONS)]
        lists = resolve(Reference("", steps[: places[0]]), root) if places else ()
        return any(isinstance(match, list) for match in lists)

    def first(self, name: str, root: JsonValue) -> JsonValue:
        return next(iter(self.matches(name, root)), None)

    def required(self, name: str, root: JsonValue) -> tuple[JsonValue, ...]:
        if matches := self.matches(name, root):
            return matches
        raise SubjectError(
            f"the path {self._paths[name]} of {name} matches nothing in the agent's reply, {_outline(root)}; "
            f"correct {name} in evalmeta.toml"
        )


def _generated(reply: JsonValue, paths: _Paths, session: JsonValue, *, omits_empty: bool) -> GeneratedData:
    texts = paths.required("answer", reply)
    for text in texts:
        if not isinstance(text, str):
            what = f"the agent's answer is {_outline(text)}"
            raise SubjectError(f"{what}; expected text: correct answer in evalmeta.toml")
    topic, actions = paths.first("topic", reply), _actions(reply, paths)
    if omits_empty:
        topic = "" if topic is None and paths.has("topic") else topic
        actions = [] if actions is None and paths.has("actions") else actions
    tokens = {"input": paths.first("input_tokens", reply), "output": paths.first("output_tokens", reply)}
    return generated_data(
        {
            "outcome": "\n".join(map(str, texts)),
            "topic": topic,
            "actions": actions,
            "session_id": str(session) if isinstance(session, int) else session,
            "tokens": None if tokens == {"input": None, "output": None} else tokens,
            "trace": paths.first("trace", reply),
            "state": paths.first("state", reply),
            "handoffs": _items("handoffs", reply, paths),
        }
    )


def _actions(reply: JsonValue, paths: _Paths) -> list[JsonValue] | None:
    """Return the actions in a reply, None if it does not report them."""
    actions = _items("actions", reply, paths)
    return None if actions is None else [_action(action, paths) for action in actions]


def _items(name: str, reply: JsonValue, paths: _Paths) -> list[JsonValue] | None:
    """Return the items at a path, None if the reply does not report them: the path may match a list, or every item."""
    match paths.matches(name, reply):
        case (list() as items,):
            return items
        case () | (None,):
            return [] if paths.matches_list(name, reply) else None
        case items:
            return list(items)


def _action(action: JsonValue, paths: _Paths) -> JsonValue:
    if not isinstance(action, dict):
        return action
    return {
        "name": paths.required("action_name", action)[0],
        "input": paths.first("action_input", action),
        "output": paths.first("action_output", action),
    }


def _outline(value: JsonValue) -> str:
    """Describe a value by its type and keys, without the values in it."""
    if isinstance(value, dict):
        names = [repr(name)[:100] for name in list(value)[:_MAX_SHOWN_KEYS]]
        return f"an object with {', '.join(names) or 'no keys'}{', …' if len(value) > _MAX_SHOWN_KEYS else ''}"
    if isinstance(value, list):
        return f"a list of {len(value)}" + (f" whose first item is {_outline(value[0])}" if value else "")
    return "null" if value is None else f"a {type(value).__name__}"


# RFC 9110, 5.1 and 5.5.
_HEADER_NAME: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_HEADER_VALUE: Final = re.compile(r"[ -~\t]*")
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")
_SECRET_HEADER: Final = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)


class FilledHeaders(NamedTuple):
    """Headers to send, the secrets in them, and where these are from, in the words of messages."""

    values: dict[str, str]
    secrets: set[str]
    credential: str


def header_variables(headers: Mapping[str, str]) -> list[str]:
    """Return the environment variables in headers."""
    return [name for template in headers.values() for name in _VARIABLE.findall(template)]


def fill_headers(headers: Mapping[str, str], *, api_key_env: str = "") -> FilledHeaders:
    """Return headers with the environment's value for each `${NAME}`, and the secrets in them.

    The key becomes a bearer token (RFC 6750). Values from the environment are secret, and so are the values of headers
    such as Authorization. SettingsError means that a variable is not set, or a header has invalid characters.
    """
    templates = {"Authorization": f"Bearer ${{{api_key_env}}}"} if api_key_env else {}
    templates |= headers
    values: dict[str, str] = {}
    secrets: set[str] = set()
    sources: list[str] = []
    for name, template in templates.items():
        value = _VARIABLE.sub(lambda variable: _variable(variable[1]), template)
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise SettingsError(
                f"the header {name!r} cannot be sent: its name or its value has characters that are not valid",
                actions=("Correct it in evalmeta.toml, or the environment variable that it names.",),
            )
        values[name] = value
        variables = _VARIABLE.findall(template)
        secrets.update(map(_variable, variables))
        sources += [f"the key in {variable}" for variable in variables]
        if _SECRET_HEADER.search(name):
            secrets.update((value, value.rpartition(" ")[2]))
            sources += [] if variables else [f"the header {name} in evalmeta.toml"]
    return FilledHeaders(values, secrets, " and ".join(dict.fromkeys(sources)))


def _variable(name: str) -> str:
    value = os.environ.get(name, "").strip()
    if not value:
        raise SettingsError(
            f"the environment variable {name} is not set, but evalmeta.toml reads a key or a header from it",
            actions=(f"Set {name}, or correct its name in evalmeta.toml.",),
        )
    return value


_PLACEHOLDERS: Final = ("utterance", "history", "context", "session")
_MEMBER: Final = "context."
_PLACEHOLDER: Final = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


def check_template(template: JsonValue) -> None:
    """Check that every placeholder of a template is known; raise SettingsError if one is not."""
    for name in _placeholders(template):
        if name not in _PLACEHOLDERS and not (name.startswith(_MEMBER) and name != _MEMBER):
            near = get_close_matches(name, _PLACEHOLDERS, n=1)
            hint = f"Did you mean {{{{{near[0]}}}}}? " if near else ""
            known = ", ".join(f"{{{{{placeholder}}}}}" for placeholder in (*_PLACEHOLDERS, "context.NAME"))
            raise SettingsError(
                f"the subject's request has an unknown placeholder: {{{{{name}}}}}", actions=(f"{hint}Known: {known}.",)
            )


def check_request(template: JsonValue) -> None:
    """Check that a request contains what differs between questions; raise SettingsError if it does not."""
    check_template(template)
    if not any(name == "utterance" or name.startswith("context") for name in _placeholders(template)):
        raise SettingsError(
            "the subject's request contains neither the utterance nor context variables, so every question is the same",
            actions=('Write {{utterance}} where the message goes, such as request = {message = "{{utterance}}"}.',),
        )


def _placeholders(template: JsonValue) -> Iterator[str]:
    if isinstance(template, dict):
        template = list(template.values())
    if isinstance(template, list):
        for value in template:
            yield from _placeholders(value)
    if isinstance(template, str):
        yield from _PLACEHOLDER.findall(template)


def fill_template(template: JsonValue, values: JsonObject) -> JsonValue:
    """Return a template with values in place of its placeholders.

    A string that consists of one placeholder becomes the value with its JSON type. Inside other text, a value that is
    not a string is written as JSON, and null as nothing. Placeholders inside the values are not filled.
    """
    if isinstance(template, dict):
        return {key: fill_template(inner, values) for key, inner in template.items()}
    if isinstance(template, list):
        return [fill_template(inner, values) for inner in template]
    if not isinstance(template, str):
        return template
    if whole := _PLACEHOLDER.fullmatch(template):
        return _value(whole[1], values)

    def text(placeholder: re.Match[str]) -> str:
        value = _value(placeholder[1], values)
        return "" if value is None else value if isinstance(value, str) else orjson.dumps(value).decode()

    return _PLACEHOLDER.sub(text, template)


def _value(name: str, values: JsonObject) -> JsonValue:
    context = values.get("context")
    if name.startswith(_MEMBER) and isinstance(context, dict):
        return context.get(name.removeprefix(_MEMBER))
    return values.get(name)
