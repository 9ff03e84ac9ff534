"""An agent that is a Python object: a function that answers, or something that opens sessions."""

from __future__ import annotations

import inspect
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from evalmeta.engine.answers import generated_data
from evalmeta.engine.subjects.calls import Calls
from evalmeta.engine.subjects.imports import import_from
from evalmeta.engine.subjects.messages import context_of, exchanged, history_of
from evalmeta.errors import SettingsError, SubjectError

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.subject import Session, Subject
    from evalmeta.engine.subjects.calls import Function
    from evalmeta.engine.subjects.messages import Message
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated import GeneratedData
    from evalmeta.model.jsonvalue import JsonValue
    from evalmeta.model.settings import PythonSubject

__all__ = ["bind_python", "subject_of"]

_INPUTS: Final = ("history", "context")


def bind_python(settings: PythonSubject, *, root: Path) -> Subject:
    """Imports the target `module:name` and makes a subject of it, as `subject_of` does.

    An exception that `retry_on` names, by its class's name or a base class's, makes the
    case begin anew.

    Raises:
        SettingsError: the target is not there, does not load, or is none of these.
    """
    target = settings.target
    module_name, _, path = target.partition(":")
    agent: object = import_from(root, module_name, target=target)
    for name in path.split("."):
        agent = _attribute(agent, name, target)
    return subject_of(agent, root=root, called=f"the subject's target {target!r}", retry_on=settings.retry_on)


def subject_of(agent: object, *, root: Path, called: str = "the subject", retry_on: tuple[str, ...] = ()) -> Subject:
    """Makes a subject of a Python object.

    It is a function `answer(utterance, *, history, context)`, or a class or object with
    `open(history, context)` whose sessions have `ask(utterance)` and may have `close()`.
    Everything may be a coroutine function; what is not runs in a daemon thread.
    `history` is a list of mappings with role, message and topic, `context` maps variable
    names to values; both are passed by name to who takes them. An agent that is busy
    raises `SubjectBusy`.

    Args:
        agent: the object.
        root: the project's folder, from which errors name files.
        called: what errors call the object.
        retry_on: names of exceptions that pass; see `bind_python`.

    Raises:
        SettingsError: the object is none of these, or the class cannot be made without arguments.
    """
    opener = getattr(agent, "open", None)
    calls = Calls(root, retry_on=retry_on)
    if inspect.isclass(agent) and callable(opener):
        return _Agent(_instance(agent, called), calls)
    if callable(opener):
        return _Agent(agent, calls)
    if callable(agent) and not inspect.isclass(agent):
        return _Answering(agent, calls)
    raise SettingsError(
        f"{called} is neither a function nor has it a method open: {type(agent).__name__}",
        actions=("Name a function answer(utterance), or a class with open(history, context).",),
    )


class _Answering:
    """A subject that is one function."""

    def __init__(self, function: Function, calls: Calls) -> None:
        self._function = function
        self._calls = calls

    async def open(self, case: Case) -> Session:
        return _FunctionSession(self._function, self._calls, case)

    async def close(self) -> None:
        """Has nothing to let go of."""


class _FunctionSession:
    """Calls the function for every turn and keeps the history that it gets."""

    def __init__(self, function: Function, calls: Calls, case: Case) -> None:
        self._function = function
        self._calls = calls
        self._history = history_of(case)
        self._context = context_of(case)

    async def ask(self, utterance: str) -> GeneratedData:
        inputs = _accepted(self._function, [dict(message) for message in self._history], dict(self._context))
        generated = generated_data(await self._calls.call(self._function, utterance, **inputs))
        self._history += exchanged(utterance, generated)
        return generated

    async def close(self) -> None:
        """Has nothing to let go of."""


class _Agent:
    """A subject with sessions of its own."""

    def __init__(self, agent: object, calls: Calls) -> None:
        self._agent = agent
        self._calls = calls

    async def open(self, case: Case) -> Session:
        opener = _method(self._agent, "open")
        session = await self._calls.call(opener, **_accepted(opener, history_of(case), context_of(case)))
        return _AgentSession(session, _method(session, "ask"), self._calls)

    async def close(self) -> None:
        await _close(self._agent, self._calls)


class _AgentSession:
    def __init__(self, session: object, ask: Function, calls: Calls) -> None:
        self._session = session
        self._ask = ask
        self._calls = calls

    async def ask(self, utterance: str) -> GeneratedData:
        return generated_data(await self._calls.call(self._ask, utterance))

    async def close(self) -> None:
        await _close(self._session, self._calls)


async def _close(thing: object, calls: Calls) -> None:
    if callable(getattr(thing, "close", None)):
        await calls.call(_method(thing, "close"))


def _accepted(function: Function, history: list[Message], context: dict[str, JsonValue]) -> dict[str, object]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    by_name = {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    taken = {parameter.name for parameter in parameters if parameter.kind in by_name}
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        taken.update(_INPUTS)
    return {name: value for name, value in zip(_INPUTS, (history, context), strict=True) if name in taken}


def _method(thing: object, name: str) -> Function:
    method: object = getattr(thing, name, None)
    if not callable(method):
        raise SubjectError(f"the agent's {type(thing).__name__} has no method {name}")
    return method


def _attribute(thing: object, name: str, target: str) -> object:
    missing = object()
    found: object = getattr(thing, name, missing)
    if found is not missing:
        return found
    near = get_close_matches(name, [known for known in dir(thing) if not known.startswith("_")], n=1)
    hint = f"Did you mean {near[0]}? Correct" if near else "Define it, or correct"
    place = getattr(thing, "__file__", None) or thing
    raise SettingsError(
        f"the subject's target {target!r} names {name}, which {place} does not have",
        actions=(f"{hint} the target in evalmeta.toml.",),
    )


def _instance(kind: type, called: str) -> object:
    try:
        instance: object = kind()
    except Exception as error:
        raise SettingsError(
            f"{called} cannot be made: {type(error).__name__}: {error}",
            actions=(f"Let {kind.__name__}() work without arguments, or name an object made of it.",),
        ) from error
    return instance
