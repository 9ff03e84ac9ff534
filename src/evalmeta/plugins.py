"""Entry points of installed packages and of evalmeta's own wings, in groups from subjects to handlers.

The core imports no wing: it loads what a wing adds by its name, as what other packages add. evalmeta's own entry points
are a constant (`model/entry_points.py`), because reading those of installed packages takes 40 ms at each start.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Final, Literal

from evalmeta.errors import EvalmetaError, SettingsError
from evalmeta.model.checks import CHECKS, OWN_CHECKS, Check
from evalmeta.model.entry_points import ENTRY_POINTS
from evalmeta.model.redaction import error_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.metadata import EntryPoint

    from evalmeta.model.settings import AdapterSettings


Group = Literal[
    "subjects",
    "agents",
    "scorers",
    "checks",
    "raters",
    "reporters",
    "formats",
    "handlers",
    "agent_folders",
    "project_agents",
]
_PREFIX: Final = "evalmeta"
_MAKE: Final = "Write a function of the settings and the project's folder, `make(settings, *, root)`."
_PACKAGES: Final = {".dist-info", ".egg-info"}


def plugin_names(group: Group) -> list[str]:
    """Return the sorted names of the entry points that installed packages have in the group `evalmeta.GROUP`."""
    return sorted(_found(group))


def load_plugin(group: Group, name: str) -> object:
    """Import the object of an entry point, evalmeta's own first; raise SettingsError if that is not possible."""
    target = ENTRY_POINTS.get(group, {}).get(name)
    point = None if target else _found(group).get(name)
    if not (target or point):
        raise unknown_plugin(group, name)
    try:
        plugin: object = point.load() if point else resolve_name(target or "")
    except Exception as error:
        why = f"cannot be imported: {type(error).__name__}: {error}"
        action = f"Correct the package that contains {point.value if point else target}, or uninstall it."
        raise unusable_plugin(group, name, why, action=action) from error
    return plugin


def load_all(group: Group) -> dict[str, object]:
    """Import all objects of a group, evalmeta's own first, which packages cannot replace; raise like `load_plugin`."""
    return {name: load_plugin(group, name) for name in [*ENTRY_POINTS.get(group, {}), *plugin_names(group)]}


@cache
def all_checks() -> Mapping[str, Check]:
    """Return evalmeta's checks of test specs and those of installed packages by name."""
    return {**CHECKS, **{name: _check(name) for name in plugin_names("checks")}}


def _check(name: str) -> Check:
    check = load_plugin("checks", name)
    if isinstance(check, Check) and check.name == name and name not in CHECKS:
        return check
    if name in CHECKS:
        raise unusable_plugin("checks", name, "has the name of a check of evalmeta", action="Rename it.")
    action = f"Declare it as Check({name!r}, ...) of evalmeta.model.checks."
    raise unusable_plugin("checks", name, f"is not a check called {name!r}", action=action)


def is_check(name: str) -> bool:
    """Return whether an expectation is a check of test specs that definitions do not know."""
    return name in OWN_CHECKS or name in _found("checks")


def call_plugin(group: Group, settings: AdapterSettings, *, root: Path, known: Iterable[str] = ()) -> object:
    """Return what `make(settings, *, root)` of a package returns; raise SettingsError if it cannot be called.

    `settings.model_extra` has the table's other keys. An EvalmetaError of the function passes through.
    """
    name = settings.adapter
    if name not in _found(group):
        raise unknown_plugin(group, name, known=known)
    make = load_plugin(group, name)
    if not callable(make):
        raise unusable_plugin(group, name, f"is {type(make).__name__}, which cannot be called")
    try:
        made: object = make(settings, root=root)
    except EvalmetaError:
        raise
    except Exception as error:
        raise unusable_plugin(group, name, f"failed: {error_text(error)}") from error
    return made


def unusable_plugin(group: Group, name: str, why: str, *, action: str = _MAKE) -> SettingsError:
    """Return the error for an entry point that is not what its group needs, by default `make(settings, *, root)`."""
    return SettingsError(f"{name!r} of the entry points {_PREFIX}.{group} {why}", actions=(action,))


def unknown_plugin(group: Group, name: str, *, known: Iterable[str] = ()) -> SettingsError:
    """Return the error for an unknown name, with the nearest known name."""
    names = sorted({*known, *_found(group)})
    near = get_close_matches(name, names, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    listed = ", ".join(names) or "none"
    return SettingsError(
        f"there are no {group} called {name!r}",
        actions=(f"{hint}Known: {listed}. Packages can add entry points of the group {_PREFIX}.{group}.",),
    )


@cache
def _found(group: Group) -> Mapping[str, EntryPoint]:
    if not _may_exist():
        return {}
    from importlib.metadata import entry_points

    return {point.name: point for point in entry_points(group=f"{_PREFIX}.{group}")}


def _may_exist() -> bool:
    """Return whether an installed package may add something; importlib.metadata takes 40 ms longer to say so.

    Packages declare their entry points in the entry_points.txt of a folder beside their modules
    (packaging.python.org, "Entry points specification"), unless they are in eggs or zip files, or another program
    installed a finder of packages.
    """
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True
    return any(map(_may_declare, sys.path))


# The folders are the same for all groups.
@cache
def _may_declare(folder: str) -> bool:
    place = Path(folder)
    if place.is_file():
        return True
    with suppress(OSError):
        for path in place.iterdir():
            if path.suffix == ".egg" or (path.suffix in _PACKAGES and _declares(path / "entry_points.txt")):
                return True
    return False


def _declares(file: Path) -> bool:
    try:
        return f"[{_PREFIX}.".encode() in file.read_bytes()
    except OSError:
        return False
