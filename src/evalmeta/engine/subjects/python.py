"""An agent that is a Python object: a function that answers, or something that opens sessions.

Calls into a project's own code: blocking or not, and what they raise as errors of the subject's.

Blocking code in threads that nobody has to wait for.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import sys
import threading
from collections.abc import Awaitable
from contextlib import suppress
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Final, NoReturn, Protocol, TypeVar

from evalmeta.engine.answers import generated_data
from evalmeta.engine.reasons import reason
from evalmeta.engine.subjects.conversation import context_of, history_of, turn_messages
from evalmeta.engine.subjects.imports import import_from, innermost_line
from evalmeta.errors import EvalmetaError, SettingsError, SubjectError, SubjectUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalmeta.engine.subject import Session, Subject
    from evalmeta.engine.subjects.conversation import Message
    from evalmeta.model.evaluation import Case
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue
    from evalmeta.model.settings import PythonSubject


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
        self._history += turn_messages(utterance, generated)
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


class Function(Protocol):
    """Anything that can be called."""

    def __call__(self, *args: object, **inputs: object) -> object:
        """Gives its answer, or something to await it by."""
        ...


class Calls:
    """Calls functions of the project in `root`; exceptions that `retry_on` names pass."""

    def __init__(self, root: Path, *, retry_on: tuple[str, ...] = ()) -> None:
        self._root = root.resolve()
        self._retry_on = retry_on

    async def call(self, function: Function, *args: object, **inputs: object) -> object:
        """Gives what the function returns; what is no coroutine function runs in a daemon thread.

        Raises:
            SubjectUnreachable: it raised what `retry_on` names, by class or base class.
            SubjectError: it raised anything else; says where in the project. Errors of
                evalmeta's own, such as SubjectBusy, come as they are.
        """
        try:
            return await _result(function, *args, **inputs)
        except (Exception, SystemExit) as error:
            if any(_is_named(kind, name) for kind in type(error).__mro__ for name in self._retry_on):
                raise SubjectUnreachable(self._told(error)) from error
            if isinstance(error, EvalmetaError):
                raise
            raise SubjectError(self._told(error)) from error

    def _told(self, error: BaseException) -> str:
        place = innermost_line(error, self._root)
        if place is None:
            return reason(error)
        file, line = place
        return f"{file.relative_to(self._root)}:{line}: {reason(error)}"


async def _result(function: Function, *args: object, **inputs: object) -> object:
    if _is_async(function):
        result = function(*args, **inputs)
    else:
        result = await in_thread(partial(function, *args, **inputs))
    return await result if isinstance(result, Awaitable) else result


def _is_async(function: Function) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _is_named(kind: type, name: str) -> bool:
    """Tells whether a class has this name: its own, its module's and its own, or one that a module gives it."""
    if name in {kind.__name__, f"{kind.__module__}.{kind.__qualname__}"}:
        return True
    module, _, own = name.rpartition(".")
    return getattr(sys.modules.get(module), own, None) is kind


T = TypeVar("T")


async def in_thread(function: Callable[[], T]) -> T:
    """Gives what the function returns, or raises what it raises, from a daemon thread of its own.

    Cancelling leaves the thread behind; it neither blocks the event loop nor the end
    of the process. `asyncio.to_thread` would do both.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Callable[[], T]] = loop.create_future()

    def run() -> None:
        outcome = _outcome(function)
        # The loop may be gone by the time a late answer comes.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_deliver, done, outcome)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="evalmeta-agent", daemon=True).start()
    return (await done)()


def _outcome(function: Callable[[], T]) -> Callable[[], T]:
    try:
        value = function()
    except BaseException as error:  # noqa: BLE001 - whatever ends the thread is told to who waits for it
        return _raiser(error)
    return lambda: value


def _raiser(error: BaseException) -> Callable[[], NoReturn]:
    # In the event loop these would end the whole run.
    if isinstance(error, KeyboardInterrupt | SystemExit | asyncio.CancelledError):
        error = RuntimeError(f"{type(error).__name__}: {error}").with_traceback(error.__traceback__)

    def fail() -> NoReturn:
        raise error

    return fail


def _deliver(done: asyncio.Future[Callable[[], T]], outcome: Callable[[], T]) -> None:
    if not done.done():
        done.set_result(outcome)
