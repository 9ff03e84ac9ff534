"""An agent that is a Python object: a function that answers, or something that opens sessions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from evalmeta.engine.answers import generated_data
from evalmeta.engine.subjects.imports import import_from
from evalmeta.engine.subjects.threads import in_thread
from evalmeta.errors import SettingsError, SubjectError

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.subject import Session, Subject
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated import GeneratedData
    from evalmeta.model.settings import PythonSubject

__all__ = ["bind_python"]

_Message: TypeAlias = dict[str, str | None]
_INPUTS: Final = ("history", "context")


class _Function(Protocol):
    def __call__(self, *args: object, **inputs: object) -> object: ...


def bind_python(settings: PythonSubject, *, root: Path) -> Subject:
    """Imports the target `module:name` and makes a subject of it.

    The target is a function `answer(utterance, *, history, context)`, or a class or
    object with `open(history, context)` whose sessions have `ask(utterance)` and may
    have `close()`. Everything may be a coroutine function; what is not runs in a
    daemon thread. `history` is a list of mappings with role, message and topic,
    `context` maps variable names to values; both are passed by name to who takes them.

    Raises:
        SettingsError: the target is not there, does not load, or is none of these.
    """
    target = settings.target
    module_name, _, path = target.partition(":")
    agent: object = import_from(root, module_name, target=target)
    for name in path.split("."):
        agent = _attribute(agent, name, target)
    opener = getattr(agent, "open", None)
    if inspect.isclass(agent) and callable(opener):
        return _Agent(_instance(agent, target))
    if callable(opener):
        return _Agent(agent)
    if callable(agent) and not inspect.isclass(agent):
        return _Answering(agent)
    raise SettingsError(
        f"the subject's target {target!r} is neither a function nor has it a method open: {type(agent).__name__}",
        actions=("Name a function answer(utterance), or a class with open(history, context).",),
    )


class _Answering:
    """A subject that is one function."""

    def __init__(self, function: _Function) -> None:
        self._function = function

    async def open(self, case: Case) -> Session:
        return _FunctionSession(self._function, case)

    async def close(self) -> None:
        """Has nothing to let go of."""


class _FunctionSession:
    """Calls the function for every turn and keeps the history that it gets."""

    def __init__(self, function: _Function, case: Case) -> None:
        self._function = function
        self._history = _history(case)
        self._context = _context(case)

    async def ask(self, utterance: str) -> GeneratedData:
        inputs = _accepted(self._function, [dict(message) for message in self._history], dict(self._context))
        generated = generated_data(await _call(self._function, utterance, **inputs))
        self._history += (
            {"role": "user", "message": utterance, "topic": None},
            {"role": "agent", "message": generated.outcome, "topic": generated.topic},
        )
        return generated

    async def close(self) -> None:
        """Has nothing to let go of."""


class _Agent:
    """A subject with sessions of its own."""

    def __init__(self, agent: object) -> None:
        self._agent = agent

    async def open(self, case: Case) -> Session:
        opener = _method(self._agent, "open")
        session = await _call(opener, **_accepted(opener, _history(case), _context(case)))
        return _AgentSession(session, _method(session, "ask"))

    async def close(self) -> None:
        await _close(self._agent)


class _AgentSession:
    def __init__(self, session: object, ask: _Function) -> None:
        self._session = session
        self._ask = ask

    async def ask(self, utterance: str) -> GeneratedData:
        return generated_data(await _call(self._ask, utterance))

    async def close(self) -> None:
        await _close(self._session)


async def _call(function: _Function, *args: object, **inputs: object) -> object:
    if _is_async(function):
        result = function(*args, **inputs)
    else:
        result = await in_thread(partial(function, *args, **inputs))
    return await result if isinstance(result, Awaitable) else result


async def _close(thing: object) -> None:
    if callable(getattr(thing, "close", None)):
        await _call(_method(thing, "close"))


def _is_async(function: _Function) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _accepted(function: _Function, history: list[_Message], context: dict[str, str]) -> dict[str, object]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    by_name = {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    taken = {parameter.name for parameter in parameters if parameter.kind in by_name}
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        taken.update(_INPUTS)
    return {name: value for name, value in zip(_INPUTS, (history, context), strict=True) if name in taken}


def _history(case: Case) -> list[_Message]:
    return [{"role": entry.role, "message": entry.message, "topic": entry.topic} for entry in case.history]


def _context(case: Case) -> dict[str, str]:
    return {variable.name: variable.value for variable in case.context_variables}


def _method(thing: object, name: str) -> _Function:
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


def _instance(kind: type, target: str) -> object:
    try:
        instance: object = kind()
    except Exception as error:
        raise SettingsError(
            f"the subject's target {target!r} cannot be made: {type(error).__name__}: {error}",
            actions=(f"Let {kind.__name__}() work without arguments, or name an object made of it.",),
        ) from error
    return instance
