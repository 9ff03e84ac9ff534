"""What other packages add by entry points: subjects, scorers, raters and reporters."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from evalmeta.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from importlib.metadata import EntryPoint


Group = Literal["subjects", "scorers", "raters", "reporters"]
_PREFIX: Final = "evalmeta"


def plugin_names(group: Group) -> list[str]:
    """Lists what installed packages add under the entry point group `evalmeta.GROUP`, in order."""
    return sorted(_found(group))


def load_plugin(group: Group, name: str) -> object:
    """Imports what a package adds under a name.

    Raises:
        SettingsError: nothing of that name is installed, or it does not load.
    """
    found = _found(group).get(name)
    if found is None:
        raise unknown_plugin(group, name)
    try:
        plugin: object = found.load()
    except Exception as error:
        raise SettingsError(
            f"{name!r} of the entry points {_PREFIX}.{group} does not load: {type(error).__name__}: {error}",
            actions=(f"Correct the package that brings {found.value}, or uninstall it.",),
        ) from error
    return plugin


def unknown_plugin(group: Group, name: str, *, known: Iterable[str] = ()) -> SettingsError:
    """Gives the error that says that nothing has this name, with the nearest one that something has."""
    names = sorted({*known, *_found(group)})
    near = get_close_matches(name, names, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    listed = ", ".join(names) or "none"
    return SettingsError(
        f"there are no {group} called {name!r}",
        actions=(f"{hint}Known: {listed}. Packages add more by entry points of the group {_PREFIX}.{group}.",),
    )


@cache
def _found(group: Group) -> Mapping[str, EntryPoint]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - 20 ms, and few commands need plug-ins

    return {each.name: each for each in entry_points(group=f"{_PREFIX}.{group}")}
