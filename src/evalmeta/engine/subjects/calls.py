"""Calls into a project's own code: blocking or not, and what they raise as errors of the subject's."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Protocol

from evalmeta.engine.reasons import reason
from evalmeta.engine.subjects.imports import innermost_line
from evalmeta.engine.subjects.threads import in_thread
from evalmeta.errors import EvalmetaError, SubjectError, SubjectUnreachable

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Calls", "Function"]


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
