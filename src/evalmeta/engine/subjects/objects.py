"""Agents that are Python objects: functions that answer, and objects that open sessions; and the import of modules."""

from __future__ import annotations

import asyncio
import inspect
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from evalmeta.engine.answers import context_of, generated_data, history_of, plain_text, turn_messages
from evalmeta.engine.event_loop import Threads
from evalmeta.engine.interfaces import NothingToClose, Session, SimpleSubject, Subject
from evalmeta.engine.project_code import Function, innermost_line, is_in_project, traceback_text
from evalmeta.errors import EvalmetaError, SettingsError, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.model.redaction import error_text

if TYPE_CHECKING:
    from evalmeta.model.evaluation import Case, InputKind
    from evalmeta.model.generated_data import GeneratedData
    from evalmeta.model.json_value import JsonValue


_INPUTS: Final = ("history", "context")
_BY_NAME: Final = frozenset({inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD})
# How alike a key is to a parameter if it is meant to be its keyword.
_ALIKE: Final = 0.75
# The kinds of inputs that agents are bound for; empty if they are not known.
_asked_inputs: Final[ContextVar[Collection[InputKind]]] = ContextVar("asked_inputs", default=(None,))


@contextmanager
def bound_for(kinds: Collection[InputKind]) -> Iterator[None]:
    """Let functions that are bound be checked for inputs of these kinds, instead of for text; empty: not known."""
    token = _asked_inputs.set(kinds)
    try:
        yield
    finally:
        _asked_inputs.reset(token)


def subject_of(agent: object, *, root: Path, called: str = "the subject", retry_on: tuple[str, ...] = ()) -> Subject:
    """Return a subject for a Python object.

    The object is a function `answer(utterance, *, history, context)`, or a class or object with
    `open(history, context)`, whose sessions have `ask(utterance)` and may have `close()`. All of them may be coroutine
    functions; others run in a daemon thread. Functions only receive the parameters that they declare: `history` is a
    list of mappings with role, message and topic, `context` maps variable names to values. An agent that is busy
    raises `SubjectBusy`.

    Errors name files relative to `root`, and call the object `called`. `retry_on` names transient exceptions, by their
    class or a base class; after one of them, the case is retried. Raise SettingsError if the object is not an
    agent, or the class cannot be instantiated without arguments.
    """
    if inspect.isclass(agent) and _opens(agent):
        agent = _instance(agent, root, called)
    for adapter in OBJECT_ADAPTERS:
        if adapter.recognises(agent):
            return adapter.bind(agent, Calls(root, retry_on=retry_on), called)
    raise SettingsError(
        f"{called} is neither a function nor an object with the method open: "
        f"{f'the class {agent.__name__}' if isinstance(agent, type) else type(agent).__name__}",
        actions=("Name a function answer(utterance), or a class with open(history, context).",),
    )


class ObjectAdapter(NamedTuple):
    """How objects of one kind are recognised, asked and read; it imports nothing that the object did not bring.

    `bind` receives what calls the object, and what errors call it.
    """

    recognises: Callable[[object], bool]
    bind: Callable[[object, Calls, str], Subject]


def _instance(kind: type, root: Path, called: str) -> object:
    try:
        return kind()
    except Exception as error:
        raise SettingsError(
            f"{_definition_line(kind, root)}{called} cannot be instantiated: {type(error).__name__}: {error}",
            actions=(f"Let {kind.__name__}() work without arguments, or name an instance.",),
        ) from error


def _opens(agent: object) -> bool:
    return callable(getattr(agent, "open", None))


def _bind_opener(agent: object, calls: Calls, called: str) -> Subject:
    opener = _method(agent, "open")
    accepted = _accepted_names(opener)
    example = "open(self, history, context), where history and context are optional"
    called = f"the method open of {called}"
    check_call(opener, (), dict.fromkeys(accepted), called=called, root=calls.root, example=example)
    return _Agent(agent, accepted, calls)


def _is_function(agent: object) -> bool:
    return callable(agent) and not inspect.isclass(agent)


def _bind_function(agent: object, calls: Calls, called: str) -> Subject:
    function = cast("Function", agent)
    accepted = _accepted_names(function)
    example = "answer(utterance, *, history, context), where history and context are optional"
    takes = _Takes(function, called, calls.root)
    kinds = _asked_inputs.get()
    if None in kinds or not (kinds or takes.has_keywords):
        check_call(function, ("",), dict.fromkeys(accepted), called=called, root=calls.root, example=example)
    for keys in kinds:
        if keys is not None:
            takes.as_keywords(keys)
    answer = calls.of(function)

    async def close() -> None:
        calls.close()

    return SimpleSubject(lambda case: _FunctionSession(answer, accepted, case, takes), close=close)


# The first that recognises an object is used, so adapters for the objects of one framework stand first.
OBJECT_ADAPTERS: Final = (ObjectAdapter(_opens, _bind_opener), ObjectAdapter(_is_function, _bind_function))


def check_call(
    function: Function,
    arguments: tuple[object, ...],
    inputs: Mapping[str, object],
    *,
    called: str,
    root: Path,
    example: str,
) -> None:
    """Check without a call that a function takes these arguments; raise SettingsError with its line if it does not."""
    try:
        # A decorator can add arguments, so what it wraps does not say how it must be called.
        signature = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments, **inputs)
    except TypeError as error:
        defined = f"{getattr(function, '__name__', 'it')}{signature}"
        what = f"{_definition_line(function, root)}{called} cannot be called: {error}; it is {defined}"
        raise SettingsError(f"{what}, and must be {example}", actions=(f"Define it as {example}.",)) from None


def _definition_line(defined: object, root: Path) -> str:
    """Return `FILE:LINE: ` of a function or class, relative to `root` if it is in there; empty if it is not known."""
    plain = inspect.unwrap(defined) if callable(defined) else defined
    plain = plain if inspect.isroutine(plain) or inspect.isclass(plain) else _call_method(type(plain))
    try:
        file, (_, line) = Path(inspect.getfile(plain)), inspect.getsourcelines(plain)  # type: ignore[arg-type]
    except (TypeError, OSError):
        return ""
    return f"{file.relative_to(root.resolve()) if is_in_project(file, root.resolve()) else file}:{line or 1}: "


class _Takes:
    """Whether a function takes the members of a mapping as keywords, or the mapping as its only argument."""

    def __init__(self, function: Function, called: str, root: Path) -> None:
        self._function = function
        self._called = called
        self._root = root
        self._known: dict[tuple[str, ...], bool] = {}
        try:
            self._signature: inspect.Signature | None = inspect.signature(function, follow_wrapped=False)
        except (TypeError, ValueError):
            self._signature = None
        parameters = self._signature.parameters if self._signature else {}
        self._names = {name for name, known in parameters.items() if known.kind in _BY_NAME}

    @property
    def has_keywords(self) -> bool:
        """Return whether it has parameters besides history and context that can be given by name."""
        return bool(self._names.difference(_INPUTS))

    def own_inputs(self, inputs: Mapping[str, object]) -> set[str]:
        """Return which of history and context it declares and the inputs do not have."""
        return self._names.intersection(_INPUTS).difference(inputs)

    def as_keywords(self, keys: tuple[str, ...]) -> bool:
        """Return whether it takes these keys as keywords; raise SettingsError if it takes no mapping with them."""
        if keys not in self._known:
            self._known[keys] = self._decide(keys)
        return self._known[keys]

    def _decide(self, keys: tuple[str, ...]) -> bool:
        if self._signature is None:
            return False
        others = dict.fromkeys(self.own_inputs(dict.fromkeys(keys)))
        try:
            self._signature.bind(**dict.fromkeys(keys), **others)
        except TypeError as error:
            if not any(get_close_matches(key, self._names, n=1, cutoff=_ALIKE) for key in keys) and self._binds_one(
                others
            ):
                return False
            defined = f"{getattr(self._function, '__name__', 'it')}{self._signature}"
            raise SettingsError(
                f"{_definition_line(self._function, self._root)}{self._called} cannot be called with the inputs "
                f"{', '.join(keys)}: {error}; it is {defined}",
                actions=(
                    f"Define it with the parameters {', '.join(keys)}, or with one parameter for the whole mapping.",
                ),
            ) from None
        return True

    def _binds_one(self, others: Mapping[str, object]) -> bool:
        try:
            cast("inspect.Signature", self._signature).bind({}, **others)
        except TypeError:
            return False
        return True


class _FunctionSession(NothingToClose):
    """Call the function for every turn, with the history so far."""

    __slots__ = ("_accepted", "_answer", "_answered", "_case", "_takes")

    checks_answers = True

    def __init__(self, answer: _Call, accepted: Collection[str], case: Case, takes: _Takes) -> None:
        self._answer = answer
        self._accepted = accepted
        self._case = case
        self._takes = takes
        self._answered: list[tuple[str, GeneratedData]] = []

    async def ask(self, utterance: str) -> GeneratedData:
        asked = time.perf_counter()
        if not self._accepted:
            return _checked(await self._answer(utterance), asked)
        inputs = _inputs(self._accepted, self._case, self._answered)
        generated = _checked(await self._answer(utterance, **inputs), asked)
        self._answered.append((utterance, generated))
        return generated

    async def ask_value(self, inputs: JsonValue) -> GeneratedData:
        asked, accepted = time.perf_counter(), self._accepted
        if isinstance(inputs, Mapping) and self._takes.as_keywords(tuple(inputs)):
            own = _inputs(self._takes.own_inputs(inputs), self._case, self._answered)
            answer = await self._answer(**inputs, **own)
        else:
            answer = await self._answer(inputs, **_inputs(accepted, self._case, self._answered))
        generated = _checked(answer, asked)
        self._answered.append((plain_text(inputs), generated))
        return generated


def _checked(answer: object, asked: float) -> GeneratedData:
    return generated_data(answer, measured_ms=round((time.perf_counter() - asked) * 1000, 1))


class _Agent:
    """An agent that opens sessions."""

    def __init__(self, agent: object, accepted: Collection[str], calls: Calls) -> None:
        self._agent = agent
        self._accepted = accepted
        self._calls = calls

    async def open(self, case: Case) -> Session:
        session = await self._calls.call(_method(self._agent, "open"), **_inputs(self._accepted, case, ()))
        return _AgentSession(session, _method(session, "ask"), self._calls)

    async def close(self) -> None:
        try:
            await _close(self._agent, self._calls)
        finally:
            self._calls.close()


class _AgentSession:
    checks_answers = True

    def __init__(self, session: object, ask: Function, calls: Calls) -> None:
        self._session = session
        self._ask = calls.of(ask)
        self._calls = calls
        self._method = ask

    async def ask(self, utterance: str) -> GeneratedData:
        asked = time.perf_counter()
        return _checked(await self._ask(utterance), asked)

    async def ask_value(self, inputs: JsonValue) -> GeneratedData:
        asked = time.perf_counter()
        takes = _Takes(self._method, "the method ask of the session", self._calls.root)
        if isinstance(inputs, Mapping) and takes.as_keywords(tuple(inputs)):
            return _checked(await self._ask(**inputs), asked)
        return _checked(await self._ask(inputs), asked)

    async def close(self) -> None:
        await _close(self._session, self._calls)


async def _close(owner: object, calls: Calls) -> None:
    if callable(getattr(owner, "close", None)):
        await calls.call(_method(owner, "close"))


def _method(owner: object, name: str) -> Function:
    method: object = getattr(owner, name, None)
    if not callable(method):
        raise SubjectError(f"the agent's {type(owner).__name__} has no method {name}")
    return method


def _accepted_names(function: Function) -> frozenset[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters):
        return frozenset(_INPUTS)
    return frozenset(parameter.name for parameter in parameters if parameter.kind in _BY_NAME).intersection(_INPUTS)


def _inputs(accepted: Collection[str], case: Case, answered: Sequence[tuple[str, GeneratedData]]) -> dict[str, object]:
    inputs: dict[str, object] = {}
    if "history" in accepted:
        turns = (message for turn in answered for message in turn_messages(*turn))
        inputs["history"] = [*history_of(case), *turns]
    if "context" in accepted:
        inputs["context"] = context_of(case)
    return inputs


class _Call(Protocol):
    """A function of the project as a coroutine function, whose exceptions are errors of the subject."""

    def __call__(self, *args: object, **inputs: object) -> Coroutine[None, None, object]:
        """Return the function's result."""
        ...


class Calls:
    """Call functions of the project in `root`, and turn their exceptions into errors of the subject.

    Without `threads`, they run in threads of their own, which `close` ends.
    """

    def __init__(self, root: Path, *, retry_on: tuple[str, ...] = (), threads: Threads | None = None) -> None:
        self.root = root
        self._root = root.resolve()
        self._retry_on = retry_on
        self._threads = threads or Threads()

    def of(self, function: Function) -> _Call:
        """Return a coroutine function that returns a function's result.

        A function that is not a coroutine function runs in a daemon thread. An exception that `retry_on` names becomes
        SubjectUnreachable. Another one becomes SubjectError, with the line in the project, unless it is evalmeta's own,
        such as SubjectBusy.
        """
        is_async = any(map(inspect.iscoroutinefunction, (function, _call_method(function))))
        coroutine_function = cast("_Call", function) if is_async else None

        async def call(*args: object, **inputs: object) -> object:
            try:
                if coroutine_function is not None:
                    return await coroutine_function(*args, **inputs)
                result = await self._threads.call(partial(function, *args, **inputs))
                return await result if isinstance(result, Awaitable) else result
            except (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as error:
                # pytest.fail() and panics of Rust are not subclasses of Exception.
                failure = self._failure(error)
                if failure is error:
                    raise
                raise failure from error

        return call

    async def call(self, function: Function, *args: object, **inputs: object) -> object:
        """Return a function's result; see `of`."""
        return await self.of(function)(*args, **inputs)

    def close(self) -> None:
        """End the threads in which no function runs any more."""
        self._threads.close()

    def _failure(self, error: BaseException) -> BaseException:
        failure = error
        if any(_is_named(kind, name) for kind in type(error).__mro__ for name in self._retry_on):
            failure = SubjectUnreachable(self._with_line(error))
        elif not isinstance(error, EvalmetaError):
            failure = SubjectError(self._with_line(error))
        if isinstance(failure, SubjectError) and not isinstance(failure, SubjectBusy):
            failure.traceback = traceback_text(error, self._root)
        return failure

    def _with_line(self, error: BaseException) -> str:
        place = innermost_line(error, self._root)
        if place is None:
            return error_text(error)
        file, line = place
        return f"{file.relative_to(self._root)}:{line}: {error_text(error)}"


def _call_method(called: object) -> object:
    return getattr(called, "__call__", None)  # noqa: B004 - the method itself is needed


def _is_named(kind: type, name: str) -> bool:
    """Return whether a class has this name, with or without its module or a module that imports it."""
    if name in {kind.__name__, f"{kind.__module__}.{kind.__qualname__}"}:
        return True
    module, _, own = name.rpartition(".")
    return getattr(sys.modules.get(module), own, None) is kind
