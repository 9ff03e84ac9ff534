"""Packages whose modules are imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def module_getter(package: str) -> Callable[[str], ModuleType]:
    """Return a `__getattr__` for a package, which imports its modules."""

    def get(name: str) -> ModuleType:
        full = f"{package}.{name}"
        if name.startswith("_") or find_spec(full) is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(full)

    return get
