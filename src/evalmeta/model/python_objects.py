"""Fingerprints of Python objects that answer or judge: their code, and what they use of their project.

Of a function that judges, the values that are bound to it count too. Those of an agent may change while it answers.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from dataclasses import is_dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import cached_property, lru_cache, partial
from itertools import islice
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MemberDescriptorType, MethodType
from typing import TYPE_CHECKING, Final

from evalmeta.model.fingerprints import fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    _Container: TypeAlias = list[object] | tuple[object, ...] | set[object] | frozenset[object] | dict[object, object]

_PLAIN: Final = (str, int, float, type(None))
_WRITTEN: Final = (bytes, Decimal, PurePath, date, Enum)
_METHODS: Final = (staticmethod, classmethod)
_CONTAINERS: Final = (list, tuple, set, frozenset, dict)
_CODE: Final = (FunctionType, MethodType, type, partial)
_MAX_DEPTH: Final = 50
_MAX_ITEMS: Final = 1_000
_MAX_CACHED: Final = 1_024


def function_fingerprint(function: object) -> str:
    """Return a fingerprint of a function, a partial of one, or an object that is called like one.

    It is the same in every process as long as the code and the plain values that are bound to it are the same: those
    of closures, defaults, arguments of a partial, attributes, and global names. Of other values, only the type counts.
    """
    return fingerprint(_Reader(has_values=True).form(function, is_root=True))


def object_of(thing: object) -> tuple[str, str]:
    """Return what identifies a Python object that answers, and a fingerprint of its code if its source is known."""
    kind = thing if inspect.isroutine(thing) or inspect.isclass(thing) else type(thing)
    # Methods of built-in types have no module.
    name = f"python {getattr(kind, '__module__', 'builtins')}:{kind.__qualname__}"
    try:
        source = inspect.getsource(kind)
    except (OSError, TypeError):
        return name, ""
    return name, fingerprint(source, _Reader(has_values=False).form(kind, is_root=True))


class _Reader:
    """Turns functions, classes and perhaps values into JSON; each object is described once."""

    def __init__(self, *, has_values: bool) -> None:
        self._has_values = has_values
        self._seen: dict[int, object] = {}  # objects by their ids, which stay alive so that no other gets the id
        self._depth = 0

    def form(self, value: object, *, is_root: bool = False) -> object:
        """Return the form of any value."""
        if isinstance(value, _PLAIN):
            return value if self._has_values else None
        if not (self._has_values or isinstance(value, (*_CODE, *_CONTAINERS))):
            return None
        if id(value) in self._seen or self._depth > _MAX_DEPTH:
            return ["again"] if self._has_values or isinstance(value, _CODE) else None
        self._seen[id(value)] = value
        self._depth += 1
        try:
            if isinstance(value, _CONTAINERS) and not self._has_values:
                return self._code_in(value) or None
            return [type(value).__qualname__, *self._members(value, is_root=is_root)]
        finally:
            self._depth -= 1

    def _code_in(self, container: _Container) -> list[object]:
        """Return the forms of the functions and classes in a container: a table of tools, and not what a cache has."""
        items = container.values() if isinstance(container, dict) else container
        forms = map(self.form, islice(items, _MAX_ITEMS))
        return sorted((form for form in forms if form is not None), key=_sort_key)

    def _members(self, value: object, *, is_root: bool) -> Iterator[object]:
        if isinstance(value, _WRITTEN):
            yield str(value)
        elif isinstance(value, re.Pattern):
            yield from (str(value.pattern), value.flags)
        elif isinstance(value, list | tuple):
            yield from map(self.form, value)
        elif isinstance(value, set | frozenset):
            yield from sorted(map(self.form, value), key=_sort_key)
        elif isinstance(value, dict):
            yield from sorted(([self.form(key), self.form(item)] for key, item in value.items()), key=_sort_key)
        elif isinstance(value, partial):
            yield from (self.form(value.func, is_root=is_root), self.form(value.args), self.form(value.keywords))
        else:
            yield from self._callable(value, is_root=is_root)

    def _callable(self, value: object, *, is_root: bool) -> Iterator[object]:
        if isinstance(value, MethodType):
            yield from (self.form(value.__func__, is_root=is_root), self.form(value.__self__, is_root=is_root))
        elif isinstance(value, BuiltinFunctionType):
            yield from (value.__qualname__, self.form(value.__self__))
        elif isinstance(value, FunctionType):
            yield value.__qualname__
            if is_root or _is_own(value.__module__):
                yield from self._function(value)
        elif isinstance(value, type):
            yield value.__qualname__
            if _is_own(value.__module__):
                yield from self._class(value)
        elif is_root or ((is_dataclass(value) or callable(value)) and _is_own(type(value).__module__)):
            yield self.form(type(value))
            yield from self._attributes(value)

    def _function(self, function: FunctionType) -> Iterator[object]:
        code = function.__code__
        source = _source(code)
        yield source
        # The source of code from a console or from `exec` may be that of other code.
        if not source or code.co_filename.startswith("<"):
            yield self._code(code)
        yield [self.form(content) for content in _contents(function)]
        yield from (self.form(function.__defaults__), self.form(function.__kwdefaults__))
        for name in sorted(_global_names(code)):
            if name in function.__globals__ and not name.startswith("__"):
                yield [name, self.form(function.__globals__[name])]

    def _code(self, code: CodeType) -> object:
        constants = [self._code(one) if isinstance(one, CodeType) else self.form(one) for one in code.co_consts]
        return [code.co_code.hex(), constants, code.co_names]

    def _class(self, kind: type) -> Iterator[object]:
        yield from map(self.form, kind.__bases__)
        for name, member in sorted(vars(kind).items()):
            plain = member.__func__ if isinstance(member, _METHODS) else member
            plain = plain.fget if isinstance(plain, property) else plain
            plain = plain.func if isinstance(plain, cached_property) else plain
            if isinstance(plain, FunctionType) or not name.startswith(("__", "_abc_")):
                yield [name, self.form(plain)]

    def _attributes(self, thing: object) -> Iterator[object]:
        slots = {
            name
            for kind in type(thing).__mro__
            for name, member in vars(kind).items()
            if isinstance(member, MemberDescriptorType)
        }
        values = {name: getattr(thing, name, None) for name in slots} | getattr(thing, "__dict__", {})
        for name in sorted(values):
            yield [name, self.form(values[name])]


def _sort_key(form: object) -> str:
    return json.dumps(form)


def _contents(function: FunctionType) -> Iterator[object]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # it has no value yet
            yield None


# Many functions, such as one for each case, may have the same code.
@lru_cache(_MAX_CACHED)
def _source(code: CodeType) -> str:
    try:
        return inspect.getsource(code)
    except (OSError, TypeError, SyntaxError, IndexError):
        return ""


def _global_names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_global_names(one) for one in code.co_consts if isinstance(one, CodeType)))


def _is_own(module: str | None) -> bool:
    """Return whether a module belongs to a project, and not to Python or an installed package."""
    top = (module or "").partition(".")[0]
    if top in sys.stdlib_module_names or top == "builtins":
        return False
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return not {"site-packages", "dist-packages"} & {*PurePath(file).parts}
