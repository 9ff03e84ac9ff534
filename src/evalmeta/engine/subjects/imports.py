"""Importing a project's own Python: fresh at every binding, and never another project's module."""

from __future__ import annotations

import importlib
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalmeta.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


_lock: Final = threading.Lock()
_bound: Final[set[str]] = set()


def import_from(root: Path, name: str, *, target: str) -> ModuleType:
    """Imports a module of the project in `root`, or an installed one.

    `root` is on `sys.path` during the import. Modules that an earlier binding loaded
    from its own root are loaded anew, and modules of the same name that came from
    elsewhere are set aside meanwhile.

    Raises:
        SettingsError: there is no such module, or it does not load; says in which file.
    """
    with _lock, _isolated(root):
        try:
            return importlib.import_module(name)
        except (Exception, SystemExit) as error:
            raise _failure(root, name, target, error) from error


@contextmanager
def _isolated(root: Path) -> Iterator[None]:
    root = root.resolve()
    _forget(_bound)
    aside = {name: sys.modules[name] for name in _shadowed(root)}
    _forget(set(aside))
    known = set(sys.modules)
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(root))
        _bound.update(name for name in sys.modules.keys() - known - aside.keys() if _is_own(sys.modules[name], root))
        sys.modules.update(aside)


def _forget(names: set[str]) -> None:
    for name in list(names):
        sys.modules.pop(name, None)
    names.clear()


def _shadowed(root: Path) -> set[str]:
    """Lists loaded modules that came from elsewhere although the project has some of that name."""
    own = {path.stem for path in root.glob("*.py")} | {path.parent.name for path in root.glob("*/__init__.py")}
    own -= {*sys.stdlib_module_names, "evalmeta"}
    return {name for name, module in sys.modules.items() if name.partition(".")[0] in own and not _is_own(module, root)}


def _is_own(module: ModuleType, root: Path) -> bool:
    file = getattr(module, "__file__", None)
    if not file:
        return False
    return _is_in(Path(file).resolve(), root)


def _failure(root: Path, name: str, target: str, error: BaseException) -> SettingsError:
    if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
        file = root.joinpath(*name.split(".")).with_suffix(".py")
        return SettingsError(
            f"the subject's target {target!r} names a module that is not there: no {file}",
            actions=(f"Create {file}, or correct the target in evalmeta.toml.",),
        )
    return SettingsError(
        f"the subject's target {target!r} does not load: {_place(error, root)}{type(error).__name__}: {error}",
        actions=(f'Make `python -c "import {name}"` work in {root}.',),
    )


def innermost_line(error: BaseException, root: Path) -> tuple[Path, int] | None:
    """Says in which file of the project, and in which line of it, an error came about; None when in none."""
    place, trace = None, error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if _is_in(file, root):
            place = file, trace.tb_lineno
        trace = trace.tb_next
    return place


def _place(error: BaseException, root: Path) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: "
    place = innermost_line(error, root.resolve())
    return "" if place is None else f"{place[0]}:{place[1]}: "


def _is_in(path: Path, root: Path) -> bool:
    return path.is_relative_to(root) and "site-packages" not in path.parts
