"""Entries of evaluations that are coroutine functions: while pytest waits for one, those that follow it run too.

An entry is a parameter set in an iteration. pytest sets up one test after the other, so an entry can only begin before
its own turn if its arguments are known by then: parameters, and fixtures that it shares with the entries before it.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import warnings
from typing import TYPE_CHECKING, Final, cast

import pytest

from evalmeta.engine.event_loop import EventLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    Key = tuple[str, tuple[tuple[str, int], ...]]


_SKIPS: Final = ("skip", "skipif", "xfail")
_DIRECT: Final = "get_direct_param_fixture_func"


def gets_whole_files(config: pytest.Config) -> bool:
    """Return whether the process that runs the first test of a file runs all of them."""
    # `pytest_configure_node` of the plugin tells workers the distribution.
    workerinput = cast("dict[str, str]", getattr(config, "workerinput", {}))
    return workerinput.get("evalmeta_dist", "each") in {"each", "loadfile", "loadscope"}


def is_coroutine(item: pytest.Item) -> bool:
    """Return whether a test is a coroutine function that evalmeta runs.

    Plugins run the others, because only their event loop has the values of asynchronous fixtures.
    """
    return isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.function) and not _async_fixture(item)


def why_alone(item: pytest.Item, *, own_fixture: str) -> str:
    """Return why an entry that is a coroutine function cannot run beside others; empty if it can."""
    if not (isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.function)):
        return ""
    if name := _async_fixture(item):
        return f"the plugin of the fixture {name} runs them"
    fixtures = (name for name in item.fixturenames if name != own_fixture and not _is_parameter(item, name))
    own = next((name for name in fixtures if _scope(item, name) == "function"), "")
    return f'the fixture {own} has the scope "function"' if own else ""


def together(items: Iterable[pytest.Item], is_entry: Callable[[pytest.Item], bool]) -> list[pytest.Item]:
    """Return tests in their order, but the entries of an evaluation that can share fixtures beside each other."""
    groups: dict[Key | pytest.Item, list[pytest.Item]] = {}
    for item in items:
        key = _key(item) if isinstance(item, pytest.Function) and is_entry(item) else item
        groups.setdefault(key, []).append(item)
    return [item for group in groups.values() for item in group]


class Entries:
    """The entries of a session. They only work while pytest waits for one of them."""

    def __init__(
        self, items: Iterable[pytest.Item], *, own_fixture: str, concurrency: Callable[[pytest.Item], int]
    ) -> None:
        self._own_fixture = own_fixture
        self._concurrency = concurrency
        self._loop = EventLoop()
        self._groups: dict[Key, list[pytest.Function]] = {}
        self._begun: set[pytest.Function] = set()
        self._tasks: dict[pytest.Function, asyncio.Task[object]] = {}
        for item in items:
            if isinstance(item, pytest.Function):
                self._groups.setdefault(_key(item), []).append(item)

    def run(self, item: pytest.Function) -> None:
        """Run an entry that pytest has set up, to its end; it may have begun before."""
        __tracebackhide__ = True
        returned = self._loop.run(self._result(item))
        if returned is not None:
            # As pytest warns of other tests, of which some say False and mean a failure.
            text = f"Test functions should return None, but {item.nodeid} returned {type(returned)!r}.\n"
            hint = "Did you mean to use `assert` instead of `return`?"
            warnings.warn(pytest.PytestReturnNotNoneWarning(f"{text}{hint}"), stacklevel=2)

    def close(self) -> None:
        """Cancel the entries that pytest did not wait for, because the session was stopped."""
        self._loop.close()

    async def _result(self, item: pytest.Function) -> object:
        __tracebackhide__ = True
        if item not in self._tasks:
            self._begin(item)
        return await self._tasks.pop(item)

    def _begin(self, item: pytest.Function) -> None:
        following = [] if why_alone(item, own_fixture=self._own_fixture) else self._following(item)
        places = asyncio.Semaphore(self._concurrency(item))
        for entry in (item, *following):
            self._begun.add(entry)
            # Contexts are separate, as those of tests that run one after the other are.
            work = _called(places, entry, self._arguments(entry, item.funcargs))
            task = asyncio.get_running_loop().create_task(work, context=contextvars.copy_context())
            # asyncio reports errors that nobody looks at, such as those of entries after the one that stops a session.
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
            self._tasks[entry] = task

    def _following(self, item: pytest.Function) -> Sequence[pytest.Function]:
        """Return the entries after one that can begin now, and have not begun; those that may be skipped cannot."""
        group = self._groups.get(_key(item), [])
        if item not in group:
            return ()
        later = group[group.index(item) + 1 :]
        return [entry for entry in later if entry not in self._begun and not any(map(entry.get_closest_marker, _SKIPS))]

    def _arguments(self, entry: pytest.Function, shared: Mapping[str, object]) -> dict[str, object]:
        """Return the arguments of an entry: its own parameters, and the fixtures of an entry that is set up."""
        names = _arguments_of(entry)
        params = _params(entry)
        own = {name for name in names if name == self._own_fixture or _is_parameter(entry, name)}
        return {name: params.get(name, shared.get(name)) if name in own else shared[name] for name in names}


async def _called(places: asyncio.Semaphore, entry: pytest.Function, arguments: Mapping[str, object]) -> object:
    __tracebackhide__ = True
    async with places:
        returned: object = await entry.obj(**arguments)
        return returned


def _arguments_of(item: pytest.Function) -> Sequence[str]:
    return item._fixtureinfo.argnames  # noqa: SLF001 - pytest has no public way to it


def _params(item: pytest.Function) -> Mapping[str, object]:
    params: Mapping[str, object] = item.callspec.params if hasattr(item, "callspec") else {}
    return params


def _key(item: pytest.Function) -> Key:
    """Return what the entries that can share fixtures have in common: the function, and parameters of wider scopes."""
    parent = item.parent.nodeid if item.parent else ""
    if not hasattr(item, "callspec"):
        return f"{parent}::{item.originalname}", ()
    scopes = getattr(item.callspec, "_arg2scope", {})
    indices = item.callspec.indices
    wide = [
        (name, index) for name, index in indices.items() if getattr(scopes.get(name), "value", "function") != "function"
    ]
    return f"{parent}::{item.originalname}", tuple(wide)


def _is_parameter(item: pytest.Function, name: str) -> bool:
    """Return whether an argument is a parameter whose value no fixture function makes."""
    definitions = _definitions(item, name)
    return name in _params(item) and (not definitions or definitions[-1].func.__name__ == _DIRECT)


def _scope(item: pytest.Function, name: str) -> str:
    """Return the scope of a fixture that a test uses. Each test has its own `request`."""
    if name == "request":
        return "function" if name in _arguments_of(item) else ""
    definitions = _definitions(item, name)
    return definitions[-1].scope if definitions else ""


def _async_fixture(item: pytest.Function) -> str:
    """Return an asynchronous fixture that a test uses, also by other fixtures; empty if there is none."""
    functions = ((name, definition.func) for name in item.fixturenames for definition in _definitions(item, name))
    found = (name for name, made in functions if inspect.iscoroutinefunction(made) or inspect.isasyncgenfunction(made))
    # With this fixture, anyio runs the test, and perhaps with Trio.
    return next(found, "anyio_backend" if "anyio_backend" in item.fixturenames else "")


def _definitions(item: pytest.Function, name: str) -> Sequence[pytest.FixtureDef[object]]:
    return item._fixtureinfo.name2fixturedefs.get(name, ())  # noqa: SLF001 - as above
