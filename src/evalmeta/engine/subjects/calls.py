"""Calls of the project's functions: a check of their signatures, and their exceptions as errors of the agent."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Coroutine, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol, cast

from evalmeta.engine.event_loop import Threads
from evalmeta.engine.project_code import Function, innermost_line, is_in_project, traceback_text
from evalmeta.errors import EvalmetaError, SettingsError, SubjectBusy, SubjectError, SubjectUnreachable
from evalmeta.model.redaction import error_text


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
        what = f"{definition_line(function, root)}{called} cannot be called: {error}; it is {defined}"
        raise SettingsError(f"{what}, and must be {example}", actions=(f"Define it as {example}.",)) from None


def definition_line(defined: object, root: Path) -> str:
    """Return `FILE:LINE: ` of a function or class, relative to `root` if it is in there; empty if it is not known."""
    plain = inspect.unwrap(defined) if callable(defined) else defined
    plain = plain if inspect.isroutine(plain) or inspect.isclass(plain) else _call_method(type(plain))
    try:
        file, (_, line) = Path(inspect.getfile(plain)), inspect.getsourcelines(plain)  # type: ignore[arg-type]
    except (TypeError, OSError):
        return ""
    return f"{file.relative_to(root.resolve()) if is_in_project(file, root.resolve()) else file}:{line or 1}: "


class Call(Protocol):
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

    def of(self, function: Function) -> Call:
        """Return a coroutine function that returns a function's result.

        A function that is not a coroutine function runs in a daemon thread. An exception that `retry_on` names becomes
        SubjectUnreachable. Another one becomes SubjectError, with the line in the project, unless it is evalmeta's own,
        such as SubjectBusy.
        """
        is_async = any(map(inspect.iscoroutinefunction, (function, _call_method(function))))
        coroutine_function = cast("Call", function) if is_async else None

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
