"""Custom scoring functions by name: `package.module.function` (ADK), `module:function` (checks of test specs)."""

from __future__ import annotations

import importlib
import inspect
import sys
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from evalmeta.engine.plan import select_cases
from evalmeta.engine.process_exit import ProcessExit, exits_refused
from evalmeta.engine.subjects.objects import check_call, import_from, own_modules
from evalmeta.errors import SettingsError
from evalmeta.model.redaction import error_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from evalmeta.engine.subjects.objects import Function
    from evalmeta.model.evaluation import Evaluation
    from evalmeta.model.run_options import RunOptions


CHECK_INPUTS: Final = ("utterance", "history", "context", "topic", "actions", "generated")
"""What a function can receive besides the answer, by the names of its parameters."""
_lock: Final = threading.Lock()
_root: Final[ContextVar[Path | None]] = ContextVar("root", default=None)


@contextmanager
def functions_of(root: Path) -> Iterator[None]:
    """Let functions be found in a project's folder too, wherever the process runs."""
    token = _root.set(root)
    try:
        yield
    finally:
        _root.reset(token)


def check_function(name: str, *, root: Path) -> None:
    """Check without a call that a function can be imported and called; raise SettingsError if not."""
    called = f"the scoring function {name!r}"
    try:
        function = find_function(name, root)
    except SettingsError as error:
        raise SettingsError(f"{called} cannot be used: {str(error).rstrip('.')}", actions=error.actions) from None
    if ":" in name:
        inputs = dict.fromkeys(accepted_inputs(function))
        example = "check(answer, *, utterance, context), where all but the answer are optional"
        check_call(function, ("",), inputs, called=called, root=root, example=example)
        return
    example = "score(metric, actual_invocations, expected_invocations, conversation_scenario)"
    check_call(function, (None,) * 4, {}, called=called, root=root, example=example)


def named_functions(evaluation: Evaluation, options: RunOptions) -> list[str]:
    """Return the names of the functions that the selected cases are scored by, each once."""
    return list(
        dict.fromkeys(
            str(expectation.terms["function"])
            for case in select_cases(evaluation, options)
            for turn in case.turns
            for expectation in turn.expectations
            if expectation.terms and "function" in expectation.terms
        )
    )


def accepted_inputs(function: Function) -> frozenset[str]:
    """Return the names of `CHECK_INPUTS` that a function declares as parameters after the first."""
    try:
        _, *others = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return frozenset()
    if any(other.kind is inspect.Parameter.VAR_KEYWORD for other in others):
        return frozenset(CHECK_INPUTS)
    return frozenset(other.name for other in others).intersection(CHECK_INPUTS)


def functions_root() -> Path | None:
    """Return the project's folder, in which functions are found too; None outside of a run."""
    return _root.get()


@lru_cache(maxsize=256)
def find_function(name: str, root: Path | None) -> Function:
    """Import a function by `package.module.function` or `package.module:function`; raise SettingsError if it fails."""
    module_name, _, attribute = name.rpartition(":" if ":" in name else ".")
    if not module_name or not attribute:
        example = "module:function" if ":" in name else "package.module.function"
        raise SettingsError("it has no module.", actions=(f"Write {example}.",))
    function = getattr(_module(module_name, root), attribute, None)
    if function is None:
        raise SettingsError(
            f"the module {module_name!r} has no {attribute!r}.", actions=("Correct the name, or define it there.",)
        )
    if not callable(function):
        raise SettingsError(f"it is {type(function).__name__}, not a function.", actions=("Name a function.",))
    return cast("Function", function)


def _module(name: str, root: Path | None) -> ModuleType:
    if root is not None and name.partition(".")[0] in own_modules(root):
        # Another project may have a module of this name too.
        return import_from(root, name, called=f"its module {name!r}")
    try:
        with _lock, _search_path(root), exits_refused():
            return importlib.import_module(name)
    except (Exception, SystemExit, ProcessExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
            raise SettingsError(
                f"the module {error.name!r} cannot be found.",
                actions=("Correct the name, or create it in the project's folder or the current one.",),
            ) from error
        raise SettingsError(
            f"the module {name!r} cannot be imported: {error_text(error)}.",
            actions=(f'Make `python -c "import {name}"` work.',),
        ) from error


@contextmanager
def _search_path(root: Path | None) -> Iterator[None]:
    """Let imports find modules in the project's folder and, as `python -m` does, in the current one."""
    added = [str(path) for path in (root, Path.cwd()) if path is not None]
    sys.path[:0] = added
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for text in added:
            sys.path.remove(text)
