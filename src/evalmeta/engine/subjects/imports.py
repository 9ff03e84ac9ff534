"""Import a project's own Python modules: always fresh, and never the modules of another project."""

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
# Modules that an earlier import loaded from its own project.
_project_modules: Final[set[str]] = set()


def import_from(root: Path, name: str, *, target: str) -> ModuleType:
    """Import a module of the project in `root`, or an installed one.

    `root` is on `sys.path` during the import. Modules that were imported from a project before are imported anew.
    Modules of other projects that have the same names are put back afterwards.

    Raises:
        SettingsError: the module cannot be found or imported; names the file.
    """
    with _lock, _isolated(root):
        try:
            return importlib.import_module(name)
        except (Exception, SystemExit) as error:
            raise _import_failed(root, name, target, error) from error


@contextmanager
def _isolated(root: Path) -> Iterator[None]:
    root = root.resolve()
    for name in _project_modules:
        sys.modules.pop(name, None)
    _project_modules.clear()
    shadowed = {name: sys.modules.pop(name) for name in _shadowed(root)}
    known = set(sys.modules)
    sys.path.insert(0, str(root))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(root))
        new = sys.modules.keys() - known - shadowed.keys()
        _project_modules.update(name for name in new if _is_in_project(sys.modules[name], root))
        sys.modules.update(shadowed)


def _shadowed(root: Path) -> list[str]:
    """Return the loaded modules from elsewhere that have the name of a module in the project."""
    own = {path.stem for path in root.glob("*.py")} | {path.parent.name for path in root.glob("*/__init__.py")}
    own -= {*sys.stdlib_module_names, "evalmeta"}
    return [
        name
        for name, module in sys.modules.items()
        if name.partition(".")[0] in own and not _is_in_project(module, root)
    ]


def _is_in_project(module: ModuleType, root: Path) -> bool:
    file: str | None = getattr(module, "__file__", None)
    return file is not None and _is_in(Path(file).resolve(), root)


def _is_in(path: Path, root: Path) -> bool:
    return path.is_relative_to(root) and "site-packages" not in path.parts


def _import_failed(root: Path, name: str, target: str, error: BaseException) -> SettingsError:
    if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
        file = root.joinpath(*name.split(".")).with_suffix(".py")
        return SettingsError(
            f"the module of the subject's target {target!r} cannot be found: there is no {file}",
            actions=(f"Create {file}, or correct the target in evalmeta.toml.",),
        )
    if isinstance(error, SyntaxError) and error.filename:
        line = f"{error.filename}:{error.lineno}: "
    else:
        found = innermost_line(error, root.resolve())
        line = f"{found[0]}:{found[1]}: " if found else ""
    return SettingsError(
        f"the subject's target {target!r} cannot be imported: {line}{type(error).__name__}: {error}",
        actions=(f'Make `python -c "import {name}"` work in {root}.',),
    )


def innermost_line(error: BaseException, root: Path) -> tuple[Path, int] | None:
    """Return the innermost file and line of the project in an exception's traceback, None if there is none."""
    found, trace = None, error.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if _is_in(file, root):
            found = file, trace.tb_lineno
        trace = trace.tb_next
    return found
