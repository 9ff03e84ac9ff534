"""The Python code of a project: its modules and functions are imported, and errors show its lines."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar, copy_context
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

from evalmeta import limits
from evalmeta.engine.event_loop import Threads
from evalmeta.engine.process import ProcessExit, exits_refused
from evalmeta.errors import SettingsError
from evalmeta.model.redaction import error_text, hide_secrets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextvars import Context
    from types import ModuleType


# A module may import others in this way.
_lock: Final = threading.RLock()
# Modules that an earlier import loaded from its own project.
_project_modules: Final[set[str]] = set()
# Seconds: Python compares whole ones, and clocks of shared folders differ a little.
_EDITED_JUST_NOW: Final = 2.0
# What `imports_kept` keeps, by project and name, and how many such blocks are open.
_kept: Final[dict[tuple[Path, str], ModuleType]] = {}
_keepers: Final[list[object]] = []


@contextmanager
def imports_kept() -> Iterator[None]:
    """Import each module of a project once while this is open, instead of anew for every check and run."""
    keeper = object()
    _keepers.append(keeper)
    try:
        yield
    finally:
        _keepers.remove(keeper)
        if not _keepers:
            _kept.clear()


def import_from(root: Path, name: str, *, called: str) -> ModuleType:
    """Import a module of the project in `root`, or an installed one; raise SettingsError, with the file, if it fails.

    `called` says in the error what names the module.
    `root` is on `sys.path` during the import. Modules that were imported from a project before are imported anew,
    unless `imports_kept` is open. Modules of other projects that have the same names are put back afterwards.
    """
    folder = root.resolve()
    with _lock:
        if kept := _kept.get((folder, name)):
            return kept
        for earlier in _project_modules:
            sys.modules.pop(earlier, None)
        _project_modules.clear()
        shadowed = {module_name: sys.modules.pop(module_name) for module_name in _shadowed(folder)}
        known = set(sys.modules)
        try:
            with _search_path(folder), exits_refused():
                module = importlib.import_module(name)
        except (Exception, SystemExit, ProcessExit) as error:
            raise _import_failed(root, name, called, error) from error
        else:
            if _keepers:
                _kept[folder, name] = module
            return module
        finally:
            new = sys.modules.keys() - known - shadowed.keys()
            own = [module_name for module_name in new if _is_in_project(sys.modules[module_name], folder)]
            _project_modules.update(own)
            for module_name in own:
                _forget_compiled(sys.modules[module_name])
            sys.modules.update(shadowed)


def _shadowed(root: Path) -> list[str]:
    """Return the loaded modules from elsewhere that have the name of a module in the project."""
    own = own_modules(root) - {*sys.stdlib_module_names, "evalmeta"}
    return [
        name
        for name, module in sys.modules.items()
        if name.partition(".")[0] in own and not _is_in_project(module, root)
    ]


def _forget_compiled(module: ModuleType) -> None:
    """Delete the compiled file of a module that was edited just now.

    Python takes a compiled file for up to date if the source has the same size and the same whole second: an edit in
    the second of an import would be ignored, by the next command too.
    """
    spec = module.__spec__
    if spec is None or not spec.has_location or spec.origin is None or spec.cached is None:
        return
    with suppress(OSError):
        if time.time() - Path(spec.origin).stat().st_mtime < _EDITED_JUST_NOW:
            Path(spec.cached).unlink()


def own_modules(root: Path) -> set[str]:
    """Return the names of the modules and packages in a folder."""
    return {path.stem for path in root.glob("*.py")} | {path.parent.name for path in root.glob("*/__init__.py")}


def _is_in_project(module: ModuleType, root: Path) -> bool:
    # A package without __init__.py has no file, only the folders of its modules.
    file: str | None = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    return file is not None and is_in_project(Path(file).resolve(), root)


def _import_failed(root: Path, name: str, called: str, error: BaseException) -> SettingsError:
    if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
        file = root.joinpath(*name.split(".")).with_suffix(".py")
        near = get_close_matches(name, own_modules(root), n=1)
        return SettingsError(
            f"the module of {called} cannot be found: {file} does not exist",
            actions=(
                f"Did you mean the module {near[0]}?" if near else f"Create {file}, or correct the module's name.",
            ),
        )
    if isinstance(error, SyntaxError) and error.filename:
        # Its text repeats the line.
        line, text = f"{error.filename}:{error.lineno}: ", error.msg
    else:
        place = innermost_line(error, root.resolve())
        line, text = f"{place[0]}:{place[1]}: " if place else "", f"{error}"
    return SettingsError(
        f"{called} cannot be imported: {line}{type(error).__name__}: {text}",
        actions=(f'Make `python -c "import {name}"` work in {root}.',),
    )


class Function(Protocol):
    """Anything that can be called."""

    def __call__(self, *args: object, **inputs: object) -> object:
        """Return a result, or an awaitable of it."""
        ...


class _Functions(NamedTuple):
    """Where the functions of a run are found, and the threads in which they are called."""

    root: Path | None = None  # the project's folder
    given: Mapping[str, Function] = MappingProxyType({})  # what a call of `evaluate` was given, by names in results
    threads: Threads | None = None


_NO_RUN: Final = _Functions()
_functions: Final[ContextVar[_Functions]] = ContextVar("functions", default=_NO_RUN)


@contextmanager
def functions_of(root: Path, given: Mapping[str, Function] = MappingProxyType({})) -> Iterator[None]:
    """Let functions be found in a project's folder too, wherever the process runs, and those that a call was given."""
    with closing(Threads()) as threads:
        token = _functions.set(_Functions(root, given, threads))
        try:
            yield
        finally:
            _functions.reset(token)


def functions_context(root: Path, threads: Threads) -> Context:
    """Return a copy of the context in which functions are found in a project's folder and called in these threads."""
    context = copy_context()
    context.run(_functions.set, _Functions(root, threads=threads))
    return context


@contextmanager
def function_threads() -> Iterator[Threads]:
    """Give the threads in which the functions of this run are called; outside of a run, threads that end soon."""
    if threads := _functions.get().threads:
        yield threads
        return
    with closing(Threads()) as own:
        yield own


def functions_root() -> Path | None:
    """Return the project's folder, in which functions are found too; None outside of a run."""
    return _functions.get().root


def given_function(name: str) -> Function | None:
    """Return a function that the call of the run was given; None if it was given none with this name."""
    return _functions.get().given.get(name)


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
        # As with `python -m`, modules are found in the current folder too.
        with _lock, _search_path(*filter(None, (root, Path.cwd()))), exits_refused():
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
def _search_path(*folders: Path) -> Iterator[None]:
    added = [*map(str, folders)]
    sys.path[:0] = added
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for text in added:
            sys.path.remove(text)


_OWN: Final = Path(__file__).resolve().parents[1]
# How many frames are shown at each end of a traceback: of files outside the project, and in all.
_OUTER_FRAMES: Final = 3
_HALF_OF_FRAMES: Final = 10
_GAP: Final = "\n[...]\n"


def traceback_text(error: BaseException, root: Path | None = None) -> str:
    """Return the traceback of an exception and of its causes, in at most `MAX_TRACEBACK_CHARS` characters.

    All frames of files in `root` are shown, and of other files the first and the last ones; in a long traceback, both
    ends. Files are named relative to `root` or to the folder from which Python imports them. Empty if no frame is
    left.
    """
    try:
        traceback = TracebackException.from_exception(error, lookup_lines=False)
    except Exception:  # noqa: BLE001 - an exception that cannot be shown must not stop a run
        return ""
    folder = None if root is None else root.resolve()
    parts = list(_with_causes(traceback))
    for part in parts:
        frames = [frame for frame in part.stack if not Path(frame.filename).is_relative_to(_OWN)]
        part.stack = _Frames(frames, folder)
    if not any(part.stack for part in parts):
        return ""
    text = "".join(traceback.format()).rstrip("\n").encode(errors="replace").decode()
    return _shortened(hide_secrets(text))


def _with_causes(traceback: TracebackException) -> Iterator[TracebackException]:
    left = [traceback]
    while left:
        part = left.pop()
        yield part
        left += filter(None, (part.__cause__, part.__context__, *(getattr(part, "exceptions", None) or ())))


class _Frames(StackSummary):
    """Frames that are formatted in part, with short paths."""

    def __init__(self, frames: list[FrameSummary], root: Path | None) -> None:
        super().__init__(frames)
        self._root = root

    def format(self, **_: object) -> list[str]:
        """Return the text of the shown frames, with the number of the others between them."""
        shown = self._shown()
        lines, following = [], 0
        for place in [*shown, len(self)]:
            if left_out := place - following:
                lines.append(f"  [{left_out} more {'frame' if left_out == 1 else 'frames'}]\n")
            following = place + 1
            if place < len(self):
                frame = self[place]
                name = _relative(frame.filename, self._root)
                short = FrameSummary(name, frame.lineno, frame.name, lookup_line=False, line=frame.line)
                lines += StackSummary.from_list([short]).format()
        return lines

    def _shown(self) -> list[int]:
        last = len(self) - _OUTER_FRAMES
        shown = [
            place
            for place, frame in enumerate(self)
            if place < _OUTER_FRAMES or place >= last or is_in_project(Path(frame.filename), self._root)
        ]
        if len(shown) <= 2 * _HALF_OF_FRAMES:
            return shown
        return shown[:_HALF_OF_FRAMES] + shown[-_HALF_OF_FRAMES:]


def is_in_project(path: Path, root: Path | None) -> bool:
    """Return whether a file belongs to the project in `root`, and not to an installed package."""
    return root is not None and path.is_relative_to(root) and "site-packages" not in path.parts


def _relative(name: str, root: Path | None) -> str:
    path = Path(name)
    if root is not None and is_in_project(path, root):
        return str(path.relative_to(root))
    folders = sorted((text for text in sys.path if text and path.is_relative_to(text)), key=len)
    return str(path.relative_to(folders[-1])) if folders else name


def _shortened(text: str) -> str:
    """Return both ends of a long text: the frames of the caller, and the exception."""
    if len(text) <= limits.MAX_TRACEBACK_CHARS:
        return text
    half = (limits.MAX_TRACEBACK_CHARS - len(_GAP)) // 2
    return f"{text[:half]}{_GAP}{text[-half:]}"


def innermost_line(error: BaseException, root: Path) -> tuple[Path, int] | None:
    """Return the innermost file and line of the project in an exception's traceback, None if there is none."""
    place, trace = None, error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if is_in_project(file, root):
            place = file, trace.tb_lineno
        trace = trace.tb_next
    return place
