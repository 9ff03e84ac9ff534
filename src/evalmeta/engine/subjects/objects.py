"""Agents that are Python objects: functions that answer, objects that open sessions, and agents of frameworks."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from evalmeta.engine.answers import context_of, generated_data, history_of, plain_text, turn_messages
from evalmeta.engine.interfaces import NothingToClose, Session, SimpleSubject, Subject
from evalmeta.engine.subjects.calls import Call, Calls, check_call, definition_line
from evalmeta.engine.subjects.inventories import no_parts
from evalmeta.engine.subjects.kinds import AgentKind, class_name, kind_of
from evalmeta.errors import SettingsError, SubjectError
from evalmeta.model.entry_points import ENTRY_POINTS

if TYPE_CHECKING:
    from pathlib import Path

    from evalmeta.engine.project_code import Function
    from evalmeta.model.coverage import Inventory
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
    raises `SubjectBusy`. Objects of frameworks are asked as their kind says (`kinds`). A function without parameters
    returns the object of one case.

    Errors name files relative to `root`, and call the object `called`. `retry_on` names transient exceptions, by their
    class or a base class; after one of them, the case is retried. Raise SettingsError if the object is not an
    agent, or the class cannot be instantiated without arguments.
    """
    if inspect.isclass(agent) and (_opens(agent) or _is_shareable(agent)):
        agent = _instance(agent, root, called)
    for adapter in OBJECT_ADAPTERS:
        if adapter.recognises(agent):
            return adapter.bind(agent, Calls(root, retry_on=retry_on), called)
    raise SettingsError(
        f"{called} is neither a function nor an object with the method open: {_description(agent)}", actions=_WAYS_OUT
    )


class ObjectAdapter(NamedTuple):
    """How objects of one kind are recognised, asked and read; it imports nothing that the object did not bring.

    `bind` receives what calls the object, and what errors call it.
    """

    recognises: Callable[[object], bool]
    bind: Callable[[object, Calls, str], Subject]


def _description(agent: object) -> str:
    defined = agent if isinstance(agent, type) else type(agent)
    name = defined.__name__ if defined.__module__ in {"builtins", "__main__"} else class_name(defined)
    return f"the class {name}" if isinstance(agent, type) else name


_PACKAGES: Final = [
    name for name in ENTRY_POINTS["agents"] if not any(name.startswith(f"{other}.") for other in ENTRY_POINTS["agents"])
]
_WAYS_OUT: Final = (
    "Name a function answer(utterance), or a class with open(history, context).",
    "To ask another object, write a function: async def answer(utterance): return await thing.run(utterance)",
    f"Agents of these packages are asked as they are: {', '.join(_PACKAGES)}.",
)


# Objects of frameworks


def _kind(agent: object) -> AgentKind | None:
    if inspect.isroutine(agent) or inspect.isclass(agent):
        return None
    return kind_of(type(agent))


def _is_shareable(defined: type) -> bool:
    kind = kind_of(defined)
    return kind is not None and not kind.factory


def _bind_framework(agent: object, calls: Calls, called: str) -> Subject:
    kind = cast("AgentKind", _kind(agent))
    if kind.factory:
        raise SettingsError(
            f"{called} is one {class_name(type(agent))}, which holds one conversation, so its cases would be mixed",
            actions=(f"Name a function that makes one for each case: {kind.factory}",),
        )
    kind.check(agent, called=called)
    return _FrameworkAgent(agent, kind, calls)


class _FrameworkAgent:
    """An agent of a framework, which all cases share."""

    def __init__(self, agent: object, kind: AgentKind, calls: Calls) -> None:
        self._agent = agent
        self._kind = kind
        self._calls = calls

    async def open(self, case: Case) -> Session:
        return await _open(self._agent, self._kind, case, self._calls)

    async def inventory(self) -> Inventory:
        return await _parts_of(self._agent, self._kind, self._calls)

    async def close(self) -> None:
        self._calls.close()


async def _open(agent: object, kind: AgentKind, case: Case, calls: Calls) -> Session:
    session = await calls.call(cast("Function", kind.open), agent, case)
    return _AgentSession(session, _method(session, "ask"), calls)


async def _parts_of(agent: object, kind: AgentKind | None, calls: Calls) -> Inventory:
    if kind is None or kind.parts is None:
        raise no_parts(_description(agent))
    return cast("Inventory", await calls.call(cast("Function", kind.parts), agent))


def _makes_agents(agent: object) -> bool:
    """Return whether an object is called without arguments: it takes no utterance, or it returns agents of a kind."""
    is_class = inspect.isclass(agent)
    if not callable(agent) or (isinstance(agent, type) and kind_of(agent) is None):
        return False
    function = cast("Function", agent)
    try:
        signature = inspect.signature(function)
        signature.bind()
    except (TypeError, ValueError):
        return False
    return is_class or not signature.parameters or _returns_agents(function)


def _returns_agents(function: Function) -> bool:
    try:
        returned: object = inspect.signature(function, eval_str=True).return_annotation
    except Exception:  # noqa: BLE001 - annotations may be any code
        return False
    return isinstance(returned, type) and kind_of(returned) is not None


def _bind_factory(agent: object, calls: Calls, called: str) -> Subject:
    return _Factory(cast("Function", agent), calls, called)


class _Factory:
    """A function that makes the agent of one case."""

    def __init__(self, make: Function, calls: Calls, called: str) -> None:
        self._make = make
        self._calls = calls
        self._called = called
        is_async = inspect.iscoroutinefunction(make) or inspect.isclass(make)
        # A plain function is called before the first question, to report its errors; the first case gets the result.
        self._made: list[object] = [] if is_async else [self._checked(_first_agent(make, calls.root, called))]

    async def open(self, case: Case) -> Session:
        made = await self._next()
        kind = _kind(made)
        if kind is not None:
            return await _open(made, kind, case, self._calls)
        opener = _method(made, "open")
        session = await self._calls.call(opener, **_inputs(_accepted_names(opener), case, ()))
        return _AgentSession(session, _method(session, "ask"), self._calls)

    async def inventory(self) -> Inventory:
        made = await self._next()
        return await _parts_of(made, _kind(made), self._calls)

    async def _next(self) -> object:
        return self._checked(self._made.pop() if self._made else await self._calls.call(self._make))

    def _checked(self, made: object) -> object:
        kind = _kind(made)
        if kind is not None:
            kind.check(made, called=f"what {self._called} returned")
        elif not _opens(made):
            raise SettingsError(
                f"{definition_line(self._make, self._calls.root)}{self._called} takes no utterance, so it must return "
                f"an agent; it returned {_description(made)}",
                actions=("Define it as answer(utterance), or return an agent of a framework.", *_WAYS_OUT[1:]),
            )
        return made

    async def close(self) -> None:
        self._calls.close()


def _first_agent(make: Function, root: Path, called: str) -> object:
    try:
        return make()
    except Exception as error:
        raise SettingsError(
            f"{definition_line(make, root)}{called} cannot make an agent: {type(error).__name__}: {error}",
            actions=(f"Let {getattr(make, '__name__', 'it')}() return an agent when it is called without arguments.",),
        ) from error


# Functions, and objects with the method open


def _instance(kind: type, root: Path, called: str) -> object:
    try:
        return kind()
    except Exception as error:
        raise SettingsError(
            f"{definition_line(kind, root)}{called} cannot be instantiated: {type(error).__name__}: {error}",
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


# The first that recognises an object is used: objects of frameworks may have a method open, or be callable, too.
OBJECT_ADAPTERS: Final = (
    ObjectAdapter(lambda agent: _kind(agent) is not None, _bind_framework),
    ObjectAdapter(_opens, _bind_opener),
    ObjectAdapter(_makes_agents, _bind_factory),
    ObjectAdapter(_is_function, _bind_function),
)


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
                f"{definition_line(self._function, self._root)}{self._called} cannot be called with the inputs "
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

    def __init__(self, answer: Call, accepted: Collection[str], case: Case, takes: _Takes) -> None:
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
